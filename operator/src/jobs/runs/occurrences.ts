/** Which occurrences of a schedule are run and which are missed. Pure. */

import type { MissedReason, Project } from "@slipway/crds";
import { countMissed, followSpec, isAccepted, type JobState, type Missed } from "./job-state.ts";
import { dateOf } from "./run.ts";
import { parseSchedule, type Schedule } from "./schedule.ts";

/** Occurrences that are decided in one write. */
export const MAX_DECIDED = 5_000;

/** The input of a decision. */
export interface OccurrencesView {
  project: Project;
  now: Date;
  /** Time at which this operator became the leader. */
  leaderSince: Date;
  windowMs: number;
  /** Whether a Job exists that could be admitted for an occurrence. */
  hasJob(scheduledAt: Date): boolean;
  /** Whether a pod of a run that is over still runs: nothing else may start. */
  occupied: boolean;
  /** Whether the plan's price is known; without it nothing can be admitted. */
  priced: boolean;
}

/** The decision about the occurrences that are due. */
export interface OccurrenceDecision {
  /** `status.job` as it should be. */
  state: JobState;
  /** The occurrence that acquires the slot. */
  admitted?: Date;
  missed: Missed[];
  /** When to decide again, unless an event triggers that before. */
  requeueAt?: Date;
}

/** Decides every occurrence that can be decided now, oldest first. */
export function decideOccurrences(
  view: OccurrencesView,
  nameOf: (scheduledAt: Date) => string,
): OccurrenceDecision {
  const { project, now } = view;
  const state = followSpec(project, now);
  if (state.scheduledSince === undefined || state.schedule === undefined) {
    return { state, missed: [] };
  }
  const schedule = parseSchedule(state.schedule);
  const from = countedFrom(state);
  const due = schedule.between(from, now, MAX_DECIDED);
  const missed: Missed[] = [];
  let admitted: Date | undefined;
  let undecided: Date | undefined;
  for (const scheduledAt of due) {
    const decision = decide(scheduledAt, state, schedule, view);
    if (decision === "wait") {
      undecided = scheduledAt;
    } else if (decision === "admit") {
      admitted = scheduledAt;
    } else {
      missed.push({ scheduledAt, reason: decision });
    }
    // An open window is always the last one's: it ends with the next occurrence at the latest.
    if (decision === "wait" || decision === "admit") {
      break;
    }
  }
  const decided = admitted ?? missed.at(-1)?.scheduledAt;
  const next = undecided ?? schedule.next(decided ?? (from > now ? from : now));
  const full = due.length === MAX_DECIDED;
  return {
    state: {
      ...countMissed(state, missed),
      ...(decided ? { lastScheduledAt: decided.toISOString() } : {}),
      ...(admitted ? { activeRun: nameOf(admitted) } : {}),
      ...nextScheduled(state, schedule, decided, now),
    },
    missed,
    ...(admitted ? { admitted } : {}),
    ...requeueAt(full ? now : next && nextDecisionAt(next, schedule, view)),
  };
}

/** The end of the time in which an occurrence may be admitted: never past the next one. */
export function windowEnd(scheduledAt: Date, schedule: Schedule, windowMs: number): Date {
  const latest = scheduledAt.getTime() + windowMs;
  const next = schedule.next(scheduledAt)?.getTime() ?? latest;
  return new Date(Math.min(latest, next));
}

/** Whether a Job for this moment may still be admitted: it is due later, or has not been decided. */
export function isPendingOccurrence(scheduledAt: Date, project: Project): boolean {
  const state = project.status?.job;
  if (!state?.scheduledSince || state.schedule === undefined) {
    return false;
  }
  return scheduledAt > countedFrom(state) && parseSchedule(state.schedule).has(scheduledAt);
}

function countedFrom(state: JobState): Date {
  const since = dateOf(state.scheduledSince) ?? new Date(0);
  const last = dateOf(state.lastScheduledAt) ?? since;
  return last > since ? last : since;
}

function decide(
  scheduledAt: Date,
  state: JobState,
  schedule: Schedule,
  view: OccurrencesView,
): MissedReason | "admit" | "wait" {
  const { project, now, leaderSince, windowMs } = view;
  const closes = windowEnd(scheduledAt, schedule, windowMs);
  const blocked = state.activeRun !== undefined || view.occupied;
  const lastFinished = dateOf(state.lastFinishedAt);
  const overlapped = lastFinished !== undefined && lastFinished >= scheduledAt;
  const ready = isAccepted(project) && view.priced;
  if (now >= closes) {
    if (blocked || overlapped) {
      return "Overlap";
    }
    if (!ready) {
      return "NotAccepted";
    }
    if (closes <= leaderSince) {
      return "OperatorUnavailable";
    }
    return view.hasJob(scheduledAt) ? "Late" : "NotCreated";
  }
  if (blocked) {
    return "wait";
  }
  if (overlapped) {
    return "Overlap";
  }
  return ready && view.hasJob(scheduledAt) ? "admit" : "wait";
}

/** The occurrence itself when its Job exists; otherwise the end of its window, for an event of the Job comes before that. */
function nextDecisionAt(next: Date, schedule: Schedule, { now, windowMs, hasJob }: OccurrencesView): Date {
  return next > now && hasJob(next) ? next : windowEnd(next, schedule, windowMs);
}

function requeueAt(at: Date | undefined): { requeueAt?: Date } {
  return at ? { requeueAt: at } : {};
}

/** Written with every decision, and when it was never written. */
function nextScheduled(
  state: JobState,
  schedule: Schedule,
  decided: Date | undefined,
  now: Date,
): Pick<JobState, "nextScheduledAt"> {
  if (!decided && state.nextScheduledAt !== undefined) {
    return {};
  }
  const next = schedule.next(decided && decided > now ? decided : now);
  return next ? { nextScheduledAt: next.toISOString() } : { nextScheduledAt: undefined };
}
