import {
  byLabel,
  type KubeClient,
  type KubernetesObject,
  type OwnerReference,
  type Resource,
  resources,
  Store,
} from "@slipway/controller-runtime";
import { labels } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { instancesStep, routeStep } from "../applications/deletion-steps.ts";
import { deletionSteps } from "../databases/kind.ts";
import { type DeletionStep, runDeletionStep } from "./deletion.ts";

const ref = { namespace: "slipway-org-alpha", name: "shop" };

function labelled(name: string, controller?: { kind: string; name: string }): KubernetesObject {
  const ownerReferences: OwnerReference[] = controller
    ? [{ apiVersion: "apps/v1", uid: `uid-${controller.name}`, controller: true, ...controller }]
    : [];
  return { metadata: { ...ref, name, uid: `uid-${name}`, ownerReferences } };
}

/** What the step that ends the instances waits for while these are all that is left. */
async function waitsFor(left: { pods?: KubernetesObject[]; replicasets?: KubernetesObject[] }) {
  const deleted: string[] = [];
  const byPlural: Record<string, KubernetesObject[]> = left;
  const client = {
    listAll: async ({ plural }: Resource) => byPlural[plural] ?? [],
    delete: async ({ plural }: Resource) => void deleted.push(plural),
  } as unknown as KubeClient;
  const waiting = await runDeletionStep(
    instancesStep,
    exampleProject(ref),
    { client },
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
])("a pod with the project's label that is controlled %s delays nothing", async (_, controller) => {
  await expect(waitsFor({ pods: [labelled("debug", controller)] })).resolves.toBeUndefined();
});

test("nor does a ReplicaSet that the project's Deployment does not control", async () => {
  const replicasets = [labelled("own"), labelled("other", { kind: "Deployment", name: "other" })];
  await expect(waitsFor({ replicasets })).resolves.toBeUndefined();
});

test("of a database, the StatefulSet's own pods are waited for", async () => {
  const step = deletionSteps[1];
  const waits = async (owner: { kind: string; name: string }) => {
    const pods = [labelled("shop-0", owner)];
    const client = {
      listAll: async ({ plural }: Resource) => (plural === "pods" ? pods : []),
      delete: async () => true,
    } as unknown as KubeClient;
    const project = exampleProject(ref, { type: "postgresql" });
    return step && (await runDeletionStep(step, project, { client }, AbortSignal.timeout(1_000)))?.message;
  };
  await expect(waits({ kind: "StatefulSet", name: "shop" })).resolves.toBe(STOPPING);
  await expect(waits({ kind: "StatefulSet", name: "shop-cache" })).resolves.toBeUndefined();
});

test("what nobody owns is a database's to delete, and an application's to leave alone", async () => {
  const remains: DeletionStep = {
    delete: [resources.persistentVolumeClaims, resources.configMaps],
    pending: [],
    waiting: { reason: "DeletingChildren", message: "" },
  };
  const deletedOf = async (type: "http" | "postgresql") => {
    const deleted: string[] = [];
    const client = {
      listAll: async ({ plural }: Resource) => [
        labelled(plural),
        labelled("another's", { kind: "X", name: "x" }),
      ],
      delete: async (_: Resource, { name }: { name: string }) => void deleted.push(name),
    } as unknown as KubeClient;
    await runDeletionStep(remains, exampleProject(ref, { type }), { client }, AbortSignal.timeout(1_000));
    return deleted;
  };
  await expect(deletedOf("postgresql")).resolves.toEqual(["persistentvolumeclaims", "configmaps"]);
  await expect(deletedOf("http")).resolves.toEqual([]);
});

describe("what the watches have", () => {
  const controlled = (
    name: string,
    deletionTimestamp?: string,
    namespace = ref.namespace,
  ): KubernetesObject => ({
    metadata: {
      namespace,
      name,
      uid: `uid-${name}`,
      labels: { [labels.project]: ref.name },
      ownerReferences: [
        {
          apiVersion: "slipway.dev/v1alpha1",
          kind: "Project",
          name: ref.name,
          uid: "uid-shop",
          controller: true,
        },
      ],
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    },
  });
  const run = async (
    ingresses: KubernetesObject[],
    live: KubernetesObject[],
    { namespace = ref.namespace, watched = resources.ingresses } = {},
  ) => {
    const requests: string[] = [];
    const client = {
      listAll: async ({ plural }: Resource) => {
        requests.push(`list ${plural}`);
        return live;
      },
      delete: async ({ plural }: Resource, { name }: { name: string }) =>
        void requests.push(`delete ${plural} ${name}`),
    } as unknown as KubeClient;
    const store = new Store({ indexers: { [labels.project]: byLabel(labels.project) } });
    store.replace(ingresses, "1");
    const stores = { children: [{ resource: watched, store }] };
    const project = { ...exampleProject(ref), metadata: { ...ref, namespace, uid: "uid-shop" } };
    const waiting = await runDeletionStep(routeStep, project, { client, stores }, AbortSignal.timeout(1_000));
    return { requests, isWaiting: waiting !== undefined };
  };

  test("is deleted without a list, and its end is read live", async () => {
    await expect(run([controlled("shop")], [])).resolves.toEqual({
      requests: ["delete ingresses shop", "list ingresses"],
      isWaiting: false,
    });
  });

  test("is waited for without a request while it terminates", async () => {
    const terminating = controlled("shop", "2026-11-28T12:00:00Z");
    await expect(run([terminating], [terminating])).resolves.toEqual({ requests: [], isWaiting: true });
  });

  test("ends no step while the apiserver has more", async () => {
    await expect(run([], [controlled("shop")])).resolves.toEqual({
      requests: ["list ingresses"],
      isWaiting: true,
    });
  });

  test("is left alone outside of organizations, where the operator may write nothing", async () => {
    const namespace = "kube-system";
    const foreign = controlled("shop", undefined, namespace);
    await expect(run([foreign], [], { namespace })).resolves.toEqual({ requests: [], isWaiting: false });
  });

  test("does not count for a kind that is not watched, which is read live", async () => {
    await expect(run([], [controlled("shop")], { watched: resources.services })).resolves.toEqual({
      requests: ["list ingresses", "delete ingresses shop", "list ingresses"],
      isWaiting: true,
    });
  });

  test("is left alone when another controls it", async () => {
    const other = labelled("shop", { kind: "Project", name: "other" });
    other.metadata = { ...other.metadata, labels: { [labels.project]: ref.name } };
    await expect(run([other], [])).resolves.toEqual({ requests: ["list ingresses"], isWaiting: false });
  });
});
