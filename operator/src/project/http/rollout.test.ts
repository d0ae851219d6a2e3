import { describe, expect, test } from "vitest";
import { type DeploymentView, type PodView, readRollout } from "./rollout.ts";

function deployment(status: DeploymentView["status"], replicas = 2): DeploymentView {
  return {
    metadata: { generation: 3 },
    spec: { replicas },
    status: { observedGeneration: 3, replicas, updatedReplicas: replicas, ...status },
  };
}

function pod(container: object, extra: object = {}, name = "one"): PodView {
  return {
    metadata: { name, creationTimestamp: "2026-01-01T00:00:00Z" },
    status: {
      conditions: [{ type: "PodReadyToStartContainers", status: "True" }],
      containerStatuses: [{ name: "app", ...container }],
      ...extra,
    },
  };
}

describe("readRollout: completeness", () => {
  test.each<[string, DeploymentView | undefined, boolean]>([
    ["no Deployment yet", undefined, false],
    ["all updated and available", deployment({ availableReplicas: 2 }), true],
    ["numbers of an older spec", deployment({ observedGeneration: 2, availableReplicas: 2 }), false],
    ["one not updated", deployment({ updatedReplicas: 1, availableReplicas: 2 }), false],
    ["an old instance still serving", deployment({ replicas: 3, availableReplicas: 3 }), false],
    ["one not available", deployment({ availableReplicas: 1 }), false],
    ["scaled to nothing", deployment({}, 0), true],
    ["old instances left after scaling to nothing", deployment({ replicas: 1 }, 0), false],
  ])("%s", (_, object, complete) => {
    expect(readRollout(object, []).complete).toBe(complete);
  });

  test("a missed deadline counts only for the spec that missed it", () => {
    const conditions = [{ type: "Progressing", status: "False", reason: "ProgressDeadlineExceeded" }];
    expect(readRollout(deployment({ conditions }), []).deadlineExceeded).toBe(true);
    expect(readRollout(deployment({ conditions, observedGeneration: 2 }), []).deadlineExceeded).toBe(false);
    expect(readRollout(deployment({ conditions, availableReplicas: 2 }), []).deadlineExceeded).toBe(false);
  });
});

describe("readRollout: what the pods say", () => {
  const problem = (...pods: PodView[]) => readRollout(deployment({}), pods).problem?.reason;

  test("a standing sandbox without a container pulls its image", () => {
    const creating = { state: { waiting: { reason: "ContainerCreating" } }, imageID: "" };
    expect(readRollout(deployment({}), [pod(creating)]).pulling).toBe(true);
    expect(readRollout(deployment({}), [pod(creating, { conditions: [] })]).pulling).toBe(false);
    expect(readRollout(deployment({ availableReplicas: 2 }), [pod(creating)]).pulling).toBe(false);
  });

  test.each<[string, object, string | undefined]>([
    ["an instance that starts", { state: { running: {} } }, undefined],
    ["a crash loop", { state: { waiting: { reason: "CrashLoopBackOff" } } }, "ContainerCrashing"],
    [
      "the moment between two crashes",
      { state: { running: {} }, lastState: { terminated: { exitCode: 1 } } },
      "ContainerCrashing",
    ],
    [
      "an instance that crashed once and serves",
      { ready: true, lastState: { terminated: { exitCode: 1 } } },
      undefined,
    ],
    ["no memory left", { state: { terminated: { reason: "OOMKilled" } } }, "OutOfMemory"],
    [
      "a crash loop for want of memory",
      {
        state: { waiting: { reason: "CrashLoopBackOff" } },
        lastState: { terminated: { reason: "OOMKilled" } },
      },
      "OutOfMemory",
    ],
    [
      "an image that does not exist",
      { state: { waiting: { reason: "ImagePullBackOff" } } },
      "ImagePullFailed",
    ],
    [
      "a missing Secret",
      { state: { waiting: { reason: "CreateContainerConfigError" } } },
      "ContainerInvalid",
    ],
  ])("%s", (_, container, reason) => {
    expect(problem(pod(container))).toBe(reason);
  });

  test("an instance without a node, and one that the quota refuses", () => {
    const unschedulable = [{ type: "PodScheduled", status: "False", reason: "Unschedulable" }];
    expect(problem({ metadata: {}, status: { conditions: unschedulable } })).toBe("Unschedulable");
    const failure = {
      type: "ReplicaFailure",
      status: "True",
      message: "pods is forbidden: exceeded quota: q",
    };
    expect(readRollout(deployment({ conditions: [failure] }), []).problem?.reason).toBe("QuotaExceeded");
  });

  test("an instance that was up and no longer answers, but not one that starts", () => {
    const running = {
      ready: false,
      started: true,
      state: { running: { startedAt: "2026-01-01T00:00:10Z" } },
    };
    const since = (lastTransitionTime: string) => [{ type: "Ready", status: "False", lastTransitionTime }];
    expect(problem(pod(running, { conditions: since("2026-01-01T00:00:09Z") }))).toBeUndefined();
    expect(problem(pod(running, { conditions: since("2026-01-01T00:05:00Z") }))).toBe("ProbeFailing");
  });

  test("pods that are being deleted say nothing", () => {
    const gone = pod({ state: { waiting: { reason: "CrashLoopBackOff" } } });
    gone.metadata.deletionTimestamp = "2026-01-01T00:00:00Z";
    expect(problem(gone)).toBeUndefined();
  });

  test("the digest is that of the newest instance that has one", () => {
    const digest = (letter: string) => `sha256:${letter.repeat(64)}`;
    const older = pod({ imageID: `registry.example/app@${digest("a")}` }, {}, "older");
    const newer = pod({ imageID: digest("b") }, {}, "newer");
    newer.metadata.creationTimestamp = "2026-01-02T00:00:00Z";
    expect(readRollout(deployment({}), [older, newer]).imageDigest).toBe(digest("b"));
    expect(readRollout(deployment({}), [pod({ imageID: "" })]).imageDigest).toBeUndefined();
  });
});
