/** Derives conditions and status of a project from what a reconcile has observed, and nothing else does. Pure but for its arguments. */

import type { ConditionSet } from "@slipway/controller-runtime";
import type { Project, ProjectConditionCatalog, ProjectReason, ProjectStatus } from "@slipway/crds";
import type { Rollout } from "../applications/rollout.ts";
import { type GrowthObstacle, growthMessages } from "../workload/pvc.ts";
import { setImage, setLimits } from "./status-fields.ts";

/** Reason and message of a condition that is not as it should be. */
export interface Finding {
  reason: ProjectReason;
  message: string;
}

/** What one reconcile has found out about a project's workload. */
export interface Findings {
  rollout: Rollout;
  /** Why the newest version, or the instances that should be, did not come to serve in time. */
  failure?: string;
  /** It is its pre-deploy command that has failed. */
  isPreDeploy?: boolean;
  /** Where its pre-deploy command is, which comes before its instances. */
  progress?: Finding;
  /** The public route, and its obstacle until it is ready; absent for a private project. */
  route?: { host?: string; missing?: Finding };
  /** The volume; absent without persistent storage. */
  volume?: { bound: boolean; obstacle?: GrowthObstacle };
  /** What one instance gets, as quantities. */
  limits?: { cpu: string; memory: string };
}

/** Sets every condition of a project but `Accepted`, whose failure is thrown, and the numbers of its status. */
export function summarize(
  project: Project,
  found: Findings,
  conditions: ConditionSet<ProjectConditionCatalog>,
  status: ProjectStatus,
): void {
  const paused = project.spec.paused === true;
  setRolloutFailed(conditions, found.failure, found.isPreDeploy ? "PreDeployFailed" : "DeadlineExceeded");
  const asleep = sleepingReason(status, found.rollout);
  setWorkload(conditions, found.rollout, paused, asleep);
  setProgress(conditions, found.rollout, paused, status, asleep ? undefined : found.progress, asleep);
  summarizeRoute(found.route, conditions, status);
  setVolume(conditions, found.volume);
  setReady(conditions, paused);

  const { rollout, limits } = found;
  status.desiredInstances = rollout.wanted;
  status.currentInstances = rollout.existing;
  status.readyInstances = rollout.serving;
  if (limits) {
    setLimits(project, limits, status);
  }
  if (conditions.isTrue("Ready") && !asleep) {
    setImage(project, status, rollout.imageDigest);
  }
}

/** Summarizes a paused project whose spec is rejected: whether its instances have ended nevertheless. */
export function summarizePause(
  rollout: Rollout,
  conditions: ConditionSet<ProjectConditionCatalog>,
  status: ProjectStatus,
): void {
  setWorkload(conditions, rollout, true);
  setProgress(conditions, rollout, true, status);
  status.desiredInstances = rollout.wanted;
  status.currentInstances = rollout.existing;
  status.readyInstances = rollout.serving;
}

/** Sets the public route: its condition, and the domain that is routed to the project. */
export function summarizeRoute(
  route: Findings["route"],
  conditions: ConditionSet<ProjectConditionCatalog>,
  status: ProjectStatus,
): void {
  setRoute(conditions, route);
  status.domain = route?.host;
  status.url = route?.host && `http://${route.host}`;
}

function setRolloutFailed(
  conditions: ConditionSet<ProjectConditionCatalog>,
  failure: string | undefined,
  reason: ProjectReason,
): void {
  const type = "RolloutFailed";
  if (failure !== undefined) {
    conditions.set({ type, status: "True", reason, message: failure });
  } else {
    conditions.remove(type);
  }
}

type SleepingReason = "Sleeping" | "Waking";

/** Of a project whose requests the activator keeps and answers: it is as it should be, unless an instance fails to start. */
function sleepingReason({ sleep }: ProjectStatus, { problem }: Rollout): SleepingReason | undefined {
  if (sleep?.phase === "asleep") {
    return "Sleeping";
  }
  return sleep?.phase === "waking" && problem === undefined ? "Waking" : undefined;
}

