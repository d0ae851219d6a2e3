import type { KubernetesObject } from "@slipway/controller-runtime";
import { labels, type Project } from "@slipway/crds";
import { expect, test } from "vitest";
import { chartCatalog, exampleDatabase } from "../../../../test/kit/databases/examples.ts";
import { type DatabasePod, slimDatabasePod, targetsOf } from "./targets.ts";

/** A pod as the apiserver gives it, in which the server runs. */
function podOf(name: string, status: object = {}): DatabasePod {
  return slimDatabasePod({
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace: "slipway-org-alpha",
      uid: `uid-${name}`,
      labels: { [labels.organization]: "alpha", [labels.project]: "shop" },
    },
    spec: { nodeName: "n1", containers: [{ name: "database", env: [] }] },
    status: {
      podIP: "10.0.0.9",
      containerStatuses: [{ name: "database", state: { running: { startedAt: "2026-01-01T00:00:00Z" } } }],
      ...status,
    },
  } as KubernetesObject);
}

function targets(spec: Partial<Project["spec"]>, pods: DatabasePod[], change: Partial<Project> = {}) {
  const project = { ...exampleDatabase(spec), ...change };
  const store = {
    get: (_: string | undefined, name: string) => pods.find(({ metadata }) => metadata.name === name),
  };
  return targetsOf([project], store, chartCatalog, new Set(["postgresql", "valkey"]));
}

const three = [podOf("shop-0"), podOf("shop-1"), podOf("shop-2")];
const names = (...given: Parameters<typeof targets>) => targets(...given).map(({ instance }) => instance);

test("an instance is found by its pod", () => {
  expect(targets({ instances: 1 }, three)).toEqual([
    {
      organizationId: "alpha",
      projectId: "shop",
      projectUid: "2f1c",
      instance: "shop-0",
      type: "postgresql",
      namespace: "slipway-org-alpha",
      podUid: "uid-shop-0",
      ip: "10.0.0.9",
      node: "n1",
      container: "uid-shop-0/2026-01-01T00:00:00Z",
      serverName: "shop-0.shop-nodes.slipway-org-alpha.svc",
      expected: { replicas: 0, profile: "key_value", persistent: true },
    },
  ]);
});

test("an instance has the capacity of its volume claim, once that is known and where data are kept", () => {
  const status = { database: { storage: { capacity: 10 } } } as Project["status"];
  expect(targets({ instances: 1 }, three, { status })[0]?.claimBytes).toBe(10_737_418_240);
  expect(targets({ instances: 1 }, three)[0]?.claimBytes).toBeUndefined();
  const storage = { persistent: false, capacity: 10 };
  expect(targets({ instances: 1, storage }, three, { status })[0]?.claimBytes).toBeUndefined();
});

test("all instances that there are, are sampled", () => {
  expect(names({ instances: 3 }, three)).toEqual(["shop-0", "shop-1", "shop-2"]);
  const stopping = { status: { currentInstances: 2 } } as Partial<Project>;
  expect(names({ instances: 1 }, three, stopping)).toEqual(["shop-0", "shop-1"]);
});

test.each<[string, Partial<Project["spec"]>, DatabasePod[]]>([
  ["a paused project", { paused: true }, three],
  ["a plan without snapshots", { plan: "db-free" }, three],
  ["a plan that nobody knows", { plan: "db-nothing" }, three],
  ["an engine that nobody samples", { type: "mariadb", version: "11" }, three],
  ["another type of project", { type: "job" }, three],
  ["a pod without an address", {}, [podOf("shop-0", { podIP: undefined })]],
  [
    "a server that does not run",
    {},
    [podOf("shop-0", { containerStatuses: [{ name: "database", state: { waiting: {} } }] })],
  ],
  ["no pod", {}, []],
])("%s is not sampled", (_, spec, pods) => {
  expect(names(spec, pods)).toEqual([]);
});

test("a project that is being deleted is not sampled", () => {
  const metadata = { ...exampleDatabase().metadata, deletionTimestamp: "2026-01-01T00:00:00Z" };
  expect(names({}, three, { metadata })).toEqual([]);
});
