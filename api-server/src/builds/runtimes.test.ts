import type { PublicRuntime } from "@slipway/builder";
import { describe, expect, it } from "vitest";
import { runtimeErrors } from "./runtimes.ts";

const runtimes: PublicRuntime[] = [
  { id: "node", name: "Node.js", available: true, versions: ["24", "22"], default_version: "24" },
  { id: "static", name: "Static files", available: true, versions: [], default_version: null },
  { id: "ruby", name: "Ruby", available: false, versions: ["3.4"], default_version: "3.4" },
];
const told = (settings: { runtime?: string; version?: string }) =>
  runtimeErrors(settings, runtimes, "config.build.").map(({ field, message }) => `${field} ${message}`);

describe("build settings", () => {
  it.each([
    [{}],
    [{ version: "7" }],
    [{ runtime: "node" }],
    [{ runtime: "node", version: "22" }],
    [{ runtime: "static" }],
  ])("%j are accepted", (settings) => expect(told(settings)).toEqual([]));

  it.each([
    [{ runtime: "cobol" }, "config.build.runtime must be one of: node, static, ruby"],
    [{ runtime: "ruby" }, "config.build.runtime this platform cannot build Ruby applications"],
    [{ runtime: "node", version: "6" }, "config.build.version must be one of: 24, 22"],
    [{ runtime: "static", version: "1" }, "config.build.version Static files has no versions to choose from"],
  ])("%j are refused", (settings, words) => expect(told(settings)).toEqual([words]));
});
