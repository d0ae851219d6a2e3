import { readFileSync } from "node:fs";
import { type KubeClient, KubeError, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { type Catalog, type DeletedProject, labels, type Project, parseCatalog } from "@slipway/crds";
import { type Clock, silentLogger, systemClock } from "@slipway/process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startCluster, type TestCluster } from "../../../test/kit/operator/harness.ts";
import { makeProvisionedNamespace } from "../../../test/kit/operator/project-controller.ts";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import {
  provision,
  reconcileVolumes,
  type TestClaim,
  type TestVolume,
} from "../../../test/kit/operator/volumes.ts";
import { remainsStep } from "../applications/deletion-steps.ts";
import { runDeletionStep } from "../projects/deletion.ts";
import { deletedProjectResource, projectResource } from "../resources.ts";
import { deletedProjectReconciler } from "./reconciler.ts";
import { isBeingUndeleted } from "./record.ts";
import { Retention } from "./retention.ts";

/** The operator is killed after each of its writes, and starts again: steps of a deletion and of an undelete on a real apiserver. */

const namespace = "slipway-org-killed";
const ref = (name: string) => ({ namespace, name });
const { signal } = new AbortController();
const file = new URL("../../../charts/slipway/files/catalog.yaml", import.meta.url);
const catalog: Catalog = parseCatalog(readFileSync(file, "utf8"));
for (const plan of catalog.httpPlans) {
  plan.retainDeletedVolumesHours = 24;
}
let cluster: TestCluster;
let client: KubeClient;

beforeAll(async () => {
  cluster = await startCluster();
  client = cluster.client;
  await makeProvisionedNamespace(cluster, namespace);
});
afterAll(() => cluster?.stop());

class Killed extends Error {}

type Call = () => Promise<unknown>;

/** The client, each of whose calls is done by `carryOut`. */
function clientBy(
  carryOut: (method: string, args: readonly unknown[], call: Call) => Promise<unknown>,
): KubeClient {
  return new Proxy(client, {
    get(target, name: keyof KubeClient) {
      const method = target[name] as (...args: unknown[]) => Promise<unknown>;
      return typeof method === "function"
        ? (...args: unknown[]) => carryOut(name, args, () => method.apply(target, args))
        : method;
    },
  });
}

const WRITES = ["create", "patch", "delete", "replace", "apply", "updateStatus"];

/** A client of an operator that is killed by its last write: that one is done, and its caller does not learn of it. @param writes before it */
function killedAfter(writes: number): { client: KubeClient; wasKilled: () => boolean } {
  let left = writes;
  let isKilled = false;
  const killed = clientBy(async (method, _, call) => {
    if (isKilled) {
      throw new Killed();
    }
    isKilled = WRITES.includes(method) && left-- === 0;
    const answer = await call();
    if (isKilled) {
      throw new Killed();
    }
    return answer;
  });
  return { client: killed, wasKilled: () => isKilled };
}

/** A store that has what the cluster has. */
async function storeOfRecords() {
  const items = await client.listAll<DeletedProject>(deletedProjectResource, { namespace });
  return {
    get: (_: string | undefined, name: string) => items.find(({ metadata }) => metadata.name === name),
    observe: () => {},
  };
}
const namespaces = { get: () => ({ metadata: { name: namespace } }) };
const recorder = { event: () => {} };
const clock: Clock = systemClock;

/** What the reconciler of an application does once its instances are gone. @returns whether all is deleted */
async function deleteOnce(access: KubeClient, name: string): Promise<boolean> {
  const project = await client.get<Project>(projectResource, ref(name));
  const deps = { client: access, clock, catalog: () => catalog, stores: { namespaces } };
  const retention = new Retention(deps as unknown as ConstructorParameters<typeof Retention>[0]);
  await retention.begin(project, signal);
  await retention.complete(project, { event: () => {}, signal });
  return (await runDeletionStep(remainsStep, project, { client: access }, signal)) === undefined;
}

async function reconcileRecords(access: KubeClient): Promise<void> {
  const records = await storeOfRecords();
  const deps = { client: access, clock, recorder, records, namespaces };
  const reconcile = deletedProjectReconciler(
    deps as unknown as Parameters<typeof deletedProjectReconciler>[0],
  );
  for (const { metadata } of await client.listAll<DeletedProject>(deletedProjectResource, { namespace })) {
    await reconcile(ref(metadata.name), { signal, log: silentLogger, clock });
  }
}

/** Repeats a step until it is through; the first attempts by an operator that is killed. @returns whether it was killed */
async function survive(writes: number, step: (access: KubeClient) => Promise<boolean>): Promise<boolean> {
  const { client: killed, wasKilled } = killedAfter(writes);
  let access = killed;
  for (let attempt = 0; attempt < 60; attempt += 1) {
    try {
      if (await step(access)) {
        return wasKilled();
      }
    } catch (error) {
      // Of objects that were read before they changed.
      if (!(error instanceof Killed) && (error as { status?: number }).status !== 409) {
        throw error;
      }
    }
    access = wasKilled() ? client : killed;
    await reconcileVolumes(client, namespace);
  }
  throw new Error("it does not come to an end");
}

const volumeOf = (name: string) => client.getOrUndefined<TestVolume>(resources.persistentVolumes, { name });
const records = () => client.listAll<DeletedProject>(deletedProjectResource, { namespace });

async function create(name: string): Promise<string> {
  const spec = { plan: "premium", storage: { persistent: true, capacity: 1, dirPathToPersist: "/data" } };
  const { metadata } = await client.create<Project>(projectResource, {
    ...exampleProject(ref(name), spec),
    metadata: { ...ref(name), finalizers: ["slipway.dev/project"] },
  });
  await client.patch(
    projectResource,
    ref(name),
    { status: { observedGeneration: 1, domain: "a.b" } },
    { subresource: "status" },
  );
  const owner = {
    apiVersion: "slipway.dev/v1alpha1",
    kind: "Project",
    name,
    uid: metadata.uid,
    controller: true,
  };
  const own = { labels: { [labels.project]: name }, ownerReferences: [owner] };
  const data = { COLOUR: "Ymx1ZQ==" };
  await client.create(resources.secrets, {
    metadata: { ...ref(`${name}-env`), ...own },
    data,
  } as KubernetesObject);
  await client.create(resources.persistentVolumeClaims, {
    metadata: { ...ref(name), ...own },
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  } as KubernetesObject);
  return provision(client, ref(name));
}

/** Deletes a project, killed at one write. @returns whether there was such a write */
async function deleteKilled(name: string, volume: string, writes: number): Promise<boolean> {
  await client.delete(projectResource, ref(name));
  const wasKilled = await survive(writes, async (access) => {
    const isThrough = await deleteOnce(access, name);
    // At any moment: a claim that is not retained still exists, and nothing is retained without an end but while it is deleted.
    expect(await volumeOf(volume)).toBeDefined();
    return isThrough;
  });
  await client.patch(projectResource, ref(name), { metadata: { finalizers: null } });
  expect((await records()).map(({ spec }) => spec.projectRef.name)).toEqual([name]);
  return wasKilled;
}

async function undeleteKilled(name: string, volume: string, writes: number): Promise<boolean> {
  const [record] = await records();
  const undeleteRequestedAt = new Date().toISOString();
  await client.patch(deletedProjectResource, ref(record?.metadata.name ?? ""), {
    spec: { undeleteRequestedAt },
  });
  const wasKilled = await survive(writes, async (access) => {
    await reconcileRecords(access);
    const live = await client.getOrUndefined<Project>(projectResource, ref(name));
    // One that may be reconciled is whole.
    if (live && !isBeingUndeleted(live)) {
      await expectWhole(live, volume);
    }
    return (await records()).length === 0;
  });
  await expectWhole(await client.get<Project>(projectResource, ref(name)), volume);
  expect((await volumeOf(volume))?.spec.persistentVolumeReclaimPolicy).toBe("Delete");
  return wasKilled;
}

async function expectWhole(project: Project, volume: string): Promise<void> {
  const { name } = project.metadata;
  expect(project.status?.domain).toBe("a.b");
  const secret = await client.get<KubernetesObject & { data?: object }>(
    resources.secrets,
    ref(`${name}-env`),
  );
  expect(secret.data).toEqual({ COLOUR: "Ymx1ZQ==" });
  const claim = await client.get<TestClaim>(resources.persistentVolumeClaims, ref(name));
  expect(claim).toMatchObject({ spec: { volumeName: volume }, status: { phase: "Bound" } });
  expect(claim.metadata?.ownerReferences?.[0]?.uid).toBe(project.metadata.uid);
}

async function clean(name: string): Promise<void> {
  await client.delete(projectResource, ref(name));
  await client.patch(projectResource, ref(name), { metadata: { finalizers: null } });
  for (const [resource, names] of [
    [resources.persistentVolumeClaims, [name]],
    [resources.secrets, [`${name}-env`]],
  ] as const) {
    for (const one of names) {
      await client.delete(resource, ref(one));
    }
  }
  await reconcileVolumes(client, namespace);
}

test("a project is deleted and undeleted whole when the operator dies after any write", async () => {
  let writes = 0;
  for (let wasKilled = true; wasKilled; writes += 1) {
    const name = `pkilled${writes}`;
    const volume = await create(name);
    const inDeletion = await deleteKilled(name, volume, writes);
    const inUndelete = await undeleteKilled(name, volume, writes);
    wasKilled = inDeletion || inUndelete;
    await clean(name);
  }
  expect(writes).toBeGreaterThan(9);
});

// Shows: docs/undelete.md#what-comes-back: The deletion is final where the namespace's quota leaves no room
test("a deletion goes on where the namespace has no room for Secrets, and leaves nothing behind", async () => {
  const volume = await create("pfull");
  const full = clientBy((method, [resource], call) => {
    if (method === "create" && resource === deletedProjectResource) {
      throw new KubeError({ status: 403, reason: "Forbidden", message: "exceeded quota: slipway-quota" });
    }
    return call();
  });
  await client.delete(projectResource, ref("pfull"));
  await survive(100, async () => deleteOnce(full, "pfull"));
  await reconcileVolumes(client, namespace);
  expect(await volumeOf(volume)).toBeUndefined();
  const kept = await client.listAll(resources.secrets, { namespace, labelSelector: labels.deletedProject });
  expect(kept).toEqual([]);
  await client.patch(projectResource, ref("pfull"), { metadata: { finalizers: null } });
});
