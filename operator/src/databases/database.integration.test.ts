import { type KubernetesObject, type Resource, resources } from "@slipway/controller-runtime";
import type { DatabaseStatus, Project } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exampleDatabase } from "../../../test/kit/databases/examples.ts";
import {
  conditionsOf,
  eventually,
  exists,
  startCluster,
  startOperator,
  type TestCluster,
  type TestOperator,
  untilUnchanged,
} from "../../../test/kit/operator/harness.ts";
import { projectResource } from "../resources.ts";
import { AUTHORITY } from "./tls/authority.ts";

/** An operator on a real apiserver without kubelets: tests play the StatefulSet controller and the volumes. */

const namespace = "slipway-org-alpha";
const image = { image: "registry.example/postgresql:17", uid: 100, gid: 102, features: {} };
/** What the platform offers. */
const images = { postgresql: { "17": image } };
let cluster: TestCluster;
let operator: TestOperator;

beforeAll(async () => {
  cluster = await startCluster();
  await cluster.client.create(resources.namespaces, { metadata: { name: "slipway-system" } });
  operator = await startOperator(cluster, {
    listOrganizations: async () => ["alpha"],
    databaseImages: images,
  });
  await eventually(() => exists(cluster.client, resources.namespaces, { name: namespace }));
});
afterAll(async () => {
  await operator?.stop();
  await cluster?.stop();
});

const ref = (name: string) => ({ namespace, name });
const create = (name: string, spec: Partial<Project["spec"]> = {}) => {
  const { uid: _uid, generation: _generation, ...metadata } = exampleDatabase(spec).metadata;
  const project = { ...exampleDatabase(spec), metadata: { ...metadata, name } };
  return cluster.client.create<Project>(projectResource, project);
};
const get = <T extends KubernetesObject>(resource: Resource, name: string) =>
  cluster.client.get<T>(resource, ref(name));
const statusOf = async (name: string): Promise<DatabaseStatus | undefined> =>
  (await get<Project>(projectResource, name)).status?.database;
const isDeleted = async (name: string) =>
  (await cluster.client.getOrUndefined(projectResource, ref(name))) === undefined;
const patchSpec = (name: string, spec: Partial<Project["spec"]>) =>
  cluster.client.patch(projectResource, ref(name), { spec });

type StatefulSet = KubernetesObject & { spec: { replicas: number } };
const replicasOf = async (name: string) =>
  (await get<StatefulSet>(resources.statefulSets, name)).spec.replicas;

/** The claim that a StatefulSet's controller would have created, bound. */
async function makeClaim(name: string, ordinal: number): Promise<void> {
  const claim = `data-${name}-${ordinal}`;
  await cluster.client.create(resources.persistentVolumeClaims, {
    metadata: { namespace, name: claim, labels: { "slipway.dev/project": name } },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "10Gi" } } },
  } as KubernetesObject);
  const status = { phase: "Bound", capacity: { storage: "10Gi" } };
  await cluster.client.patch(
    resources.persistentVolumeClaims,
    ref(claim),
    { status },
    { subresource: "status" },
  );
}

