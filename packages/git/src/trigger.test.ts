import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { GitEvent } from "./delivery/read.ts";
import { isTagPattern, matchesTag, type TriggerSettings, triggeredBy, triggerMode } from "./trigger.ts";

const sha = "a".repeat(40);
const push: GitEvent = { kind: "push", repository: "1", branch: "main", commitSha: sha };
const tag: GitEvent = { kind: "tag", repository: "1", tag: "v1.2.0", commitSha: sha };
const release: GitEvent = {
  kind: "release",
  repository: "1",
  tag: "v1.2.0",
  draft: false,
  prerelease: false,
};

const manual: TriggerSettings = { branch: "main", autoDeploy: false };
const byPush: TriggerSettings = { branch: "main", autoDeploy: true };
const byTag: TriggerSettings = {
  ...manual,
  versionDeploy: { enabled: true, event: "tag", tagPattern: "v*" },
};
const byRelease: TriggerSettings = {
  ...manual,
  versionDeploy: { enabled: true, event: "release", tagPattern: "v*" },
};
const withPrereleases: TriggerSettings = {
  ...manual,
  versionDeploy: { enabled: true, event: "release", tagPattern: "*", includePrereleases: true },
};

describe("a mode", () => {
  it.each([
    ["manual", manual],
    ["manual", { ...manual, versionDeploy: { enabled: false, event: "tag", tagPattern: "*" } }],
    ["push", byPush],
    ["tag", byTag],
    ["release", byRelease],
  ] as [string, TriggerSettings][])("%s takes its own events alone", (mode, settings) => {
    expect(triggerMode(settings)).toBe(mode);
    const started = [push, tag, release].filter((event) => triggeredBy(event, settings) !== undefined);
    expect(started.map(({ kind }) => kind)).toEqual(mode === "manual" ? [] : [mode]);
  });
});

describe("an event starts", () => {
  it.each([
    ["the pushed commit", push, byPush, { trigger: "push", branch: "main", commitSha: sha }],
    ["nothing on another branch", { ...push, branch: "dev" }, byPush, undefined],
    ["nothing on a branch of the same name in another case", { ...push, branch: "Main" }, byPush, undefined],
    ["the tag", tag, byTag, { trigger: "tag", tag: "v1.2.0", commitSha: sha }],
    [
      "the tag whose commit is not sent",
      { ...tag, commitSha: undefined },
      byTag,
      { trigger: "tag", tag: "v1.2.0" },
    ],
    ["nothing for a tag that does not fit", { ...tag, tag: "nightly" }, byTag, undefined],
    ["the release", release, byRelease, { trigger: "release", tag: "v1.2.0" }],
    ["nothing for a release whose tag does not fit", { ...release, tag: "x" }, byRelease, undefined],
    ["nothing for a draft", { ...release, draft: true }, withPrereleases, undefined],
    ["nothing for a prerelease", { ...release, prerelease: true }, byRelease, undefined],
    [
      "a prerelease that is asked for",
      { ...release, prerelease: true },
      withPrereleases,
      { trigger: "release", tag: "v1.2.0" },
    ],
  ] as [string, GitEvent, TriggerSettings, object | undefined][])("%s", (_, event, settings, expected) => {
    expect(triggeredBy(event, settings)).toEqual(expected);
  });
});

describe("a tag pattern", () => {
  it.each([
    ["*", "v1.0.0", true],
    ["*", "", true],
    ["v*", "v1", true],
    ["v*", "V1", false],
    ["v*", "xv1", false],
    ["v?", "v1", true],
    ["v?", "v", false],
    ["v?", "v12", false],
    ["release/*", "release/2026/11", true],
    ["v1.*.0", "v1.2.3.0", true],
    ["v1.*.0", "v1x2.0", false],
    ["v1.0", "v1x0", false],
    ["*-rc?", "v2-rc1", true],
    ["*-rc?", "v2-rc10", false],
    ["(a+)+$", "aaaa", false],
    ["?", "🚀", true],
    ["a*b*c", "aXbYbZc", true],
    ["a*b*c", "aXbYbZ", false],
    ["**", "x", true],
    ["*", "*", true],
  ])("%s against %s: %s", (pattern, tag, expected) => {
    expect(matchesTag(pattern, tag)).toBe(expected);
  });

  it.each([
    "",
    "+(v)",
    "v?(x)",
    "@(a|b)",
    "*(x)",
    "!(x)",
    "v+*(x)",
    "v[0-9]",
    "v{1,2}",
    "!v1",
    "v\\*",
    "v\n",
    "v\u0000",
    "x".repeat(256),
  ])("%j is none", (text) => {
    expect(isTagPattern(text)).toBe(false);
  });

  it.each([
    "*",
    "v?.*",
    "x".repeat(255),
    "🚀".repeat(255),
    "release/*",
    "(v1)+",
    "v1 (x)",
    "a@b",
    "c++",
    "*?+@",
  ])("%j is one", (text) => {
    expect(isTagPattern(text)).toBe(true);
  });

  const word = fc.string({ unit: fc.constantFrom("a", "b", ".", "*", "?", "/"), maxLength: 12 });
  const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");

  it("matches as the same regular expression does", () => {
    fc.assert(
      fc.property(word, word, (pattern, tag) => {
        const parts = [...pattern].map((one) => (one === "*" ? ".*" : one === "?" ? "." : escaped(one)));
        expect(matchesTag(pattern, tag)).toBe(new RegExp(`^${parts.join("")}$`, "s").test(tag));
      }),
      { numRuns: 2_000 },
    );
  });

  it("without wildcards matches itself alone", () => {
    const plain = fc.string().filter((text) => !/[*?]/.test(text));
    fc.assert(
      fc.property(plain, plain, (pattern, tag) => {
        expect(matchesTag(pattern, pattern)).toBe(true);
        expect(matchesTag(pattern, tag)).toBe(pattern === tag);
      }),
    );
  });

  it("is distinguished from other glob syntax in linear time", () => {
    const began = process.cpuUsage().user;
    for (const text of ["?*+@".repeat(63), "a*".repeat(127), `${"*".repeat(254)}(`]) {
      isTagPattern(text);
    }
    expect((process.cpuUsage().user - began) / 1_000).toBeLessThan(100);
  });

  it("costs no more than pattern times tag", () => {
    const pattern = `${"*a".repeat(127)}b`;
    const began = process.cpuUsage().user;
    expect(matchesTag(pattern, "a".repeat(255))).toBe(false);
    expect((process.cpuUsage().user - began) / 1_000).toBeLessThan(1_000);
  });
});
