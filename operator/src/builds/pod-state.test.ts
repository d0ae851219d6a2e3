import { describe, expect, test } from "vitest";
import { type BuildPod, hasTerminated, podState, ranTime, startedContainers } from "./pod-state.ts";

const sha = "0123456789abcdef0123456789abcdef01234567";
const digest = `sha256:${"a".repeat(64)}`;

const ended = (
  exitCode: number,
  result: object | string = {},
  reason = exitCode ? "Error" : "Completed",
) => ({
  terminated: {
    exitCode,
    reason,
    message: typeof result === "string" ? result : `${JSON.stringify(result)}\n`,
    finishedAt: "2026-01-01T00:00:00Z",
  },
});

function pod(
  states: Record<string, object>,
  status: Omit<NonNullable<BuildPod["status"]>, "containerStatuses"> = {},
): BuildPod {
  const statuses = Object.entries(states).map(([name, state]) => ({ name, state }));
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "p" },
    status: {
      phase: "Running",
      ...status,
      containerStatuses: statuses,
    },
  };
}

const running = { running: {} };
const fetched = ended(0, { step: "fetch", commitSha: sha, commitMessage: "One" });

test("a pod without containers waits; a missing image is recognized", () => {
  expect(podState(pod({}))).toEqual({ state: "waiting", cannotPull: false });
  const waiting = { waiting: { reason: "ImagePullBackOff" } };
  expect(podState(pod({ fetch: waiting }))).toEqual({ state: "waiting", cannotPull: true });
  // It can be any container: the others wait for it.
  const refused = { waiting: { reason: "CreateContainerError" } };
  expect(podState(pod({ fetch: fetched, build: refused, push: running }))).toEqual({
    state: "waiting",
    cannotPull: true,
  });
});

test("the step is the first that has not ended, with the report of those before it", () => {
  const now = pod({ fetch: fetched, build: running, push: running });
  expect(podState(now)).toEqual({
    state: "running",
    step: "build",
    report: { commitSha: sha, commitMessage: "One" },
  });
  expect(startedContainers(now)).toEqual([
    { container: "fetch", ended: true },
    { container: "build", ended: false },
    { container: "push", ended: false },
  ]);
  expect(podState(pod({ fetch: running, build: running, push: running }))).toMatchObject({ step: "fetch" });
});

test("it is done with the pushed digest, and not without one", () => {
  const all = (push: object) => ({ fetch: fetched, build: ended(0), push });
  const done = pod(all(ended(0, { step: "push", digest })), { phase: "Succeeded" });
  expect(podState(done)).toMatchObject({ state: "done", report: { digest, commitSha: sha } });
  expect(podState(pod(all(ended(0, "nonsense"))))).toMatchObject({
    state: "failed",
    passing: true,
    failure: { code: "BUILD_ENGINE_FAILED" },
  });
});

// Shows: docs/builds.md#what-hostile-repositories-come-to: forges the result of its step: a digest, a
test("the container in which the client's own steps run can forge neither digest nor commit", () => {
  const forged = `sha256:${"f".repeat(64)}`;
  const other = "f".repeat(40);
  const tales = [
    { step: "build", digest: forged, commitSha: other, commitMessage: "Mine" },
    { step: "push", digest: forged },
    { step: "fetch", commitSha: other },
  ];
  for (const tale of tales) {
    const before = { fetch: fetched, build: ended(0, tale) };
    const done = podState(pod({ ...before, push: ended(0, { step: "push", digest }) }));
    expect(done).toEqual({ state: "done", report: { digest, commitSha: sha, commitMessage: "One" } });
    const silent = podState(pod({ ...before, push: ended(0, { step: "push" }) }));
    expect(silent).toMatchObject({ state: "failed", step: "push", failure: { code: "BUILD_ENGINE_FAILED" } });
    const refused = ended(1, { step: "push", code: "PROJECT_PUBLISH_FAILED", message: "No." });
    expect(podState(pod({ ...before, push: refused }))).toMatchObject({ state: "failed", step: "push" });
  }
});