describe("a database", () => {
  test("gets its objects, and an apiserver accepts them all", async () => {
    await create("shop", { instances: 3 });
    for (const [resource, name] of [
      [resources.statefulSets, "shop"],
      [resources.services, "shop"],
      [resources.services, "shop-nodes"],
      [resources.services, "shop-replicas"],
      [resources.services, "shop-outside"],
      [resources.configMaps, "shop-patroni"],
      [resources.networkPolicies, "shop"],
      [resources.podDisruptionBudgets, "shop"],
      [resources.serviceAccounts, "shop"],
      [resources.roles, "shop"],
      [resources.roleBindings, "shop"],
      [resources.secrets, "shop-credentials"],
      [resources.secrets, "shop-tls"],
    ] as const) {
      await eventually(() => exists(cluster.client, resource, ref(name)));
    }
    expect(await replicasOf("shop")).toBe(3);
    const authority = { namespace: "slipway-system", name: AUTHORITY };
    expect(await exists(cluster.client, resources.configMaps, authority)).toBe(true);
  });

  test("reports its address while it is being set up, and no secret", async () => {
    await eventually(async () => (await statusOf("shop"))?.port !== undefined);
    const project = await get<Project>(projectResource, "shop");
    expect(project.status).toMatchObject({
      phase: "creating",
      database: { host: "192.0.2.1", engine: "postgresql", username: "app", inside: { port: 5432 } },
    });
    expect(await conditionsOf(cluster.client, ref("shop"))).toContain("DatabaseReady=False/Bootstrapping");
    const secret = await get<KubernetesObject & { data: Record<string, string> }>(
      resources.secrets,
      "shop-credentials",
    );
    for (const value of Object.values(secret.data).map((data) => Buffer.from(data, "base64").toString())) {
      if (value.length === 32) {
        expect(JSON.stringify(project)).not.toContain(value);
      }
    }
  });

  test("is neither queried nor written while it is unchanged", async () => {
    const before = await untilUnchanged(cluster);
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    expect((await cluster.operatorWrites()).length).toBe(before);
  });

  test("stops and comes back, and keeps its volumes", async () => {
    await makeClaim("shop", 0);
    await patchSpec("shop", { paused: true });
    await eventually(async () => (await replicasOf("shop")) === 0);
    await eventually(async () => (await get<Project>(projectResource, "shop")).status?.phase === "stopped");
    expect(await exists(cluster.client, resources.persistentVolumeClaims, ref("data-shop-0"))).toBe(true);
    await patchSpec("shop", { paused: false });
    await eventually(async () => (await replicasOf("shop")) === 3);
  });

  test("whose instances were reduced while it was paused starts with all, and deletes no volume", async () => {
    await create("lessened", { instances: 3 });
    await eventually(async () => (await replicasOf("lessened")) === 3);
    for (const ordinal of [0, 1, 2]) {
      await makeClaim("lessened", ordinal);
    }
    await patchSpec("lessened", { paused: true });
    await eventually(async () => (await replicasOf("lessened")) === 0);
    await patchSpec("lessened", { instances: 1, paused: false });
    await eventually(async () => (await replicasOf("lessened")) > 0);
    await untilUnchanged(cluster);
    expect(await replicasOf("lessened")).toBe(3);
    for (const ordinal of [0, 1, 2]) {
      const claim = await get(resources.persistentVolumeClaims, `data-lessened-${ordinal}`);
      expect(claim.metadata?.deletionTimestamp).toBeUndefined();
    }
  });

  test("runs from its image until its template changes for another reason", async () => {
    type Set = KubernetesObject & { spec: { template: { spec: { containers: { image: string }[] } } } };
    const imageOf = async () => {
      const set = await get<Set>(resources.statefulSets, "kept");
      return set.spec.template.spec.containers[0]?.image;
    };
    await create("kept");
    await eventually(() => exists(cluster.client, resources.statefulSets, ref("kept")));
    await untilUnchanged(cluster);

    images.postgresql["17"] = { ...image, image: "registry.example/postgresql:17.1" };
    await patchSpec("kept", { description: "reconciled once more" });
    await untilUnchanged(cluster);
    expect(await imageOf()).toBe("registry.example/postgresql:17");

    await patchSpec("kept", { restartedAt: "2026-01-02T00:00:00Z" });
    await eventually(async () => (await imageOf()) === "registry.example/postgresql:17.1");
    images.postgresql["17"] = image;
  });

  test("requests larger volumes, without touching the templates of the StatefulSet", async () => {
    type Claim = KubernetesObject & { spec: { resources: { requests: { storage: string } } } };
    await patchSpec("shop", { storage: { persistent: true, capacity: 20 } });
    const conditions = () => conditionsOf(cluster.client, ref("shop"));
    // This cluster has no storage class that could grow anything, and reports it.
    await eventually(async () => (await conditions()).includes("StorageReady=False/VolumePending"));
    const { spec } = await get<Claim>(resources.persistentVolumeClaims, "data-shop-0");
    expect(spec.resources.requests.storage).toBe("10Gi");
    expect(await replicasOf("shop")).toBe(3);
  });

  test("leaves nothing behind", async () => {
    const state = { labels: { "slipway.dev/project": "shop", "slipway.dev/type": "postgresql" } };
    await cluster.client.create(resources.configMaps, { metadata: { ...ref("shop-leader"), ...state } });
    await cluster.client.delete(projectResource, ref("shop"));
    // Nothing here removes the finalizer that protects a claim in use.
    await eventually(async () => {
      const claim = await cluster.client.getOrUndefined(resources.persistentVolumeClaims, ref("data-shop-0"));
      if (claim?.metadata?.deletionTimestamp) {
        await cluster.client.patch(resources.persistentVolumeClaims, ref("data-shop-0"), {
          metadata: { finalizers: null },
        });
      }
      return isDeleted("shop");
    });
    for (const resource of [
      resources.statefulSets,
      resources.services,
      resources.configMaps,
      resources.secrets,
      resources.networkPolicies,
      resources.podDisruptionBudgets,
      resources.serviceAccounts,
      resources.roles,
      resources.roleBindings,
      resources.persistentVolumeClaims,
    ]) {
      const left = await cluster.client.listAll<KubernetesObject>(resource, {
        namespace,
        labelSelector: "slipway.dev/project=shop",
      });
      const alive = left.filter(({ metadata }) => !metadata?.deletionTimestamp);
      expect(
        alive.map(({ metadata }) => metadata?.name),
        resource.plural,
      ).toEqual([]);
    }
  });
});

test.each([
  [
    "an engine that this platform has no image of",
    { type: "mariadb", version: "11", instances: 3 },
    "TypeNotSupported",
  ],
  ["a version without an image", { version: "16" }, "FeatureNotSupported"],
  [
    "another version without one",
    { plan: "db-free", storage: { persistent: true, capacity: 1 }, version: "18" },
    "FeatureNotSupported",
  ],
] as const)("%s is refused, and can be deleted", async (_, spec, reason) => {
  await create("other", spec as Partial<Project["spec"]>);
  await eventually(async () =>
    (await conditionsOf(cluster.client, ref("other"))).includes(`Accepted=False/${reason}`),
  );
  await cluster.client.delete(projectResource, ref("other"));
  await eventually(() => isDeleted("other"));
});
