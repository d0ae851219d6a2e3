import { failure } from "@slipway/builder/contract";
import type { Build, Project } from "@slipway/crds";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { exampleBuild } from "../../../test/kit/operator/builds.ts";
import { type Decision, decide, type Observation } from "./decide.ts";
import { projectState } from "./observer.ts";
import type { PodState } from "./pod-state.ts";
import { hasNewer, isAdmissible, isEnded, isNewer, requestedAt } from "./queue.ts";

const settings = { tries: 3, limits: { deadlineSeconds: 1_800, publishSeconds: 600 } };
const NOW = new Date("2026-01-01T01:00:00Z");
const digest = `sha256:${"a".repeat(64)}`;

const observed = (more: Partial<Observation> = {}): Observation => ({
  build: exampleBuild("b1", 1),
  hasNewer: false,
  project: { isDeployed: false, isSuperseded: false, rollout: "waiting" },
  attempt: 0,
  pod: undefined,
  hasOtherPods: false,
  isAdmissible: true,
  isLogStored: true,
  now: NOW,
  ...more,
});
const next = (more: Partial<Observation>) => decide(observed(more), settings);
const pod = (state: PodState, createdAt = NOW) => ({ state, createdAt: createdAt.toISOString() });
const broken = (passing: boolean, endedAt?: string): PodState => ({
  state: "failed",
  step: "build",
  report: {},
  failure: failure("BUILD_ENGINE_FAILED"),
  passing,
  endedAt,
});
const publishing = exampleBuild("b1", 1, {
  status: {
    phase: "building",
    step: "publish",
    conditions: [
      {
        type: "Succeeded",
        status: "True",
        reason: "Pushed",
        message: "",
        lastTransitionTime: "2026-01-01T00:55:00Z",
      },
    ],
  },
});

describe("the queue", () => {
  test("a build waits for its turn, then for pods of other builds, then starts", () => {
    expect(next({ isAdmissible: false })).toMatchObject({ do: "wait", reason: "Queued" });
    expect(next({ hasOtherPods: true })).toEqual({ do: "deletePods" });
    expect(next({})).toEqual({ do: "start", attempt: 1 });
  });

  test("a newer build supersedes it at any step, unless its image was deployed", () => {
    const superseded = { do: "end", phase: "superseded" };
    expect(next({ hasNewer: true })).toEqual(superseded);
    const running = pod({ state: "running", step: "build", report: {} });
    expect(next({ hasNewer: true, attempt: 1, pod: running })).toEqual(superseded);
    expect(next({ hasNewer: true, build: publishing })).toEqual(superseded);
    const handedOver = { isDeployed: true, isSuperseded: false, rollout: "waiting" } as const;
    expect(next({ hasNewer: true, build: publishing, project: handedOver })).toMatchObject({ do: "wait" });
    const overtaken = { ...handedOver, isDeployed: false, isSuperseded: true };
    expect(next({ build: publishing, project: overtaken })).toEqual(superseded);
    expect(next({ project: undefined })).toEqual(superseded);
  });
});

