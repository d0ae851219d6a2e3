import { isQuotaExceeded, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, startCluster, type TestCluster } from "../../../test/kit/operator/harness.ts";
import { growClaims, type VolumeClaim } from "./pvc.ts";

/** Answers of an apiserver about a volume that cannot grow: without controllers, the test binds the claims and counts the quota. */

const namespace = "growth";
const signal = AbortSignal.timeout(60_000);
let cluster: TestCluster;

beforeAll(async () => {
  cluster = await startCluster();
  await cluster.client.create(resources.namespaces, {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: namespace },
  });
  for (const [name, allowVolumeExpansion] of [
    ["expandable", true],
    ["fixed", false],
  ] as const) {
    await cluster.client.create(resources.storageClasses, {
      apiVersion: "storage.k8s.io/v1",
      kind: "StorageClass",
      metadata: { name },
      provisioner: "example.com/none",
      allowVolumeExpansion,
    } as KubernetesObject);
  }
});
afterAll(() => cluster.stop());

/** A bound claim of 1 GiB. */
async function claimed(name: string, storageClassName: string): Promise<VolumeClaim> {
  const { client } = cluster;
  await client.create(resources.persistentVolumeClaims, {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name, namespace },
    spec: { accessModes: ["ReadWriteOnce"], storageClassName, resources: { requests: { storage: "1Gi" } } },
  } as KubernetesObject);
  const status = { phase: "Bound", capacity: { storage: "1Gi" } };
  return client.patch(
    resources.persistentVolumeClaims,
    { namespace, name },
    { status },
    { subresource: "status" },
  );
}

test("a class that cannot expand volumes and a quota without room are different obstacles", async () => {
  const { client } = cluster;
  const claims = [await claimed("fixed", "fixed"), await claimed("grows", "expandable")];
  expect(await growClaims(claims, 2, client, signal)).toMatchObject({ obstacle: "VolumeNotExpandable" });
  const grown = await client.get<VolumeClaim>(resources.persistentVolumeClaims, { namespace, name: "grows" });
  expect(grown.spec?.resources?.requests?.storage).toBe("2Gi");

  const hard = { "requests.storage": "4Gi" };
  const quota = { namespace, name: "storage" };
  await client.create(resources.resourceQuotas, {
    apiVersion: "v1",
    kind: "ResourceQuota",
    metadata: quota,
    spec: { hard },
  } as KubernetesObject);
  const status = { hard, used: { "requests.storage": "3Gi" } };
  await client.patch(resources.resourceQuotas, quota, { status }, { subresource: "status" });
  // Quota admission reads quotas from a watch of its own, which receives this one later.
  const tooLarge = { spec: { resources: { requests: { storage: "4Gi" } } } };
  await eventually(() =>
    client
      .patch(resources.persistentVolumeClaims, { namespace, name: "grows" }, tooLarge, { dryRun: true })
      .then(() => false, isQuotaExceeded),
  );
  const growth = await growClaims([grown], 4, client, signal);
  expect(growth).toMatchObject({ obstacle: "VolumeQuotaExceeded" });
  expect(growth.refusal).toContain("limited: requests.storage=4Gi");
  expect(await growClaims([grown], 3, client, signal)).toEqual({});
});