// Shows: docs/builds.md#what-hostile-repositories-come-to: releases `push` before its build has ended
test("a push that was released before the build has ended counts only when the build succeeds", () => {
  const early = ended(0, { step: "push", digest });
  expect(podState(pod({ fetch: fetched, build: running, push: early }))).toEqual({
    state: "running",
    step: "build",
    report: { commitSha: sha, commitMessage: "One" },
  });
  const refused = ended(1, { step: "push", code: "PROJECT_PUBLISH_FAILED", message: "No." });
  expect(podState(pod({ fetch: fetched, build: running, push: refused }))).toMatchObject({
    state: "running",
    step: "build",
  });
  const why = ended(1, { step: "build", code: "BUILD_COMMAND_FAILED", message: "Because." });
  expect(podState(pod({ fetch: fetched, build: why, push: early }))).toMatchObject({
    state: "failed",
    step: "build",
    failure: { code: "BUILD_COMMAND_FAILED" },
  });
});

test("results of containers after a failed one are ignored", () => {
  const gone = ended(1, { step: "fetch", code: "GIT_COMMIT_UNAVAILABLE", message: "Gone." });
  const silent = ended(2, "");
  const others: Record<string, object>[] = [
    {},
    { build: running, push: running },
    { build: silent, push: silent },
  ];
  for (const other of others) {
    expect(podState(pod({ fetch: gone, ...other }))).toMatchObject({
      state: "failed",
      step: "fetch",
      passing: false,
      failure: { code: "GIT_COMMIT_UNAVAILABLE" },
    });
  }
  // The termination of the others may be reported first.
  expect(podState(pod({ fetch: running, build: silent, push: silent }))).toMatchObject({ state: "running" });
});

test("it has terminated when each of its containers has, and not before", () => {
  const over = ended(0);
  expect(hasTerminated(pod({ fetch: fetched, build: over, push: ended(1) }))).toBe(true);
  expect(hasTerminated(pod({ fetch: fetched, build: over, push: running }))).toBe(false);
  expect(hasTerminated(pod({ fetch: fetched, build: over }))).toBe(false);
  expect(hasTerminated(pod({}, { phase: "Failed", reason: "NodeLost" }))).toBe(false);
});

test("a failure of the plan is the plan's, though the build's container reports it", () => {
  const why = ended(1, { step: "plan", code: "RUNTIME_NOT_DETECTED", message: "Say which." });
  expect(podState(pod({ fetch: fetched, build: why }))).toMatchObject({
    state: "failed",
    step: "plan",
    failure: { code: "RUNTIME_NOT_DETECTED" },
  });
});

// Shows: docs/builds.md#what-hostile-repositories-come-to: forges the result of its step: a digest, a
test("an unknown code, or one of another step, is not passed on", () => {
  const of = (result: object) => pod({ fetch: fetched, build: ended(1, result) });
  const code = (result: object) => {
    const state = podState(of(result));
    return state.state === "failed" && [state.failure.code, state.passing];
  };
  expect(code({ step: "build", code: "toString", message: "m" })).toEqual([
    "BUILD_FAILED_UNCLASSIFIED",
    false,
  ]);
  expect(code({ step: "push", code: "PROJECT_PUBLISH_FAILED" })).toEqual(["BUILD_ENGINE_FAILED", true]);
});

