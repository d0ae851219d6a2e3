/** `status.job` of a project: what changes in it, and when. Pure. */

import { findCondition, isConditionTrue } from "@slipway/controller-runtime";
import { type JobRun, jobRunName, type MissedReason, missedReasons, type Project } from "@slipway/crds";
import { dateOf, isEnded, isNeverStarted, isOver } from "./run.ts";

/** State of a scheduled job. */
export type JobState = NonNullable<NonNullable<Project["status"]>["job"]>;

/** An occurrence that was not run. */
export interface Missed {
  scheduledAt: Date;
  reason: MissedReason;
}

/** The state as last written. */
export const jobStateOf = (project: Project): JobState => project.status?.job ?? {};

/** Whether the project's plan, Secrets and namespace are as they should be. */
export const isAccepted = (project: Project): boolean =>
  isConditionTrue(project.status?.conditions, "Accepted");

/** Whether the project controller has validated it. */
export const hasAcceptedCondition = (project: Project): boolean =>
  findCondition(project.status?.conditions, "Accepted") !== undefined;

/** Whether no new run may begin, until the schedule is opened again. */
export const isClosed = ({ metadata, spec }: Project): boolean =>
  metadata.deletionTimestamp !== undefined || spec.job?.closedAt !== undefined;

/** Whether occurrences of the schedule count. */
export const isScheduled = (project: Project): boolean =>
  project.spec.type === "job" &&
  project.spec.job !== undefined &&
  !isClosed(project) &&
  project.spec.paused !== true;

/** A moment of the status that is further in the future was written by a leader with a wrong clock. Milliseconds. */
const AHEAD_MS = 60_000;

/** The state that the spec requests: follows a schedule from now on, or suspends it. */
export function followSpec(project: Project, now: Date): JobState {
  const state = withoutAhead(jobStateOf(project), now);
  const { scheduledSince, nextScheduledAt, scheduleClosedAt, ...rest } = state;
  if (isScheduled(project)) {
    const schedule = project.spec.job?.cron;
    if (scheduledSince !== undefined && state.schedule === schedule) {
      return { ...rest, scheduledSince, ...(nextScheduledAt === undefined ? {} : { nextScheduledAt }) };
    }
    return { ...rest, schedule, scheduledSince: now.toISOString() };
  }
  return isClosed(project) ? { ...rest, scheduleClosedAt: closedAt(project, scheduleClosedAt, now) } : rest;
}

/** Drops moments in the future, which a leader with a wrong clock has written: the schedule is followed from now on. */
function withoutAhead(state: JobState, now: Date): JobState {
  const isAhead = (text: string | undefined) => (dateOf(text)?.getTime() ?? 0) - now.getTime() > AHEAD_MS;
  const { lastScheduledAt, lastFinishedAt, scheduledSince, nextScheduledAt, ...rest } = state;
  const decidedAhead = isAhead(lastScheduledAt) || isAhead(scheduledSince);
  return {
    ...rest,
    ...(decidedAhead ? {} : { lastScheduledAt, scheduledSince, nextScheduledAt }),
    ...(isAhead(lastFinishedAt) ? {} : { lastFinishedAt }),
  };
}

/** When the closing was acknowledged: never before it was requested, by any clock. */
function closedAt({ spec }: Project, before: string | undefined, now: Date): string {
  const requested = dateOf(spec.job?.closedAt) ?? new Date(0);
  const known = dateOf(before);
  if (known && known >= requested && before !== undefined) {
    return before;
  }
  return (requested > now ? requested : now).toISOString();
}

/** The state with more missed occurrences, oldest first. */
export function countMissed(state: JobState, missed: readonly Missed[]): JobState {
  if (missed.length === 0) {
    return state;
  }
  const counts = new Map((state.missedReasons ?? []).map((entry) => [entry.reason, entry]));
  for (const { reason, scheduledAt } of missed) {
    const count = (counts.get(reason)?.count ?? 0) + 1;
    counts.set(reason, { reason, count, lastScheduledAt: scheduledAt.toISOString() });
  }
  return {
    ...state,
    missed: (state.missed ?? 0) + missed.length,
    missedReasons: missedReasons.flatMap((reason) => counts.get(reason) ?? []),
  };
}

/**
 * The state without the run that had the slot.
 * @param run as it ended; undefined when it never ran
 * @param now bounds the time of a node's clock
 */
export function releaseSlot(state: JobState, run: JobRun | undefined, now: Date): JobState {
  const { activeRun: _activeRun, ...rest } = state;
  const { phase, startedAt, finishedAt } = run?.status ?? {};
  if (!run || !phase || finishedAt === undefined) {
    return rest;
  }
  // A node whose clock is ahead must not make future occurrences overlap.
  const lastFinishedAt = new Date(finishedAt) > now ? now.toISOString() : finishedAt;
  return {
    ...rest,
    lastFinishedAt,
    lastRun: { name: run.metadata.name, phase, startedAt, finishedAt },
  };
}

/**
 * The state without a holder of the slot that is over, and the missed occurrence to count for it.
 * @param holder the run that has the slot
 */
export function releasedState(
  project: Project,
  holder: JobRun | undefined,
  now: Date,
): { state: JobState; missed: Missed[] } {
  const state = jobStateOf(project);
  if (!holder || !isOver(holder)) {
    return { state, missed: [] };
  }
  const released = releaseSlot(state, isEnded(holder) ? holder : undefined, now);
  const missed: Missed[] = [];
  const { trigger, scheduledAt } = holder.spec;
  if (isNeverStarted(holder) && trigger === "schedule" && holder.status?.phase === undefined) {
    missed.push({ scheduledAt: new Date(scheduledAt), reason: "NeverStarted" });
  }
  const last = dateOf(state.lastScheduledAt);
  const isOccurrence = last && holder.metadata.name === jobRunName(project.metadata.name, last);
  if (isOccurrence && !isEnded(holder) && trigger === "manual") {
    // Somebody created a JobRun of the occurrence's name by hand, which never ran.
    missed.push({ scheduledAt: last, reason: "NotCreated" });
  }
  return { state: countMissed(released, missed), missed };
}