describe("attempts", () => {
  test("a fault of the platform is retried after a backoff, once the pod is deleted", () => {
    const justNow = pod(broken(true, "2026-01-01T00:59:55Z"));
    expect(next({ attempt: 1, pod: justNow })).toMatchObject({ do: "wait", afterMs: 10_000 });
    const earlier = pod(broken(true, "2026-01-01T00:59:00Z"));
    expect(next({ attempt: 1, pod: earlier })).toEqual({ do: "deletePods" });
    expect(next({ attempt: 1 })).toEqual({ do: "start", attempt: 2 });
  });

  test("attempts are limited, and a fault of the client is not retried", () => {
    const old = "2026-01-01T00:00:00Z";
    expect(next({ attempt: 3, pod: pod(broken(true, old)) })).toMatchObject({ do: "end", phase: "failed" });
    expect(next({ attempt: 1, pod: pod(broken(false, old)) })).toMatchObject({ do: "end", phase: "failed" });
  });

  test("no build ends before its log is stored", () => {
    expect(next({ attempt: 1, isLogStored: false, pod: pod(broken(false)) })).toMatchObject({
      reason: "KeepingLog",
    });
    const done = pod({ state: "done", report: { digest } });
    expect(next({ attempt: 1, isLogStored: false, pod: done })).toMatchObject({ reason: "KeepingLog" });
    expect(next({ attempt: 1, pod: done })).toEqual({ do: "built", report: { digest } });
  });

  test("an image that cannot be pulled fails earlier than a pod without a node", () => {
    const tenMinutes = new Date("2026-01-01T00:50:00Z");
    const waiting = (cannotPull: boolean) => pod({ state: "waiting", cannotPull }, tenMinutes);
    expect(next({ attempt: 3, pod: waiting(false) })).toMatchObject({ do: "wait", afterMs: 1_200_000 });
    expect(next({ attempt: 3, pod: waiting(true) })).toMatchObject({ do: "end", phase: "failed" });
  });
});

describe("publishing", () => {
  const view = (rollout: "waiting" | "served" | "failed", more: object = {}) => ({
    build: publishing,
    project: { isDeployed: true, isSuperseded: false, rollout, ...more },
  });
  test("the image is deployed, and its rollout decides the result", () => {
    expect(next({ build: publishing })).toEqual({ do: "deployImage" });
    expect(next(view("waiting"))).toMatchObject({ do: "wait", afterMs: 300_000 });
    expect(next(view("served"))).toEqual({ do: "end", phase: "success" });
    expect(next(view("failed", { rolloutMessage: "It crashes." }))).toMatchObject({
      phase: "failed",
      step: "publish",
      failure: { code: "PROJECT_PUBLISH_FAILED", message: expect.stringContaining("It crashes.") as string },
    });
    expect(next({ ...view("waiting"), now: new Date("2026-01-01T01:06:00Z") })).toMatchObject({
      failure: { code: "PROJECT_PUBLISH_TIMEOUT" },
    });
  });
});

/** Events in any order: builds are requested, pods progress, fail or vanish, rollouts end, builds are reconciled. */
type Happening = {
  what: "ask" | "look" | "pass" | "fail" | "vanish" | "roll" | "rollBack" | "forget";
  which: number;
};

const happening: fc.Arbitrary<Happening> = fc.record({
  what: fc.constantFrom(
    "ask",
    "look",
    "look",
    "look",
    "pass",
    "pass",
    "fail",
    "vanish",
    "roll",
    "rollBack",
    "forget",
  ),
  which: fc.nat({ max: 5 }),
});

class World {
  readonly builds: Build[] = [];
  asked = 0;
  readonly pods = new Map<string, { attempt: number; state: PodState }>();
  readonly attempts = new Map<string, number>();
  readonly handedOver: Build[] = [];
  readonly ends = new Map<string, number>();
  readonly project = {
    metadata: { name: "pshop", uid: "p" },
    spec: { type: "app" },
    status: {},
  } as unknown as Project;
  #clock = Date.parse("2026-01-01T01:00:00Z");

  happen({ what, which }: Happening): void {
    const name = this.builds[which % Math.max(1, this.builds.length)]?.metadata.name;
    const pod = name === undefined ? undefined : this.pods.get(name);
    const newest = this.project.status?.deployments?.[0];
    switch (what) {
      case "ask":
        if (this.asked < 6) {
          this.builds.push(exampleBuild(`b${this.asked}`, Math.floor(this.asked / 2)));
          this.asked += 1;
        }
        return;
      case "forget": {
        // Ended builds are deleted later, newer ones possibly before older ones.
        const index = which % Math.max(1, this.builds.length);
        const [build] = this.builds.slice(index, index + 1);
        if (build && isEnded(build)) {
          this.builds.splice(index, 1);
        }
        return;
      }
      case "pass":
        if (pod) {
          pod.state = { state: "done", report: { digest: `sha256:${(name ?? "").repeat(32)}` } };
        }
        return;
      case "fail":
        if (pod) {
          pod.state = broken(which % 2 === 0);
        }
        return;
      case "vanish":
        if (name !== undefined) {
          this.pods.delete(name);
        }
        return;
      case "roll":
      case "rollBack":
        if (newest) {
          newest.status = what === "roll" ? "succeeded" : "failed";
        }
        return;
      case "look":
        if (name !== undefined) {
          this.look(which % this.builds.length);
        }
    }
  }

