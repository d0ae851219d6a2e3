import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { type DeletedProject, fieldManagers, labels, type Project } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  eventually,
  exists,
  startCluster,
  startOperator,
  type TestCluster,
  type TestOperator,
  untilUnchanged,
} from "../../../test/kit/operator/harness.ts";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import {
  provision,
  reconcileVolumes,
  type TestClaim,
  type TestVolume,
} from "../../../test/kit/operator/volumes.ts";
import { deletedProjectResource, projectResource } from "../resources.ts";

/** An operator on a real apiserver; the test plays the controllers of volumes. */

const namespace = "slipway-org-alpha";
const ref = (name: string) => ({ namespace, name });
let cluster: TestCluster;
let operator: TestOperator;
let playing: NodeJS.Timeout;

beforeAll(async () => {
  cluster = await startCluster();
  operator = await startOperator(cluster, { listOrganizations: async () => ["alpha"] });
  for (const plan of operator.catalog.httpPlans) {
    Object.assign(plan, { retainDeletedVolumesHours: plan.plan === "premium" ? 24 : 0 });
  }
  await eventually(() => exists(cluster.client, resources.namespaces, { name: namespace }));
  playing = setInterval(() => void reconcileVolumes(cluster.client, namespace).catch(() => undefined), 100);
});
afterAll(async () => {
  clearInterval(playing);
  await operator?.stop();
  await cluster?.stop();
});

const records = () => cluster.client.listAll<DeletedProject>(deletedProjectResource, { namespace });
const recordOf = async (project: string) =>
  (await records()).find(
    ({ spec, metadata }) => spec.projectRef.name === project && !metadata.deletionTimestamp,
  );
const volume = (name: string) =>
  cluster.client.getOrUndefined<TestVolume>(resources.persistentVolumes, { name });
const project = (name: string) => cluster.client.getOrUndefined<Project>(projectResource, ref(name));
const claim = (name: string) =>
  cluster.client.getOrUndefined<TestClaim>(resources.persistentVolumeClaims, ref(name));

/** An application with a volume and a variable. @returns the volume */
async function create(name: string, plan = "premium"): Promise<string> {
  await cluster.client.create(resources.secrets, {
    metadata: {
      ...ref(`${name}-env-0123456789ab`),
      labels: { [labels.project]: name, [labels.managedBy]: "slipway" },
    },
    type: "Opaque",
    immutable: true,
    data: { COLOUR: Buffer.from(name).toString("base64") },
  } as KubernetesObject);
  await cluster.client.create<Project>(
    projectResource,
    exampleProject(ref(name), {
      plan,
      envsFrom: [{ name: `${name}-env-0123456789ab` }],
      storage: { persistent: true, capacity: 2, dirPathToPersist: "/data" },
    }),
  );
  await eventually(async () => Boolean(await claim(name)));
  return provision(cluster.client, ref(name));
}
async function remove(name: string): Promise<void> {
  await cluster.client.delete(projectResource, ref(name));
  await eventually(async () => (await project(name)) === undefined);
}
async function undelete({ metadata }: DeletedProject): Promise<void> {
  const undeleteRequestedAt = new Date().toISOString();
  await cluster.client.patch(deletedProjectResource, ref(metadata.name), { spec: { undeleteRequestedAt } });
}
const expire = ({ metadata }: DeletedProject) =>
  cluster.client.patch(deletedProjectResource, ref(metadata.name), {
    spec: { expiresAt: new Date().toISOString() },
  });

test("a project on a plan that retains nothing is deleted with its volume", async () => {
  const name = await create("plain", "basic");
  await remove("plain");
  expect(await recordOf("plain")).toBeUndefined();
  await eventually(async () => (await volume(name)) === undefined);
});

