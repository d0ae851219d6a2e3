import { describe, expect, test } from "vitest";
import type { PodView } from "./pod-problem.ts";
import { type DeploymentView, explainMiss, readRollout as read } from "./rollout.ts";

const madeFrom = (hash: string) => ({ annotations: { "slipway.dev/settings-hash": hash } });
const version = { settingsHash: "new", image: "registry.example:5000/app:2" };
const readRollout = (object: DeploymentView | undefined, pods: readonly PodView[]) =>
  read(object, pods, version);

function deployment(status: DeploymentView["status"], replicas = 2, hash = "new"): DeploymentView {
  return {
    metadata: { generation: 3 },
    spec: { replicas, template: { metadata: madeFrom(hash) } },
    status: { observedGeneration: 3, replicas, updatedReplicas: replicas, ...status },
  };
}

function pod(container: object, extra: object = {}, name = "one", hash = "new"): PodView {
  return {
    metadata: { name, creationTimestamp: "2026-01-01T00:00:00Z", ...madeFrom(hash) },
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
    ["a Deployment of other settings", deployment({ availableReplicas: 2 }, 2, "old"), false],
    ["numbers of an older spec", deployment({ observedGeneration: 2, availableReplicas: 2 }), false],
    ["one not updated", deployment({ updatedReplicas: 1, availableReplicas: 2 }), false],
    ["an old instance still serving", deployment({ replicas: 3, availableReplicas: 3 }), false],
    ["one not available", deployment({ availableReplicas: 1 }), false],
    ["scaled to nothing", deployment({}, 0), true],
    [
      "created without instances, not observed yet",
      { ...deployment({}, 0), metadata: { generation: 1 }, status: undefined },
      true,
    ],
    [
      "created with instances, not observed yet",
      { ...deployment({}), metadata: { generation: 1 }, status: undefined },
      false,
    ],
    [
      "scaled to nothing, not observed yet",
      { ...deployment({}, 0), metadata: { generation: 2 }, status: { observedGeneration: 1, replicas: 1 } },
      false,
    ],
    ["old instances left after scaling to nothing", deployment({ replicas: 1 }, 0), false],
  ])("%s", (_, object, complete) => {
    expect(readRollout(object, []).complete).toBe(complete);
  });

  test("a missed deadline counts only for the spec that missed it", () => {
    const lastUpdateTime = "2026-01-01T00:05:00Z";
    const reason = "ProgressDeadlineExceeded";
    const conditions = [{ type: "Progressing", status: "False", reason, lastUpdateTime }];
    const stuckSince = (status: DeploymentView["status"]) =>
      readRollout(deployment({ conditions, ...status }), []).stuckSince;
    expect(stuckSince({})).toBe(lastUpdateTime);
    expect(stuckSince({ observedGeneration: 2 })).toBeUndefined();
    expect(stuckSince({ availableReplicas: 2 })).toBeUndefined();
  });
});

