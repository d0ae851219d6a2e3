import { describe, expect, it } from "vitest";
import type { GitEvent } from "./delivery/event.ts";
import { type TriggerSettings, triggeredBy, triggerMode } from "./trigger.ts";

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
      "the tag whose commit is not told",
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
