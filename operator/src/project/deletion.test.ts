import type { KubeClient, KubernetesObject, OwnerReference, Resource } from "@slipway/kube";
import { expect, test } from "vitest";
import { exampleProject } from "../testing/projects.ts";
import { runDeletionStep } from "./deletion.ts";

const INSTANCES_STEP = 1;
const ref = { namespace: "slipway-org-alpha", name: "shop" };

function labelled(name: string, controller?: { kind: string; name: string }): KubernetesObject {
  const ownerReferences: OwnerReference[] = controller
    ? [{ apiVersion: "apps/v1", uid: `uid-${controller.name}`, controller: true, ...controller }]
    : [];
  return { metadata: { ...ref, name, uid: `uid-${name}`, ownerReferences } };
}

/** What the step that ends the instances says while these are all that is left. */
async function waitsFor(left: { pods?: KubernetesObject[]; replicasets?: KubernetesObject[] }) {
  const deleted: string[] = [];
  const byPlural: Record<string, KubernetesObject[]> = left;
  const client = {
    listAll: async ({ plural }: Resource) => byPlural[plural] ?? [],
    delete: async ({ plural }: Resource) => void deleted.push(plural),
  } as unknown as KubeClient;
  const waiting = await runDeletionStep(
    INSTANCES_STEP,
    exampleProject(ref),
    client,
    AbortSignal.timeout(1_000),
  );
  expect(deleted).toEqual([]);
  return waiting?.message;
}

const STOPPING = "Instances are being stopped.";

test("instances are waited for, and the ReplicaSets that would make more of them", async () => {
  const pod = labelled("shop-5d8-x1", { kind: "ReplicaSet", name: "shop-5d8" });
  await expect(waitsFor({ pods: [pod] })).resolves.toBe(STOPPING);
  const replicaSet = labelled("shop-5d8", { kind: "Deployment", name: "shop" });
  await expect(waitsFor({ replicasets: [replicaSet] })).resolves.toBe(STOPPING);
});

test.each([
  ["by nobody", undefined],
  ["by another kind", { kind: "Job", name: "shop-5d8" }],
  ["by another one's ReplicaSet", { kind: "ReplicaSet", name: "shopping-5d8" }],
])("a pod with the project's label that is controlled %s holds nothing up", async (_, controller) => {
  await expect(waitsFor({ pods: [labelled("debug", controller)] })).resolves.toBeUndefined();
});

test("nor does a ReplicaSet that the project's Deployment does not control", async () => {
  const replicasets = [labelled("own"), labelled("other", { kind: "Deployment", name: "other" })];
  await expect(waitsFor({ replicasets })).resolves.toBeUndefined();
});
