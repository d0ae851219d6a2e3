import type { PublicRuntime } from "@slipway/builder";
import { describe, expect, it } from "vitest";
import { Failure } from "../errors/failure.ts";
import { mergeDeploySettings, modeOf, runtimeErrors, versionDeployView } from "./settings.ts";

const byTag = { enabled: true, event: "tag", tagPattern: "v*" } as const;
const manual = { autoDeploy: false };
const fieldsOf = (work: () => unknown): string[] => {
  try {
    work();
  } catch (error) {
    expect(error).toBeInstanceOf(Failure);
    return ((error as Failure).extra.errors as { field: string }[]).map(({ field }) => field);
  }
  return [];
};

describe("a patch of the deploy settings", () => {
  it("leaves alone what it does not name", () => {
    expect(mergeDeploySettings({ autoDeploy: true }, { auto_deploy: false })).toEqual({ autoDeploy: false });
    expect(
      mergeDeploySettings(
        { autoDeploy: false, versionDeploy: byTag },
        { version_deploy: { tag_pattern: "r?" } },
      ),
    ).toEqual({ autoDeploy: false, versionDeploy: { ...byTag, tagPattern: "r?" } });
  });

  it("switches between the modes in one call", () => {
    const toPush = { auto_deploy: true, version_deploy: { enabled: false } };
    expect(mergeDeploySettings({ autoDeploy: false, versionDeploy: byTag }, toPush)).toEqual({
      autoDeploy: true,
      versionDeploy: { enabled: false },
    });
    const toRelease = {
      auto_deploy: false,
      version_deploy: { enabled: true, event: "release", tag_pattern: "*", include_prereleases: true },
    } as const;
    expect(mergeDeploySettings({ autoDeploy: true }, toRelease)).toEqual({
      autoDeploy: false,
      versionDeploy: { enabled: true, event: "release", tagPattern: "*", includePrereleases: true },
    });
  });

  it("is refused when both modes would apply", () => {
    const versions = { enabled: true, tag_pattern: "*" };
    expect(fieldsOf(() => mergeDeploySettings({ autoDeploy: true }, { version_deploy: versions }))).toEqual([
      "version_deploy.enabled",
    ]);
    const current = { autoDeploy: false, versionDeploy: byTag };
    expect(fieldsOf(() => mergeDeploySettings(current, { auto_deploy: true }))).toEqual(["auto_deploy"]);
  });

  it("is refused when versions have no pattern", () => {
    expect(fieldsOf(() => mergeDeploySettings(manual, { version_deploy: { enabled: true } }))).toEqual([
      "version_deploy.tag_pattern",
    ]);
    // A pattern of a time when they were off is not one.
    const off = { autoDeploy: false, versionDeploy: { enabled: false } };
    expect(fieldsOf(() => mergeDeploySettings(off, { version_deploy: { enabled: true } }))).toHaveLength(1);
  });

  it("counts prereleases for releases alone", () => {
    const sent = { enabled: true, tag_pattern: "*", include_prereleases: true };
    expect(mergeDeploySettings(manual, { version_deploy: sent }).versionDeploy).toEqual({
      enabled: true,
      event: "tag",
      tagPattern: "*",
    });
  });
});

describe("the mode", () => {
  const base = { connectionId: "g", repositoryId: "r", branch: "main" };
  it.each([
    [{ autoDeploy: false }, "manual"],
    [{ autoDeploy: true }, "push"],
    [{ autoDeploy: false, versionDeploy: byTag }, "tag"],
    [{ autoDeploy: false, versionDeploy: { ...byTag, event: "release" as const } }, "release"],
    [{ autoDeploy: true, versionDeploy: { enabled: false } }, "push"],
  ] as const)("of %j is %s", (settings, mode) => expect(modeOf({ ...base, ...settings })).toBe(mode));

  it("shows its defaults where versions are off, or were never set", () => {
    const off = { enabled: false, event: "tag", tag_pattern: "*", include_prereleases: false };
    expect(versionDeployView(undefined)).toEqual(off);
    expect(versionDeployView({ enabled: false, event: "release", tagPattern: "v*" })).toEqual(off);
    expect(versionDeployView(byTag)).toEqual({ ...off, enabled: true, tag_pattern: "v*" });
  });
});

const runtimes: PublicRuntime[] = [
  { id: "node", name: "Node.js", available: true, versions: ["24", "22"], default_version: "24" },
  { id: "static", name: "Static files", available: true, versions: [], default_version: null },
  { id: "ruby", name: "Ruby", available: false, versions: ["3.4"], default_version: "3.4" },
];
const messagesOf = (settings: { runtime?: string; version?: string }) =>
  runtimeErrors(settings, runtimes, "config.build.").map(({ field, message }) => `${field} ${message}`);

describe("build settings", () => {
  it.each([
    [{}],
    [{ version: "7" }],
    [{ runtime: "node" }],
    [{ runtime: "node", version: "22" }],
    [{ runtime: "static" }],
  ])("%j are accepted", (settings) => expect(messagesOf(settings)).toEqual([]));

  it.each([
    [{ runtime: "cobol" }, "config.build.runtime must be one of: node, static, ruby"],
    [{ runtime: "ruby" }, "config.build.runtime this platform cannot build Ruby applications"],
    [{ runtime: "node", version: "6" }, "config.build.version must be one of: 24, 22"],
    [{ runtime: "static", version: "1" }, "config.build.version Static files has no versions to choose from"],
  ])("%j are refused", (settings, words) => expect(messagesOf(settings)).toEqual([words]));
});
