/** Derives conditions and status of a scheduled job from the findings of a reconcile, and nothing else does. Pure but for its arguments. */

import type { ConditionSet } from "@slipway/controller-runtime";
import type { Project, ProjectConditionCatalog, ProjectStatus } from "@slipway/crds";
import { type Finding, setVolume } from "../projects/status.ts";
import { setImage, setLimits } from "../projects/status-fields.ts";

/** Findings of one reconcile of a job. */
export interface JobFindings {
  /** The CronJob exists and is up to date. */
  inPlace: boolean;
  /** The volume; absent without persistent storage. On some clusters it is provisioned when the first run starts. */
  volume?: { bound: boolean };
  /** What a run gets, as quantities. */
  limits: { cpu: string; memory: string };
}

/** Sets every condition of a job but `Accepted`, whose failure is thrown, and its part of the status. */
export function summarizeJob(
  project: Project,
  { inPlace, volume, limits }: JobFindings,
  conditions: ConditionSet<ProjectConditionCatalog>,
  status: ProjectStatus,
): void {
  const rest = restOf(project);
  setSchedule(conditions, rest, inPlace);
  setVolume(conditions, volume);
  const active = conditions.get("ScheduleActive");
  conditions.set(
    active?.status === "False"
      ? { type: "Ready", status: "False", reason: active.reason, message: active.message }
      : { type: "Ready", status: "True", reason: "Ready" },
  );
  setLimits(project, limits, status);
  if (conditions.isTrue("Ready")) {
    setImage(project, status);
  }
}

/** For a job that is deleted or whose spec is rejected: whether its schedule is suspended nevertheless. */
export function summarizeRest(project: Project, conditions: ConditionSet<ProjectConditionCatalog>): void {
  const rest = restOf(project);
  if (rest) {
    setSchedule(conditions, rest, false);
  }
}

/** Why a schedule is suspended; undefined when it is not. */
function restOf({ metadata, spec }: Project): Finding | undefined {
  if (spec.job?.closedAt !== undefined || metadata.deletionTimestamp !== undefined) {
    return { reason: "ScheduleClosed", message: "The schedule is closed." };
  }
  return spec.paused ? { reason: "Paused", message: "The project is paused." } : undefined;
}

function setSchedule(
  conditions: ConditionSet<ProjectConditionCatalog>,
  rest: Finding | undefined,
  inPlace: boolean,
): void {
  const [type, progress] = ["ScheduleActive", "Progressing"] as const;
  if (rest) {
    // A run in progress continues to its end, and the schedule does not wait for it.
    conditions.set({ type, status: "False", ...rest });
    conditions.set({ type: progress, status: "False", ...rest });
  } else if (inPlace) {
    conditions.set({ type, status: "True", reason: "Scheduled" });
    conditions.set({ type: progress, status: "False", reason: "Settled" });
  } else {
    const creating: Finding = { reason: "Creating", message: "The schedule is being set up." };
    conditions.set({ type, status: "False", ...creating });
    conditions.set({ type: progress, status: "True", ...creating });
  }
}
