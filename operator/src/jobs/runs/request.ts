/** Runs that a client has requested: why one cannot be admitted, as far as that is the same for every type of project. Pure. */

import { type JobRun, type JobRunReason, jobRunName, type Project } from "@slipway/crds";
import { isAccepted } from "./job-state.ts";
import { projectUidOf } from "./run.ts";

/** How far `scheduledAt` of a run may be from its creation by the cluster's clock: its charge is stored under it. */
const MAX_SCHEDULED_APART_MS = 600_000;

/** Why a run cannot be admitted. */
export interface Refusal {
  reason: JobRunReason;
  message: string;
}

/** What the decision on a requested run depends on. */
export interface RequestView {
  run: JobRun;
  project: Project | undefined;
  now: Date;
  windowMs: number;
  /** Whether a project of this id exists in the run's namespace. */
  isProject(id: string): boolean;
}

/** What its type of project adds, each evaluated in its place. */
export interface RequestTerms {
  /** Why a project of this type has no such run. */
  type(project: Project): string | undefined;
  /** Why none begins any more. */
  closed(project: Project): Refusal | undefined;
  /** Whether the platform runs it as it is, in addition to the condition `Accepted`. */
  isComplete: boolean;
  /** Why none can begin now. */
  blocked(project: Project): Refusal | undefined;
}

/** Why a requested run is refused; undefined when it may be admitted. */
export function refusalOfRequest(view: RequestView, terms: RequestTerms): Refusal | undefined {
  const { run, project } = view;
  if (!project) {
    return { reason: "ProjectGone", message: "There is no such project." };
  }
  const type = terms.type(project);
  if (type !== undefined) {
    return { reason: "NotAccepted", message: type };
  }
  const owner = projectUidOf(run);
  if (owner !== undefined && owner !== project.metadata.uid) {
    return { reason: "ProjectGone", message: "The project that it was for was deleted." };
  }
  const closed = terms.closed(project);
  if (closed) {
    return closed;
  }
  if (project.spec.paused) {
    return { reason: "Paused", message: "The project is paused." };
  }
  if (!isAccepted(project) || !terms.isComplete) {
    return { reason: "NotAccepted", message: "The project is not accepted." };
  }
  const name = nameProblem(run, project.metadata.name, view.isProject);
  if (name !== undefined) {
    return { reason: "NotAccepted", message: name };
  }
  return terms.blocked(project) ?? timeProblem(view);
}

/**
 * The ledger identifies a run by its name, which must contain its minute, as those of scheduled runs do. Its Job has the same
 * name, so it must not be that of any project's occurrence.
 */
function nameProblem(
  { metadata: { name }, spec }: JobRun,
  projectId: string,
  isProject: (id: string) => boolean,
): string | undefined {
  const prefix = `${jobRunName(projectId, new Date(spec.scheduledAt))}-`;
  const suffix = name.startsWith(prefix) ? name.slice(prefix.length) : "";
  if (!/^[a-z0-9]{1,10}$/.test(suffix)) {
    return `Its name must be ${prefix} (the minutes since 1970 of scheduledAt) and 1 to 10 of a-z, 0-9.`;
  }
  const minute = /^(.+)-[0-9]+$/.exec(name)?.[1];
  return minute !== undefined && isProject(minute) ? "Its name is that of a scheduled run." : undefined;
}

function timeProblem({ run, now, windowMs }: RequestView): Refusal | undefined {
  const requestedAt = Date.parse(run.metadata.creationTimestamp ?? "");
  if (Math.abs(Date.parse(run.spec.scheduledAt) - requestedAt) > MAX_SCHEDULED_APART_MS) {
    return { reason: "NotAccepted", message: "Its scheduledAt must be when it was asked for: now." };
  }
  return now.getTime() >= requestedAt + windowMs
    ? { reason: "Late", message: "It was asked for too long ago." }
    : undefined;
}
