import { failure } from "@slipway/builder/contract";
import { expect, test } from "vitest";
import { exampleBuild } from "../../../test/kit/operator/builds.ts";
import { chargedTime, endedTime } from "./charged-time.ts";
import type { Decision } from "./decide.ts";
import type { PodState } from "./pod-state.ts";

const at = (minute: number, ms = 0) => new Date(Date.UTC(2026, 0, 1, 10, minute, 0, ms)).toISOString();
const ran = { from: at(29), until: at(31) };
const all = { ranFrom: at(29), ranUntil: at(31) };
const superseded: Decision = { do: "end", phase: "superseded" };
const failed: Decision = { do: "end", phase: "failed", failure: failure("BUILD_COMMAND_FAILED") };
const wait: Decision = { do: "wait", reason: "Waiting" };

const running: PodState = { state: "running", step: "build", report: {} };
const done: PodState = { state: "done", report: { digest: "sha256:a" } };
const broken = (passing: boolean): PodState => ({
  state: "failed",
  step: "build",
  report: {},
  failure: failure("BUILD_ENGINE_FAILED"),
  passing,
});

test.each<[string, PodState | undefined, Decision, object]>([
  ["waits for a node", { state: "waiting", cannotPull: false }, superseded, {}],
  ["has lost its pod", undefined, superseded, {}],
  ["runs", running, { do: "wait", reason: "Building" }, { ranFrom: at(29) }],
  ["is superseded while it runs", running, superseded, { ranFrom: at(29) }],
  ["has built its image", done, { do: "built", report: { digest: "sha256:a" } }, all],
  ["is superseded as it has built its image", done, superseded, all],
  ["failed by its own", broken(false), failed, all],
  ["is superseded after it failed by its own", broken(false), superseded, all],
  ["is tried again later", broken(true), wait, {}],
  ["is superseded before it is tried again", broken(true), superseded, {}],
  ["is tried again", broken(true), { do: "start", attempt: 2 }, {}],
  ["was tried often enough", broken(true), failed, all],
])("an attempt that %s", (_, state, decision, time) => {
  const build = exampleBuild("b1", 1, { status: { phase: "building", ranFrom: at(1) } });
  const pod = state && { state, createdAt: at(0), ran };
  expect(chargedTime({ build, pod }, decision)).toEqual(time);
});

test("what is published, or has ended, keeps the time of its pod, which is gone", () => {
  const build = exampleBuild("b1", 1, { status: { phase: "building", step: "publish", ...all } });
  expect(chargedTime({ build, pod: undefined }, superseded)).toEqual(all);
  const ended = exampleBuild("b1", 1, { status: { phase: "success", ...all } });
  expect(chargedTime({ build: ended, pod: undefined }, { do: "cleanUp" })).toEqual(all);
});

test.each([
  ["that never ran", {}, at(40), {}],
  ["that has ended", all, at(40), { ranFrom: at(29), ranUntil: at(31) }],
  ["that runs", { ranFrom: at(29) }, at(31), { ranFrom: at(29), ranUntil: at(31) }],
  ["by a clock that is behind its node's", { ranFrom: at(29) }, at(1), { ranFrom: at(29), ranUntil: at(29) }],
  [
    "by a clock that is ahead",
    { ranFrom: at(0) },
    "2027-01-01T00:00:00Z",
    { ranFrom: at(0), ranUntil: at(30) },
  ],
])("the time of one %s", (_, time, now, ended) => {
  expect(endedTime(time, { now: () => new Date(now), deadlineSeconds: 1_800 })).toEqual(ended);
});

test("the time of day is not asked of a build whose pod has it", () => {
  const now = () => {
    throw new Error("the clock is not trusted");
  };
  expect(endedTime(all, { now, deadlineSeconds: 1_800 })).toEqual(all);
  expect(endedTime({}, { now, deadlineSeconds: 1_800 })).toEqual({});
});
