import { expect, test } from "vitest";
import { stringify } from "yaml";
import { parseBuildSettings } from "./settings.ts";

const withLimits = (limits: object) =>
  stringify({ image: "builder", registry: { host: "registry.example.com" }, limits });

test("a disk request above the limit is rejected at startup, as every build's pod would be", () => {
  const parse = (limits: object) => () => parseBuildSettings(withLimits(limits));
  expect(parse({ ephemeralStorage: "1Gi", ephemeralRequest: "2Gi" })).toThrow(
    /must be at most ephemeralStorage/,
  );
  expect(parse({ ephemeralRequest: "11Gi" })).toThrow(/must be at most ephemeralStorage/);
});

test("a disk request up to the limit is accepted, and none as well", () => {
  const parsed = (limits: object) => parseBuildSettings(withLimits(limits)).limits;
  expect(parsed({ ephemeralStorage: "1Gi", ephemeralRequest: "1024Mi" }).ephemeralRequest).toBe("1024Mi");
  expect(parsed({}).ephemeralRequest).toBeUndefined();
});