describe("readRollout: the pods", () => {
  const problem = (...pods: PodView[]) => readRollout(deployment({}), pods).problem?.reason;

  test("an image is pulled from the kubelet's Event until the container has one", () => {
    const creating = { state: { waiting: { reason: "ContainerCreating" } }, imageID: "" };
    const pulling = { ...pod(creating), pullBegun: true };
    const started = { ...pod({ state: { running: {} }, imageID: "app@sha256:1" }), pullBegun: true };
    expect(readRollout(deployment({}), [pod(creating)]).pulling).toBe(false);
    expect(readRollout(deployment({}), [pulling]).pulling).toBe(true);
    expect(readRollout(deployment({}), [started]).pulling).toBe(false);
    expect(readRollout(deployment({ availableReplicas: 2 }), [pulling]).pulling).toBe(false);
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
      { state: { waiting: { reason: "CreateContainerConfigError", message: 'secret "a" not found' } } },
      "ContainerInvalid",
    ],
    [
      "a Secret that the kubelet does not know yet",
      {
        state: {
          waiting: {
            reason: "CreateContainerConfigError",
            message: "failed to sync secret cache: timed out waiting for the condition",
          },
        },
      },
      undefined,
    ],
  ])("%s", (_, container, reason) => {
    expect(problem(pod(container))).toBe(reason);
  });

  describe("a probe that had an instance ended", () => {
    const terminated = { startedAt: "2026-01-01T00:00:00Z", finishedAt: "2026-01-01T00:01:00Z" };
    const killed = (probe: "liveness" | "startup", container: object, reason = "Error") => ({
      ...pod({ ...container, lastState: { terminated: { ...terminated, reason } } }),
      probeKills: [{ probe, at: "2026-01-01T00:00:55Z" }],
    });
    const restarted = { state: { running: {} } };
    const waits = (reason: string) => ({ state: { waiting: { reason } } });

    test.each<[string, PodView, string | undefined]>([
      ["of its start", killed("startup", restarted), "StartupTimeout"],
      ["of its start, again and again", killed("startup", waits("CrashLoopBackOff")), "StartupTimeout"],
      ["of its liveness", killed("liveness", restarted), "ProbeFailing"],
      ["of its liveness, again and again", killed("liveness", waits("CrashLoopBackOff")), "ProbeFailing"],
      ["though its memory ended first", killed("startup", restarted, "OOMKilled"), "OutOfMemory"],
      ["before its image was gone", killed("startup", waits("ImagePullBackOff")), "ImagePullFailed"],
      ["and that serves again", killed("liveness", { ...restarted, ready: true }), undefined],
    ])("%s", (_, one, reason) => {
      expect(problem(one)).toBe(reason);
    });
  });

  test("an instance without a node, and one that the quota refuses", () => {
    const unschedulable = [{ type: "PodScheduled", status: "False", reason: "Unschedulable" }];
    expect(problem(pod({}, { conditions: unschedulable }))).toBe("Unschedulable");
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

  test("pods that are being deleted do not count", () => {
    const deleted = pod({ state: { waiting: { reason: "CrashLoopBackOff" } } });
    deleted.metadata.deletionTimestamp = "2026-01-01T00:00:00Z";
    expect(problem(deleted)).toBeUndefined();
  });

  test("instances of other settings do not count", () => {
    const crashing = { state: { waiting: { reason: "CrashLoopBackOff" } }, imageID: "" };
    expect(problem(pod(crashing, {}, "older", "old"))).toBeUndefined();
    expect(problem(pod(crashing, {}, "older", "old"), pod(crashing))).toBe("ContainerCrashing");
  });

  const digest = (letter: string) => `sha256:${letter.repeat(64)}`;
  const repository = "registry.example:5000/app";
  const digestOf = (...pods: PodView[]) => readRollout(deployment({}), pods).imageDigest;

  test("the digest is that of the newest instance that has one", () => {
    const older = pod({ imageID: `${repository}@${digest("a")}` }, {}, "older");
    const newer = pod({ imageID: `${repository}@${digest("b")}` }, {}, "newer");
    newer.metadata.creationTimestamp = "2026-01-02T00:00:00Z";
    expect(digestOf(older, newer)).toBe(digest("b"));
    expect(digestOf(pod({ imageID: `${repository}@${digest("a")}` }, {}, "older", "old"))).toBeUndefined();
  });

  test.each([
    ["no image yet", ""],
    ["the image's own id, which no registry knows", digest("a")],
    ["the same image of another repository", `registry.example:5000/other@${digest("a")}`],
  ])("no digest is known from %s", (_, imageID) => {
    expect(digestOf(pod({ imageID }))).toBeUndefined();
  });

  test.each([
    ["nginx", "docker.io/library/nginx"],
    ["nginx:1.29", "docker.io/library/nginx"],
    ["team/app:1", "docker.io/team/app"],
    ["docker.io/nginx:1", "docker.io/library/nginx"],
    ["localhost/app:1", "localhost/app"],
    ["registry.example:5000/app", "docker-pullable://registry.example:5000/app"],
    [`registry.example/app:1@${digest("c")}`, "registry.example/app"],
  ])("%s is %s", (image, named) => {
    const running = pod({ imageID: `${named}@${digest("a")}` });
    expect(read(deployment({}), [running], { ...version, image }).imageDigest).toBe(digest("a"));
  });

  test("every wanted instance is identified once its image is known", () => {
    const known = (name: string) => pod({ imageID: digest("a") }, {}, name);
    const identified = (...pods: PodView[]) => readRollout(deployment({}), pods).identified;
    expect(identified(known("one"))).toBe(false);
    expect(identified(known("one"), pod({ imageID: "" }, {}, "two"))).toBe(false);
    expect(identified(known("one"), known("two"))).toBe(true);
  });
});

describe("explainMiss", () => {
  const app = { port: 3000 };
  const messageFor = (healthcheckPath: string | undefined, ...pods: PodView[]) =>
    explainMiss(readRollout(deployment({}), pods), { ...app, healthcheckPath });
  const silent = pod({ state: { running: {} }, ready: false });

  test("names the port or the health check of an application that runs and does not answer", () => {
    expect(messageFor(undefined, silent)).toBe("The application runs, but nothing answers on port 3000.");
    expect(messageFor("/up", silent)).toBe(
      "The application runs, but its health check /up on port 3000 does not succeed.",
    );
  });

  test("names the command of a worker that runs and is not ready", () => {
    expect(explainMiss(readRollout(deployment({}), [silent]), {})).toBe(
      "The worker runs, but its readiness command does not succeed.",
    );
  });

  test("names a fault before a missing instance", () => {
    const crashing = pod({ state: { waiting: { reason: "CrashLoopBackOff" } } }, {}, "two");
    expect(messageFor(undefined, silent, crashing)).toContain("exits again and again");
    const creating = pod({ state: { waiting: { reason: "ContainerCreating" } } });
    expect(messageFor(undefined, { ...creating, pullBegun: true })).toContain("not pulled");
    expect(messageFor(undefined)).toBe("The instances did not start to serve in time.");
  });
});
