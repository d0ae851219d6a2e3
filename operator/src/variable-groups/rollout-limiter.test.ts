import { Store } from "@slipway/controller-runtime";
import type { Deployment, Project } from "@slipway/crds";
import { beforeEach, expect, test } from "vitest";
import { exampleWorker } from "../../../test/kit/operator/projects.ts";
import { isAhead, type LiveTemplate, RolloutLimiter } from "./rollout-limiter.ts";

const namespace = "slipway-org-alpha";
let projects: Store<Project>;
let live: Map<string, string>;
let now = 0;
let limiter: RolloutLimiter;

beforeEach(() => {
  projects = new Store<Project>({});
  projects.replace([], "0");
  live = new Map();
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
        spec: { template: { metadata: { annotations: { "slipway.dev/settings-hash": hash } } } },
      } as LiveTemplate);

let version = 0;
const deployment = (hash: string, status: Deployment["status"], plan = "basic"): Deployment => ({
  id: hash,
  status,
  startedAt: "2026-01-01T00:00:00Z",
  settingsHash: hash,
  updatedImage: false,
  image: { reference: "app" },
  settings: { plan },
});

/** A project with these deployments, newest first. */
function put(name: string, deployments: Deployment[], spec: Partial<Project["spec"]> = {}): Project {
  version += 1;
  const project = exampleWorker({ namespace, name }, { variableGroups: ["shared"], ...spec });
  const stored: Project = {
    ...project,
    metadata: { ...project.metadata, uid: name, resourceVersion: String(version) },
    status: { deployments },
  };
  projects.upsert(stored);
  return stored;
}
const settled = (name: string) => put(name, [deployment("old", "succeeded")]);
const rolling = (name: string) =>
  put(name, [deployment("new", "in_progress"), deployment("old", "succeeded")]);
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
  put("c", [deployment("new", "in_progress"), deployment("old", "succeeded")], { paused: true });
  put("d", [deployment("new", "in_progress"), deployment("old", "succeeded")], { variableGroups: undefined });
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
