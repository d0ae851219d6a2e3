/** Volume claims of projects, and their growth. */

import {
  isForbidden,
  isInvalid,
  isQuotaExceeded,
  type KubeClient,
  type KubernetesObject,
  parseQuantity,
  resources,
} from "@slipway/controller-runtime";
import { fieldManagers, type ProjectReason } from "@slipway/crds";
import type { DesiredObject } from "../desired.ts";
import { childMetadata, type Workload } from "./app.ts";

/**
 * The volume of a persistent project. Its pods share it on one node. It is deleted with its project only: a project that
 * stops requesting storage keeps its data until then.
 */
export function persistentVolumeClaim(app: Workload): DesiredObject | undefined {
  if (!app.volume) {
    return undefined;
  }
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: childMetadata(app),
    spec: {
      accessModes: ["ReadWriteOnce"],
      ...(app.volume.storageClass ? { storageClassName: app.volume.storageClass } : {}),
      resources: { requests: { storage: `${app.volume.capacityGb}Gi` } },
    },
  };
}

/**
 * The same objects, with the class and size of a claim that exists already: where the cluster refuses to change them, an
 * apply would fail, and the objects after it would never be applied. Claims grow apart from it.
 */
export function withLiveClaim(
  objects: readonly DesiredObject[],
  live: VolumeClaim | undefined,
): readonly DesiredObject[] {
  const storage = live?.spec?.resources?.requests?.storage;
  if (storage === undefined) {
    return objects;
  }
  const storageClassName = live?.spec?.storageClassName;
  return objects.map((object) =>
    object.kind === "PersistentVolumeClaim"
      ? {
          ...object,
          spec: {
            accessModes: ["ReadWriteOnce"],
            ...(storageClassName === undefined ? {} : { storageClassName }),
            resources: { requests: { storage } },
          },
        }
      : object,
  );
}

// Growth of volume claims, apart from the applied objects: the cluster may refuse it.

/** The parts of a claim that are read here. */
export interface VolumeClaim extends KubernetesObject {
  spec?: { storageClassName?: string; resources?: { requests?: { storage?: string } } };
  status?: { phase?: string };
}

/** Why a bound claim keeps its size: its class cannot expand it, or a quota leaves no room. */
export type GrowthObstacle = Extract<ProjectReason, "VolumeNotExpandable" | "VolumeQuotaExceeded">;

/** For people, by obstacle. */
export const growthMessages: Readonly<Record<GrowthObstacle, string>> = {
  VolumeNotExpandable: "This cluster's storage cannot grow; the volumes keep their size.",
  VolumeQuotaExceeded: "A quota leaves no room for larger volumes; they keep their size.",
};

/** The result of requests for larger volumes. */
export interface Growth {
  /** Of the last bound claim that cannot grow. */
  obstacle?: GrowthObstacle;
  /** Why, in the apiserver's words. */
  refusal?: string;
}

/**
 * Requests larger volumes where they are smaller than `capacityGb`. One that is refused keeps none of the others from growing.
 * @throws KubeError when the apiserver does not answer
 */
export async function growClaims(
  claims: readonly VolumeClaim[],
  capacityGb: number,
  client: KubeClient,
  signal: AbortSignal,
): Promise<Growth> {
  const storage = `${capacityGb}Gi`;
  let growth: Growth = {};
  for (const { metadata, spec, status } of claims) {
    if (!isSmaller(spec?.resources?.requests?.storage, storage) || metadata?.deletionTimestamp) {
      continue;
    }
    const { name = "", namespace, uid } = metadata ?? {};
    const patch = { metadata: { uid }, spec: { resources: { requests: { storage } } } };
    try {
      const options = { fieldManager: fieldManagers.project, signal };
      await client.patch(resources.persistentVolumeClaims, { namespace, name }, patch, options);
    } catch (error) {
      // A class that cannot expand volumes, a quota, or a claim that is not bound yet.
      if (!isForbidden(error) && !isInvalid(error)) {
        throw error;
      }
      if (status?.phase === "Bound") {
        const obstacle = isQuotaExceeded(error) ? "VolumeQuotaExceeded" : "VolumeNotExpandable";
        growth = { obstacle, refusal: error.message };
      }
    }
  }
  return growth;
}

function isSmaller(have: string | undefined, want: string): boolean {
  const now = parseQuantity(have ?? "");
  return now !== undefined && now < (parseQuantity(want) ?? 0n);
}