  look(index: number): Decision {
    this.#clock += 60_000;
    const build = this.builds[index] as Build;
    const { name } = build.metadata;
    const pod = this.pods.get(name);
    const decision = decide(
      {
        build,
        hasNewer: hasNewer(build, this.builds),
        project: projectState(build, this.project),
        attempt: this.attempts.get(name) ?? 0,
        pod: pod && { state: pod.state, createdAt: new Date(this.#clock).toISOString() },
        hasOtherPods: [...this.pods.keys()].some((other) => other !== name),
        isAdmissible: isAdmissible(build, this.builds, new Set(), { organization: 2, platform: 20 }),
        isLogStored: true,
        now: new Date(this.#clock),
      },
      settings,
    );
    this.#carryOut(build, decision);
    return decision;
  }

  #carryOut(build: Build, decision: Decision): void {
    const { name } = build.metadata;
    switch (decision.do) {
      case "deletePods":
        this.pods.clear();
        return;
      case "start":
        expect(this.pods.size).toBe(0);
        this.attempts.set(name, decision.attempt);
        this.pods.set(name, { attempt: decision.attempt, state: { state: "waiting", cannotPull: false } });
        build.status = { phase: "building" };
        return;
      case "built":
        build.status = {
          phase: "building",
          step: "publish",
          image: { reference: "r", digest: decision.report.digest },
        };
        this.pods.delete(name);
        return;
      case "deployImage": {
        expect(hasNewer(build, this.builds)).toBe(false);
        this.handedOver.push(build);
        const image = build.status?.image ?? { reference: "" };
        const { deployments = [] } = this.project.status ?? {};
        this.project.status = {
          build: { imageBuild: name, imageBuildAt: requestedAt(build), image },
          deployments: [{ image, status: "in_progress" } as (typeof deployments)[number], ...deployments],
        };
        return;
      }
      case "end":
        this.ends.set(name, (this.ends.get(name) ?? 0) + 1);
        build.status = { ...build.status, phase: decision.phase };
        this.pods.delete(name);
    }
  }
}

test("in any order of events a build ends once, and none is published after a newer one or once superseded", () => {
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 80 }), (happenings) => {
      const world = new World();
      for (const each of happenings) {
        const ended = world.builds.filter(isEnded).map((build) => [build, build.status?.phase] as const);
        world.happen(each);
        for (const [build, phase] of ended) {
          expect(build.status?.phase).toBe(phase);
        }
      }
      // Without further events every build ends.
      for (let round = 0; round < 40 && !world.builds.every(isEnded); round += 1) {
        world.builds.forEach((_, index) => void world.look(index));
        world.builds.forEach((_, which) => void world.happen({ what: "pass", which }));
        world.happen({ what: "roll", which: 0 });
      }
      expect(world.builds.filter((build) => !isEnded(build))).toEqual([]);
      expect([...world.ends.values()].every((count) => count === 1)).toBe(true);
      const order = world.handedOver;
      order.slice(1).forEach((build, index) => {
        expect(isNewer(build, order[index] as Build)).toBe(true);
      });
      for (const build of world.builds.filter(({ status }) => status?.phase === "success")) {
        expect(order).toContain(build);
      }
    }),
    { numRuns: 500 },
  );
});
