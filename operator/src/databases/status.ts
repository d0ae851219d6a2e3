/** The only place where what a reconcile of a database has found becomes conditions and status. Pure but for its arguments. */

import type { ConditionSet } from "@slipway/controller-runtime";
import type { Project, ProjectConditionCatalog, ProjectStatus } from "@slipway/crds";
import { podProblem } from "../applications/pod-problem.ts";
import type { Finding } from "../projects/status.ts";
import { setLimits } from "../projects/status-fields.ts";
import { CONTAINER } from "./common/pod.ts";
import { isReady } from "./common/pods.ts";
import type { Database } from "./database.ts";
import type { ClusterState, LiveDatabase, LivePod } from "./driver.ts";
import { type DatabaseFindings, statusOf } from "./findings.ts";
import type { Address } from "./live.ts";
import { diskFull, storageProblem, type Volumes } from "./volumes.ts";

/** Sets every condition of a database but `Accepted`, whose failure is thrown, and its part of the status. */
export function summarizeDatabase(
  project: Project,
  found: DatabaseFindings,
  conditions: ConditionSet<ProjectConditionCatalog>,
  status: ProjectStatus,
): void {
  const { database, live, clusterState, volumes, full, address } = found;
  setInstances(database, live, status);
  setWorkload(database, live, conditions);
  setDatabase(database, clusterState, conditions);
  setStorage(volumes, full, conditions);
  setAddress(database, address, conditions);
  setProgress(found, conditions, status);
  setReady(database, conditions);
  status.database = statusOf(found, status.database);
  const plan = found.inForce ?? database.plan;
  setLimits(project, plan.resources.limits, status);
  status.plan = plan.plan;
}

/** What is seen of a paused database whose spec is rejected. */
export function summarizeStop(
  { pods }: Pick<LiveDatabase, "pods">,
  conditions: ConditionSet<ProjectConditionCatalog>,
  status: ProjectStatus,
): void {
  conditions.set({ type: "WorkloadAvailable", ...PAUSED });
  conditions.set({ type: "Progressing", ...(pods.length === 0 ? PAUSED : PAUSING) });
  setInstances({ paused: true, instances: 0 }, { pods }, status);
}

const PAUSED = { status: "False", reason: "Paused", message: "The project is paused." } as const;
const PAUSING = { status: "True", reason: "Pausing", message: "Instances are being stopped." } as const;

function setInstances(
  { paused, instances }: Pick<Database, "paused" | "instances">,
  { pods }: Pick<LiveDatabase, "pods">,
  status: ProjectStatus,
): void {
  status.desiredInstances = paused ? 0 : instances;
  status.currentInstances = pods.length;
  status.readyInstances = pods.filter(isReady).length;
}

function setWorkload(
  { paused, instances }: Database,
  { pods }: LiveDatabase,
  conditions: ConditionSet<ProjectConditionCatalog>,
): void {
  const type = "WorkloadAvailable";
  const ready = pods.filter(isReady).length;
  if (paused) {
    conditions.set({ type, ...PAUSED });
  } else if (ready >= instances) {
    conditions.set({ type, status: "True", reason: "Available" });
  } else if (ready > 0) {
    const message = "Not every instance serves.";
    conditions.set({ type, status: "False", reason: "PartlyAvailable", message });
  } else {
    const missing: Finding = firstProblem(pods) ?? {
      reason: "Unavailable",
      message: "No instance serves yet.",
    };
    conditions.set({ type, status: "False", ...missing });
  }
}

function firstProblem(pods: LiveDatabase["pods"]): Finding | undefined {
  return pods
    .filter(({ metadata }) => !metadata.deletionTimestamp)
    .map((pod) => podProblem(pod, CONTAINER))
    .find((problem) => problem !== undefined);
}

function setDatabase(
  { paused }: Database,
  clusterState: ClusterState | undefined,
  conditions: ConditionSet<ProjectConditionCatalog>,
): void {
  const type = "DatabaseReady";
  if (paused || !clusterState) {
    conditions.set({ type, ...PAUSED });
  } else if (clusterState.missing) {
    conditions.set({ type, status: "False", ...clusterState.missing });
  } else {
    conditions.set({ type, status: "True", reason: "DatabaseAvailable" });
  }
}

function setStorage(
  volumes: Volumes | undefined,
  full: readonly LivePod[],
  conditions: ConditionSet<ProjectConditionCatalog>,
): void {
  const type = "StorageReady";
  if (!volumes) {
    conditions.remove(type);
    return;
  }
  const missing = storageProblem(volumes, full);
  conditions.set(
    missing ? { type, status: "False", ...missing } : { type, status: "True", reason: "VolumeBound" },
  );
}

function setAddress(
  { outside }: Database,
  address: Address | undefined,
  conditions: ConditionSet<ProjectConditionCatalog>,
): void {
  const type = "AddressReady";
  if (!outside) {
    conditions.remove(type);
  } else if (address) {
    conditions.set({ type, status: "True", reason: "AddressAssigned" });
  } else {
    const message = "The address outside the cluster is not assigned yet.";
    conditions.set({ type, status: "False", reason: "AddressPending", message });
  }
}

function setProgress(
  { database, live, clusterState, full }: DatabaseFindings,
  conditions: ConditionSet<ProjectConditionCatalog>,
  { phase }: ProjectStatus,
): void {
  const type = "Progressing";
  const { pods } = live;
  if (database.paused) {
    conditions.set({ type, ...(pods.length === 0 ? PAUSED : PAUSING) });
    return;
  }
  const fullDisk = diskFull(full);
  const moving = fullDisk ?? clusterState?.underWay ?? clusterState?.missing ?? unequal(database, live);
  if (!moving) {
    conditions.set({ type, status: "False", reason: "Settled" });
    return;
  }
  const broken = firstProblem(pods.filter((pod) => !isReady(pod)));
  const resuming = phase === "stopped" || phase === "resuming";
  const finding: Finding =
    fullDisk ??
    broken ??
    (resuming
      ? { reason: "Resuming", message: "Instances are being started again." }
      : database.bootstrapped
        ? moving
        : { reason: "Creating", message: "The database is being set up." });
  conditions.set({ type, status: "True", ...finding });
}

function unequal({ instances }: Database, { pods }: LiveDatabase): Finding | undefined {
  return pods.filter(isReady).length === instances && pods.length === instances
    ? undefined
    : { reason: "Scaling", message: "Instances are being started or stopped." };
}

/** `Ready` repeats the first finding that prevents it; a full volume is why the rest fails. */
function setReady({ paused }: Database, conditions: ConditionSet<ProjectConditionCatalog>): void {
  const order = ["DatabaseReady", "WorkloadAvailable", "StorageReady", "AddressReady"] as const;
  const unmet = order.map((type) => conditions.get(type));
  const obstacle = [...unmet.filter((condition) => condition?.reason === "DiskFull"), ...unmet].find(
    (condition) => condition?.status === "False" && (!paused || condition.reason === "Paused"),
  );
  const { reason, message } = obstacle ?? {};
  conditions.set(
    reason === undefined
      ? { type: "Ready", status: "True", reason: "Ready" }
      : { type: "Ready", status: "False", reason, message },
  );
}
