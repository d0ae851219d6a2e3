import type { Deployment, ProjectSpec } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import { exampleProject } from "../../../../test/kit/operator/projects.ts";
import {
  advanceDeployment,
  beginDeployment,
  pauseDeployment,
  remainingMs,
  settingsOf,
} from "./deployments.ts";
import { mayRollOut, wantedPreDeploy } from "./pre-deploy.ts";

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second));
const digest = (letter: string) => `sha256:${letter.repeat(64)}`;
const preDeployCommand = ["migrate"];
const ref = { namespace: "slipway-org-alpha", name: "p1" };

/** The deployments after a spec was deployed. */
function begin(
  list: readonly Deployment[],
  settingsHash: string,
  spec: Partial<ProjectSpec> = {},
): Deployment[] {
  const project = exampleProject(ref, { preDeployCommand, ...spec });
  const preDeploy = wantedPreDeploy(project.spec);
  const wanted = { settingsHash, settings: settingsOf(project), ...(preDeploy ? { preDeploy } : {}) };
  const begun = beginDeployment(list, wanted, { uid: "uid", generation: 1, now: at(0) });
  if (!begun) {
    throw new Error("no room");
  }
  return begun;
}

/** The same once the command of the newest has ended so. */
function ran(list: readonly Deployment[], status: "succeeded" | "failed", observedAt?: string): Deployment[] {
  const [newest, ...older] = list;
  if (!newest?.preDeploy) {
    throw new Error("it has no command");
  }
  const preDeploy = {
    ...newest.preDeploy,
    status,
    ...(observedAt ? { finishedAt: at(0).toISOString(), observedAt } : {}),
  };
  const failure = status === "failed" ? "It failed." : undefined;
  return advanceDeployment([{ ...newest, preDeploy }, ...older], { complete: false, failure }, at(5));
}
const serve = (list: readonly Deployment[], letter: string) =>
  advanceDeployment(list, { complete: true, digest: digest(letter) }, at(9));
const runs = (list: readonly Deployment[]) => list.map(({ preDeploy }) => preDeploy?.status);

describe("a deployment", () => {
  test("runs the command of its spec, and none without one", () => {
    expect(runs(begin([], "a"))).toEqual(["pending"]);
    const [none] = begin([], "a", { preDeployCommand: undefined });
    expect(none).not.toHaveProperty("preDeploy");
  });

  test("begins again with another command where that of the newest has not succeeded", () => {
    for (const list of [begin([], "a"), ran(begin([], "a"), "failed")]) {
      for (const other of [{ preDeployCommand: ["other"] }, { preDeployTimeoutSeconds: 10 }]) {
        const after = begin(list, "a", other);
        expect(runs(after)).toEqual(["pending", list[0]?.preDeploy?.status]);
        expect(after[0]?.id).not.toBe(list[0]?.id);
      }
      expect(runs(begin(list, "a", { preDeployCommand: undefined }))).toEqual([
        undefined,
        list[0]?.preDeploy?.status,
      ]);
      expect(begin(list, "a")).toEqual(list);
    }
  });

  test("does not begin again with another command where that of the newest has succeeded, or it has none", () => {
    const list = ran(begin([], "a"), "succeeded");
    expect(begin(list, "a", { preDeployCommand: ["other"] })).toEqual(list);
    const none = begin([], "a", { preDeployCommand: undefined });
    expect(begin(none, "a")).toEqual(none);
  });

  test("after a pause repeats a command that had not succeeded, and no other", () => {
    const after = (list: Deployment[]) => begin(pauseDeployment(list, at(6)), "a");
    expect(runs(after(begin([], "a")))).toEqual(["pending", "pending"]);
    const done = after(ran(begin([], "a"), "succeeded", "2026-01-01T00:00:05Z"));
    expect(runs(done)).toEqual(["succeeded", "succeeded"]);
    expect(done[0]?.id).not.toBe(done[1]?.id);
  });

  test("has its deadline from when the end of its command was observed", () => {
    const [newest] = ran(begin([], "a"), "succeeded", "2026-01-01T00:00:05Z");
    expect(remainingMs(newest, 60_000, at(10))).toBe(55_000);
    expect(remainingMs(begin([], "a")[0], 60_000, at(10))).toBe(50_000);
  });
});

describe("a rollback", () => {
  const restartedAt = "2026-01-01T00:00:00Z";
  const list = serve(ran(begin(serve(ran(begin([], "a"), "succeeded"), "a"), "b"), "succeeded"), "b");
  const image = { url: "registry.example/team/app:1.0.0", isPublic: true, digest: digest("a") };
  const skip = { restartedAt, preDeploySkip: { deployment: list[1]?.id ?? "", restartedAt } };

  test("skips the command, and so do later changes of what has the same image and variables", () => {
    const back = begin(list, "c", { ...skip, image });
    expect(runs(back)).toEqual(["skipped", "succeeded", "succeeded"]);
    expect(runs(begin(serve(back, "a"), "d", { ...skip, image, plan: "premium" }))[0]).toBe("skipped");
  });

  test.each<[string, Partial<ProjectSpec>]>([
    ["another image", { image: { ...image, digest: digest("c") } }],
    ["the tag in place of the manifest", { image: { ...image, digest: undefined } }],
    ["other variables", { image, envsFrom: [{ name: "env" }] }],
    ["the same settings deployed again later", { image, restartedAt: "2026-01-01T00:00:01Z" }],
    ["a deployment that is not listed", { image, preDeploySkip: { deployment: "d0", restartedAt } }],
  ])("runs it with %s", (_, change) => {
    expect(runs(begin(list, "c", { ...skip, image, ...change }))[0]).toBe("pending");
  });
});

test("instances wait for the command of their deployment, and those of settings that are not deployed yet for any", () => {
  const { spec } = exampleProject(ref, { preDeployCommand });
  const without = exampleProject(ref).spec;
  const pending = begin([], "a");
  const may = (of: ProjectSpec, newest?: Deployment) => mayRollOut(of, "a", newest);
  expect([may(spec), may(without)]).toEqual([false, true]);
  expect([may(spec, pending[0]), may(without, pending[0])]).toEqual([false, false]);
  expect(may(spec, ran(pending, "succeeded")[0])).toBe(true);
  expect(may(spec, ran(pending, "failed")[0])).toBe(false);
  expect([may(spec, begin([], "b")[0]), may(without, begin([], "b")[0])]).toEqual([false, true]);
});
