import { Store } from "@slipway/controller-runtime";
import type { Condition, Deployment, Project } from "@slipway/crds";
import { beforeEach, expect, test } from "vitest";
import { exampleWorker } from "../../../test/kit/operator/projects.ts";
import { isAhead, type LiveTemplate, RolloutLimiter } from "./rollout-limiter.ts";
import { waitingIn } from "./sources.ts";

const namespace = "slipway-org-alpha";
let projects: Store<Project>;
let live: Map<string, string>;
let replicas: number | undefined;
let now = 0;
let limiter: RolloutLimiter;

beforeEach(() => {
  projects = new Store<Project>({});
  projects.replace([], "0");
  live = new Map();
  replicas = undefined;
  now = 1_000_000;
  limiter = new RolloutLimiter({
    projects,
    deploymentOf: ({ metadata }) => template(live.get(metadata.name)),
    clock: { monotonic: () => now },
    limit: 2,
  });
});

const template = (hash: string | undefined): LiveTemplate | undefined =>
  hash === undefined
    ? undefined
    : ({
        spec: { replicas, template: { metadata: { annotations: { "slipway.dev/settings-hash": hash } } } },
      } as LiveTemplate);

let version = 0;
const deployment = (
  hash: string,
  status: Deployment["status"],
  plan = "basic",
  valuesOnly = false,
): Deployment => ({
  id: hash,
  status,
  startedAt: "2026-01-01T00:00:00Z",
  settingsHash: hash,
  updatedImage: false,
  image: { reference: "app" },
  settings: { plan },
  ...(valuesOnly ? { valuesOnly } : {}),
});
const ofValues = (hash: string, status: Deployment["status"]) => deployment(hash, status, "basic", true);
const accepted = condition("Accepted", "True", "Accepted");
const queued = condition("VariablesReady", "False", "RolloutQueued");

function condition(type: string, status: "True" | "False", reason: string): Condition {
  return { type, status, reason, message: "", lastTransitionTime: "2026-01-01T00:00:00Z" };
}

/** A project with these deployments, newest first. */
function put(
  name: string,
  deployments: Deployment[],
  spec: Partial<Project["spec"]> = {},
  conditions = [accepted],
): Project {
  version += 1;
  const project = exampleWorker({ namespace, name }, { variableGroups: ["shared"], ...spec });
  const stored: Project = {
    ...project,
    metadata: { ...project.metadata, uid: name, generation: 1, resourceVersion: String(version) },
    status: { deployments, conditions, observedGeneration: 1 },
  };
  projects.upsert(stored);
  return stored;
}
const settled = (name: string) => put(name, [deployment("old", "succeeded")]);
const waiting = (name: string) => put(name, [deployment("old", "succeeded")], {}, [accepted, queued]);
const rolling = (name: string) => put(name, [ofValues("new", "in_progress"), deployment("old", "succeeded")]);
const admit = (project: Project) => limiter.admit(project, project.status?.deployments ?? []);

test("admits as many as its limit, before any status shows it", () => {
  expect(["a", "b", "c"].map((name) => admit(settled(name)))).toEqual([true, true, false]);
  // Again, by the next reconcile of the same project.
  expect(admit(settled("a"))).toBe(true);
});

test("admits the next once a deployment has ended, and not while it runs", () => {
  const [one, , three] = [settled("a"), settled("b"), settled("c")];
  expect([admit(one), admit(settled("b"))]).toEqual([true, true]);
  rolling("a");
  expect(admit(three)).toBe(false);
  put("a", [deployment("new", "failed"), deployment("old", "succeeded")]);
  expect(admit(three)).toBe(true);
});

test("counts no deployment with other settings, no paused project and none without shared variables", () => {
  put("a", [deployment("new", "in_progress", "premium"), deployment("old", "succeeded")]);
  put("b", [deployment("new", "in_progress")]);
  put("c", [ofValues("new", "in_progress"), deployment("old", "succeeded")], { paused: true });
  put("d", [ofValues("new", "in_progress"), deployment("old", "succeeded")], { variableGroups: undefined });
  expect([admit(settled("e")), admit(settled("f")), admit(settled("g"))]).toEqual([true, true, false]);
});

test("has a project that is being rolled go on, whatever the limit", () => {
  rolling("a");
  rolling("b");
  expect(admit(settled("c"))).toBe(false);
  expect(admit(rolling("d"))).toBe(true);
});

