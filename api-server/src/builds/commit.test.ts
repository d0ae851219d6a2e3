import { describe, expect, it } from "vitest";
import { latestRelease, latestTag } from "./commit.ts";

const tags = (...names: string[]) => names.map((name) => ({ name, commitSha: "a".repeat(40) }));
const latest = (pattern: string, ...names: string[]) => latestTag(tags(...names), pattern)?.name;

describe("the latest tag", () => {
  it.each([
    ["is the highest version, not the last text", "*", ["v1.9.0", "v1.10.0", "v1.2.0"], "v1.10.0"],
    ["is one that matches", "v1.*", ["v2.0.0", "v1.4.0", "v1.3.0"], "v1.4.0"],
    ["is no prerelease of itself", "*", ["v2.0.0-rc.2", "v2.0.0", "v2.0.0-rc.10"], "v2.0.0"],
    [
      "orders prereleases by their numbers",
      "*",
      ["v2.0.0-rc.2", "v2.0.0-rc.10", "v2.0.0-beta"],
      "v2.0.0-rc.10",
    ],
    ["has a name before its version", "app-*", ["app-1.0.0", "app-1.0.1", "lib-9.0.0"], "app-1.0.1"],
    ["counts numbers that are missing as zero", "*", ["v1", "v1.0.1"], "v1.0.1"],
    ["is the first of the server's where none is a version", "*", ["stable", "old"], "stable"],
    ["counts a fourth number", "*", ["1.2.3.4", "1.2.3.10", "1.2.3.10-rc.1"], "1.2.3.10"],
    ["knows no number of a version that is too large", "*", ["1.0.0", "9999999999999999.0.0"], "1.0.0"],
    ["leaves what is no version behind", "*", ["stable", "v0.1.0"], "v0.1.0"],
  ])("%s", (_, pattern, names, wanted) => expect(latest(pattern, ...names)).toBe(wanted));

  it("takes no longer for hostile names than for others", () => {
    const hostile = [
      `${"1.".repeat(20_000)}x`,
      `1.0.0-${"a.".repeat(20_000)}!`,
      `${"-1".repeat(20_000)}!`,
      `${"1.".repeat(126)}x`,
    ];
    const began = process.cpuUsage().user;
    expect(latest("*", ...hostile, "v1.0.0")).toBe("v1.0.0");
    expect((process.cpuUsage().user - began) / 1_000).toBeLessThan(100);
  });

  it("is none where none matches", () => {
    expect(latest("v?", "v10", "V1")).toBeUndefined();
    expect(latest("*")).toBeUndefined();
  });
});

describe("the latest release", () => {
  const release = (tag: string, publishedAt: string, change: object = {}) => ({
    id: tag,
    tag,
    draft: false,
    prerelease: false,
    publishedAt,
    ...change,
  });
  const releases = [
    release("v3.0.0", "2026-03-01T00:00:00Z", { draft: true }),
    release("v2.1.0-rc.1", "2026-02-03T00:00:00Z", { prerelease: true }),
    release("v1.9.9", "2026-02-02T00:00:00Z"),
    release("v2.0.0", "2026-02-01T00:00:00Z"),
  ];

  it("is the one published last, whatever its number", () => {
    expect(latestRelease(releases, "*", false)?.tag).toBe("v1.9.9");
    expect(latestRelease(releases, "v2.*", false)?.tag).toBe("v2.0.0");
  });

  it("is a prerelease only where they count, and never a draft", () => {
    expect(latestRelease(releases, "*", true)?.tag).toBe("v2.1.0-rc.1");
    expect(latestRelease(releases, "v3*", true)).toBeUndefined();
  });
});
