/** Volumes of databases: they grow, and never shrink. */

import { type KubeClient, parseQuantity } from "@slipway/controller-runtime";
import type { Finding } from "../projects/status.ts";
import { type Growth, type GrowthObstacle, growClaims, growthMessages } from "../workload/pvc.ts";
import { ordinalOf } from "./common/pods.ts";
import type { Database } from "./database.ts";
import type { LiveDatabase, LivePod } from "./driver.ts";

const GIB = 1_073_741_824n * 1_000_000_000n;

/** The state of a database's volumes. */
export interface Volumes {
  /** Every instance has one that is bound. */
  bound: boolean;
  /** GB that each of them has; undefined while one has none. */
  capacityGb?: number;
  /** One is smaller than requested. */
  resizing: boolean;
  /** Why they do not grow. */
  obstacle?: GrowthObstacle;
}

/** Requests larger volumes where they are smaller than in the project. */
export async function growVolumes(
  { storage }: Pick<Database, "storage">,
  { claims }: LiveDatabase,
  client: KubeClient,
  signal: AbortSignal,
): Promise<Growth> {
  return storage ? growClaims(claims, storage.capacityGb, client, signal) : {};
}

/** The state of the requested instances' volumes. Pure. */
export function readVolumes(
  { storage, instances }: Database,
  { claims }: LiveDatabase,
  obstacle: GrowthObstacle | undefined,
): Volumes | undefined {
  if (!storage) {
    return undefined;
  }
  const own = claims.filter((claim) => ordinalOf(claim) < instances);
  const bound = own.length >= instances && own.every(({ status }) => status?.phase === "Bound");
  const sizes = own.map(({ status }) => (parseQuantity(status?.capacity?.storage ?? "") ?? 0n) / GIB);
  const least = sizes.reduce((a, b) => (b < a ? b : a), sizes[0] ?? 0n);
  return {
    bound,
    capacityGb: bound ? Number(least) : undefined,
    resizing: bound && least < BigInt(storage.capacityGb),
    ...(obstacle ? { obstacle } : {}),
  };
}

/** Why volumes are not as the project requests them; undefined when they are. Pure. */
export function storageProblem(volumes: Volumes, full: readonly LivePod[]): Finding | undefined {
  if (!volumes.bound) {
    return { reason: "VolumePending", message: "The volumes are not bound yet." };
  }
  if (!volumes.resizing) {
    return diskFull(full);
  }
  return volumes.obstacle
    ? { reason: volumes.obstacle, message: growthMessages[volumes.obstacle] }
    : { reason: "VolumeResizing", message: "The volumes are growing." };
}

/** @param full pods whose volumes are full */
export function diskFull(full: readonly LivePod[]): Finding | undefined {
  if (full.length === 0) {
    return undefined;
  }
  const names = full.map(({ metadata }) => metadata.name).join(", ");
  return { reason: "DiskFull", message: `No room is left on the volume of ${names}: ask for more storage.` };
}