describe("why it failed", () => {
  const own = (code: string, exitCode: number) =>
    ended(exitCode, { step: "build", code, message: "Because." });
  const killed = ended(143, "");
  test.each([
    ["the runner's own word", own("BUILD_COMMAND_FAILED", 1), {}, "BUILD_COMMAND_FAILED", false],
    [
      "its word before the pod's",
      own("BUILD_COMMAND_FAILED", 1),
      { reason: "DeadlineExceeded" },
      "BUILD_COMMAND_FAILED",
      false,
    ],
    [
      "the pod's deadline before a passing word",
      own("BUILD_ENGINE_FAILED", 2),
      { reason: "DeadlineExceeded" },
      "BUILD_TIMEOUT",
      false,
    ],
    ["a passing fault", own("GIT_SERVER_UNAVAILABLE", 2), {}, "GIT_SERVER_UNAVAILABLE", true],
    ["too much memory", ended(137, "", "OOMKilled"), {}, "BUILD_OUT_OF_MEMORY", false],
    [
      "too much disk",
      killed,
      { reason: "Evicted", message: "Pod ephemeral local storage usage exceeds the total limit" },
      "BUILD_DISK_FULL",
      false,
    ],
    [
      "a full emptyDir",
      killed,
      { reason: "Evicted", message: 'Usage of EmptyDir volume "work" exceeds the limit "10Gi".' },
      "BUILD_DISK_FULL",
      false,
    ],
    [
      "a node under pressure",
      killed,
      { reason: "Evicted", message: "The node was low on resource: memory." },
      "BUILD_ENGINE_FAILED",
      true,
    ],
    ["a killed container", ended(137, ""), {}, "BUILD_ENGINE_FAILED", true],
    ["exit code 1 without a word", ended(1, ""), {}, "BUILD_ENGINE_FAILED", true],
  ])("%s", (_, state, status, code, passing) => {
    const failed = pod({ fetch: fetched, build: state }, { phase: "Failed", ...status });
    expect(podState(failed)).toMatchObject({ state: "failed", step: "build", passing, failure: { code } });
  });

  test("a pod that failed without a terminated container is classified by its reason", () => {
    expect(podState(pod({}, { phase: "Failed", reason: "DeadlineExceeded" }))).toMatchObject({
      state: "failed",
      step: "fetch",
      failure: { code: "BUILD_TIMEOUT" },
    });
    expect(podState(pod({}, { phase: "Failed", reason: "NodeLost" }))).toMatchObject({ passing: true });
  });
});

describe("the time in which containers ran", () => {
  const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 10, minute)).toISOString();
  const since = (minute: number) => ({ running: { startedAt: at(minute) } });
  const over = (from: number | undefined, until: number, exitCode = 0) => ({
    terminated: {
      exitCode,
      startedAt: from === undefined ? null : at(from),
      finishedAt: at(until),
      message: JSON.stringify({ step: "push", digest }),
    },
  });

  test.each<[string, BuildPod, object | undefined]>([
    ["none, of a pod that waits", pod({ fetch: { waiting: {} } }), undefined],
    [
      "the start of the first one",
      pod({ fetch: since(3), build: since(2), push: { waiting: {} } }),
      { from: at(2) },
    ],
    [
      "up to the end of the last one",
      pod({ fetch: over(1, 2), build: over(1, 5), push: over(2, 6) }),
      { from: at(1), until: at(6) },
    ],
    [
      "up to the end of the one that failed",
      pod({ fetch: over(1, 2), build: over(1, 5, 1), push: over(1, 9, 1) }),
      { from: at(1), until: at(5) },
    ],
    [
      "up to the last end of a pod that was stopped, once all have ended",
      pod({ fetch: over(1, 2), build: over(1, 7) }, { phase: "Failed", reason: "Evicted" }),
      { from: at(1), until: at(7) },
    ],
    [
      "without an end while a stopped pod has one that runs",
      pod({ fetch: over(1, 2), build: since(1) }, { phase: "Failed", reason: "DeadlineExceeded" }),
      { from: at(1) },
    ],
    [
      "none, of one whose containers never started",
      pod({ fetch: over(undefined, 2, 128) }, { phase: "Failed" }),
      undefined,
    ],
  ])("is %s", (_, one, time) => {
    expect(ranTime(one, podState(one))).toEqual(time);
  });
});