// Shows: docs/variable-groups.md#changes: none is rolled twice, and none is left out
test("counts what an operator has applied that ended before it wrote the status, and has it go on", () => {
  const [one, two] = [settled("a"), settled("b")];
  live.set("a", "new");
  live.set("b", "old");
  expect(admit(one)).toBe(true);
  expect(admit(two)).toBe(true);
  expect(admit(settled("c"))).toBe(false);
  expect(isAhead([], template("new"))).toBe(false);
  expect(isAhead([deployment("failed", "failed")], template("returned"))).toBe(false);
});

test("forgets one that shows no sign of its rollout, that needs none any more, or that is deleted", () => {
  const [one, two, three] = [settled("a"), settled("b"), settled("c")];
  expect([admit(one), admit(two), admit(three)]).toEqual([true, true, false]);
  limiter.release(one);
  expect(admit(three)).toBe(true);
  projects.remove(two);
  expect(admit(one)).toBe(true);
  expect(admit(settled("d"))).toBe(false);
  now += 60_001;
  expect(admit(settled("d"))).toBe(true);
});

// Shows: docs/variable-groups.md#changes: Only rollouts that nothing but values caused
test("counts no restart, attachment or detachment, though their settings are those of the deployment before", () => {
  put("a", [deployment("restarted", "in_progress"), deployment("old", "succeeded")]);
  put("b", [deployment("attached", "in_progress"), deployment("old", "succeeded")]);
  expect([admit(settled("c")), admit(settled("d")), admit(settled("e"))]).toEqual([true, true, false]);
});

test("a project that is being deployed needs a place for other values, too", () => {
  rolling("a");
  rolling("b");
  expect(admit(put("c", [deployment("new", "in_progress"), deployment("old", "succeeded")]))).toBe(false);
});

// Shows: docs/variable-groups.md#changes: values that keep changing
test("values that keep changing are taken over once while a project is rolled, and then wait for its end", () => {
  expect(admit(rolling("a"))).toBe(true);
  const changed = [
    ofValues("newer", "in_progress"),
    ofValues("new", "superseded"),
    deployment("old", "succeeded"),
  ];
  expect(admit(put("a", changed))).toBe(false);
  expect(admit(put("a", [ofValues("newer", "failed"), ...changed.slice(1)]))).toBe(true);
});

test("a project comes after those that wait, but not after those that are refused, paused or being rolled", () => {
  put("refused", [deployment("old", "succeeded")], {}, [
    condition("Accepted", "False", "PlanUnknown"),
    queued,
  ]);
  put("paused", [deployment("old", "succeeded")], { paused: true }, [accepted, queued]);
  put("rolling", [ofValues("new", "in_progress"), deployment("old", "succeeded")], {}, [accepted, queued]);
  expect(admit(settled("first"))).toBe(true);
  limiter.release(settled("first"));
  waiting("late");
  expect(admit(settled("flipping"))).toBe(false);
  expect(admit(waiting("late"))).toBe(true);
});

test("those that have waited longest are woken first", () => {
  for (const [name, minute] of [
    ["a", "02"],
    ["b", "01"],
    ["c", "03"],
  ] as const) {
    const since = { ...queued, lastTransitionTime: `2026-01-01T00:${minute}:00Z` };
    put(name, [deployment("old", "succeeded")], {}, [accepted, since]);
  }
  settled("d");
  expect(waitingIn(namespace, projects).map(({ metadata }) => metadata.name)).toEqual(["b", "a", "c"]);
});

test("one whose rollout does not begin counts for a minute, however often it asks, and then leaves its place to others", () => {
  expect([admit(settled("a")), admit(settled("b"))]).toEqual([true, true]);
  now += 40_000;
  expect(admit(settled("a"))).toBe(true);
  now += 20_000;
  expect(admit(settled("a"))).toBe(false);
  expect([admit(settled("c")), admit(settled("d")), admit(settled("e"))]).toEqual([true, true, false]);
  now += 240_001;
  expect(admit(settled("a"))).toBe(true);
});

test("a Deployment that is ahead of its project counts only while the spec is carried out and there are instances", () => {
  for (const name of ["a", "b"]) {
    put(name, [deployment("old", "succeeded")], {}, [condition("Accepted", "False", "PlanUnknown")]);
    live.set(name, "new");
  }
  expect([admit(settled("c")), admit(settled("d")), admit(settled("e"))]).toEqual([true, true, false]);
  settled("a");
  settled("b");
  limiter.release(settled("c"));
  expect(admit(settled("e"))).toBe(false);
  replicas = 0;
  expect(admit(settled("e"))).toBe(true);
});

test("as many jobs take over values in ten seconds as there may be rollouts", () => {
  const runs = () => limiter.admitRuns(settled("job"));
  expect([runs(), runs(), runs()]).toEqual([true, true, false]);
  expect(admit(settled("a"))).toBe(true);
  now += 10_001;
  expect(runs()).toBe(true);
});