describe("a project on a plan that retains volumes", () => {
  let name: string;
  let before: Project | undefined;
  let variables: (KubernetesObject & { data?: object }) | undefined;

  test("leaves a record, its volume and its Secrets, and nothing else", async () => {
    name = await create("shop");
    before = await eventually(async () => {
      const live = await project("shop");
      return live?.status?.deployments ? live : undefined;
    });
    variables = await cluster.client.get(resources.secrets, ref("shop-env-0123456789ab"));
    await remove("shop");
    const record = await recordOf("shop");
    expect(record?.spec).toMatchObject({
      projectRef: { name: "shop", uid: before?.metadata.uid },
      type: "http",
      plan: "premium",
      volumes: [{ claimName: "shop", volumeName: name, capacity: "2Gi" }],
    });
    await eventually(async () => (await volume(name))?.status?.phase === "Released");
    expect((await volume(name))?.spec.persistentVolumeReclaimPolicy).toBe("Retain");
    expect(await claim("shop")).toBeUndefined();
    expect(
      await cluster.client.getOrUndefined(resources.secrets, ref("shop-env-0123456789ab")),
    ).toBeUndefined();
  });

  test("is created again as it was, with its volume", async () => {
    await undelete((await recordOf("shop")) as DeletedProject);
    await eventually(async () => (await recordOf("shop")) === undefined && (await records()).length === 0);
    const after = await eventually(async () => {
      const live = await project("shop");
      return live?.status?.observedGeneration === live?.metadata.generation ? live : undefined;
    });
    expect(after?.metadata.uid).not.toBe(before?.metadata.uid);
    expect(after?.metadata.annotations).toEqual(before?.metadata.annotations);
    expect(after?.spec).toEqual(before?.spec);
    // By which `/v1` knows that an undelete of it has ended, and of no project before its first.
    const managersOf = (one: Project | undefined) => {
      const { managedFields = [] } = (one?.metadata ?? {}) as { managedFields?: { manager: string }[] };
      return managedFields.map(({ manager }) => manager);
    };
    expect(managersOf(after)).toContain(fieldManagers.deletedProject);
    expect(managersOf(before)).not.toContain(fieldManagers.deletedProject);
    expect(after?.status?.deployments?.map(({ id }) => id)).toEqual(
      before?.status?.deployments?.map(({ id }) => id),
    );
    const secret = await cluster.client.get<KubernetesObject & { data?: object; type?: string }>(
      resources.secrets,
      ref("shop-env-0123456789ab"),
    );
    expect(secret).toMatchObject({ data: variables?.data, type: "Opaque", immutable: true });
    expect(secret.metadata?.ownerReferences?.[0]?.uid).toBe(after?.metadata.uid);
    const bound = await claim("shop");
    expect(bound).toMatchObject({ spec: { volumeName: name }, status: { phase: "Bound" } });
    expect(await volume(name)).toMatchObject({
      spec: { persistentVolumeReclaimPolicy: "Delete", claimRef: { uid: bound?.metadata?.uid } },
    });
    expect((await volume(name))?.metadata?.annotations ?? {}).not.toHaveProperty([
      "slipway.dev/retained-for",
    ]);
    const kept = await cluster.client.listAll(resources.secrets, {
      namespace,
      labelSelector: labels.deletedProject,
    });
    expect(kept).toEqual([]);
    await eventually(() => exists(cluster.client, resources.deployments, ref("shop")));
  });

  test("is written no more once it is settled, and neither is a record", async () => {
    await create("other");
    await remove("other");
    const writes = await untilUnchanged(cluster);
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect((await cluster.operatorWrites()).length).toBe(writes);
  });

  test("expires with its volume and its Secrets", async () => {
    const record = (await recordOf("other")) as DeletedProject;
    await expire(record);
    await eventually(async () => (await volume(record.spec.volumes[0]?.volumeName ?? "")) === undefined);
    await eventually(async () => (await records()).length === 0);
    const kept = await cluster.client.listAll(resources.secrets, {
      namespace,
      labelSelector: labels.deletedProject,
    });
    expect(kept).toEqual([]);
  });
});

test("a new project of the same id has nothing of the old one, which cannot be undeleted meanwhile", async () => {
  const old = await create("twice");
  await remove("twice");
  const record = (await recordOf("twice")) as DeletedProject;
  const fresh = await create("twice");
  expect(fresh).not.toBe(old);
  await undelete(record);
  const reasonOf = async () =>
    (await records()).find(({ metadata }) => metadata.name === record.metadata.name)?.status?.conditions?.[0]
      ?.reason;
  await eventually(async () => (await reasonOf()) === "NameTaken");
  await eventually(async () => (await recordOf("twice"))?.spec.undeleteRequestedAt === undefined);
  expect(await reasonOf()).toBe("NameTaken");
  expect((await claim("twice"))?.spec.volumeName).toBe(fresh);
  // Deleted too: each has a record of its own, and the older one can be chosen.
  await remove("twice");
  expect((await records()).map(({ spec }) => spec.volumes[0]?.volumeName).sort()).toEqual(
    [fresh, old].sort(),
  );
  await undelete(record);
  await eventually(async () => (await claim("twice"))?.status?.phase === "Bound");
  expect((await claim("twice"))?.spec.volumeName).toBe(old);
  await eventually(async () => (await records()).length === 1);
});

test("a project whose volume is gone is not created", async () => {
  const lost = await create("lost");
  await remove("lost");
  const record = (await recordOf("lost")) as DeletedProject;
  await cluster.client.patch(resources.persistentVolumes, { name: lost }, { metadata: { finalizers: null } });
  await cluster.client.delete(resources.persistentVolumes, { name: lost });
  await undelete(record);
  await eventually(async () => (await recordOf("lost"))?.status?.conditions?.[0]?.reason === "VolumeMissing");
  expect(await project("lost")).toBeUndefined();
});
