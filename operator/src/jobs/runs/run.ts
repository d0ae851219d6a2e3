/** The state of a JobRun, by its own conditions. Pure. */

import { findCondition } from "@slipway/controller-runtime";
import {
  annotations,
  type JobRun,
  type JobRunCondition,
  type JobRunReason,
  oneOffTypes,
  type Project,
} from "@slipway/crds";
import type { Job } from "./cluster.ts";
import type { JobRunSettings } from "./settings.ts";

/** Whether a condition has this status, and this reason when one is passed. */
export function hasCondition(
  { status }: JobRun,
  type: JobRunCondition,
  value: "True" | "False",
  reason?: JobRunReason,
): boolean {
  const found = findCondition(status?.conditions, type);
  return found?.status === value && (reason === undefined || found.reason === reason);
}

/** The run was rejected. */
export const isRefused = (run: JobRun): boolean => hasCondition(run, "Admitted", "False");
/** Its container ran and has ended. */
export const isEnded = (run: JobRun): boolean => hasCondition(run, "Finished", "True");
/** Its container never ran, and never will. */
export const isNeverStarted = (run: JobRun): boolean => hasCondition(run, "Finished", "False");
/** Whether it no longer needs the slot: rejected, ended or never started. */
export const isOver = (run: JobRun): boolean => isRefused(run) || isEnded(run) || isNeverStarted(run);
/** Nothing is left to be charged. */
export const isCharged = (run: JobRun): boolean => hasCondition(run, "Charged", "True");

/** Whether this Job is unsuspended: its pods may start. */
export const isJobAdmitted = (job: Job): boolean =>
  job.spec?.suspend !== true && job.metadata.annotations?.[annotations.admittedAt] !== undefined;

/** When a run was admitted, by its JobRun or Job; undefined when it was not. */
export function admissionTime(run: JobRun | undefined, job: Job | undefined): Date | undefined {
  const onJob = job && isJobAdmitted(job) ? job.metadata.annotations?.[annotations.admittedAt] : undefined;
  return dateOf(run?.status?.admittedAt ?? onJob);
}

/** Whether its pod may have started, by its JobRun or Job. A recorded pod proves it after the Job is deleted. */
export function isAdmitted(run: JobRun | undefined, job: Job | undefined): boolean {
  return admissionTime(run, job) !== undefined || run?.status?.podUid !== undefined;
}

/** The Project that a run belongs to, by uid. */
export function projectUidOf(run: JobRun): string | undefined {
  return run.metadata.ownerReferences?.find(({ kind }) => kind === "Project")?.uid;
}

/** Whether a project's image can run a command once. */
export const hasOneOffRuns = ({ spec: { type } }: Pick<Project, "spec">): boolean =>
  oneOffTypes.some((one) => one === type);

/** Milliseconds from the start of its container after which a run is stopped. */
export function limitMsOf({ spec }: JobRun, { limitMs }: Pick<JobRunSettings, "limitMs">): number {
  return spec.timeoutSeconds === undefined ? limitMs : Math.min(spec.timeoutSeconds * 1_000, limitMs);
}

/** A moment of a status. */
export function dateOf(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text);
}