function setWorkload(
  conditions: ConditionSet<ProjectConditionCatalog>,
  { serving, wanted, problem }: Rollout,
  paused: boolean,
  asleep?: SleepingReason,
): void {
  const type = "WorkloadAvailable";
  if (paused) {
    conditions.set({ type, status: "False", reason: "Paused", message: "The project is paused." });
  } else if (asleep) {
    conditions.set({
      type,
      status: "True",
      reason: asleep,
      message: "The next request starts its instances.",
    });
  } else if (serving >= wanted && wanted > 0) {
    conditions.set({ type, status: "True", reason: "Available" });
  } else if (serving > 0) {
    conditions.set({
      type,
      status: "False",
      reason: "PartlyAvailable",
      message: "Not every instance serves.",
    });
  } else {
    conditions.set({
      type,
      status: "False",
      ...(problem ?? { reason: "Unavailable", message: "No instance serves yet." }),
    });
  }
}

function setProgress(
  conditions: ConditionSet<ProjectConditionCatalog>,
  rollout: Rollout,
  paused: boolean,
  status: ProjectStatus,
  progress?: Finding,
  asleep?: SleepingReason,
): void {
  const type = "Progressing";
  if (paused) {
    conditions.set(
      rollout.complete
        ? { type, status: "False", reason: "Paused", message: "The project is paused." }
        : { type, status: "True", reason: "Pausing", message: "Instances are being stopped." },
    );
  } else if (asleep) {
    conditions.set({ type, status: "False", reason: asleep });
  } else if (progress) {
    conditions.set({ type, status: "True", ...progress });
  } else if (rollout.complete) {
    conditions.set({ type, status: "False", reason: "Settled" });
  } else {
    conditions.set({ type, status: "True", ...underWay(rollout, status) });
  }
}

function underWay({ problem, pulling }: Rollout, { phase, image, deployments }: ProjectStatus): Finding {
  if (problem) {
    return problem;
  }
  if (pulling) {
    return { reason: "PullingImage", message: "The image is being pulled." };
  }
  if (phase === "stopped" || phase === "resuming") {
    return { reason: "Resuming", message: "Instances are being started again." };
  }
  if (image === undefined) {
    return { reason: "Creating", message: "The first instances are being started." };
  }
  return deployments?.[0]?.status === "in_progress"
    ? { reason: "RollingOut", message: "A new version is being rolled out." }
    : { reason: "Scaling", message: "Instances are being started or stopped." };
}

function setRoute(conditions: ConditionSet<ProjectConditionCatalog>, route: Findings["route"]): void {
  const type = "DomainReady";
  if (!route) {
    conditions.remove(type);
  } else if (route.missing) {
    const { reason, message } = route.missing;
    conditions.set({ type, status: "False", reason, message });
  } else {
    conditions.set({ type, status: "True", reason: "DomainAssigned" });
  }
}

/** Sets whether the volume is bound; without persistent storage there is no condition. */
export function setVolume(
  conditions: ConditionSet<ProjectConditionCatalog>,
  volume: Findings["volume"],
): void {
  const type = "StorageReady";
  if (!volume) {
    conditions.remove(type);
  } else if (volume.bound && volume.obstacle) {
    // It is bound, and serves with its current size.
    const { obstacle: reason } = volume;
    conditions.set({ type, status: "True", reason, message: growthMessages[reason] });
  } else if (volume.bound) {
    conditions.set({ type, status: "True", reason: "VolumeBound" });
  } else {
    const message = "The volume is not bound yet.";
    conditions.set({ type, status: "False", reason: "VolumePending", message });
  }
}

/** `Ready` repeats the first obstacle. */
function setReady(conditions: ConditionSet<ProjectConditionCatalog>, paused: boolean): void {
  const unavailable = ["WorkloadAvailable", "False"] as const;
  const order = [
    ["RolloutFailed", "True"],
    ...(paused ? [unavailable] : []),
    ["Progressing", "True"],
    unavailable,
    ["StorageReady", "False"],
    ["DomainReady", "False"],
  ] as const;
  const obstacle = order
    .map(([type, bad]) => ({ condition: conditions.get(type), bad }))
    .find(({ condition, bad }) => condition?.status === bad)?.condition;
  conditions.set(
    obstacle
      ? { type: "Ready", status: "False", reason: obstacle.reason, message: obstacle.message }
      : { type: "Ready", status: "True", reason: "Ready" },
  );
}
