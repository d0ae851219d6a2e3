/** Whether a change of a project's `status.job` is a decision that the occurrences of its schedule allow. */

import type { Project } from "@slipway/crds";
import { time } from "./charge-rules.ts";
import { ModelSchedule } from "./cron.ts";

export type JobStatus = NonNullable<NonNullable<Project["status"]>["job"]>;

/** The spec of a project from a moment on. */
export interface SpecChange {
  at: number;
  spec: Project["spec"];
  deleting: boolean;
}

export interface Decision {
  before: JobStatus;
  after: JobStatus;
  /** Every spec that the project had, oldest first. */
  changes: readonly SpecChange[];
  now: number;
  windowMs: number;
  /** By how much clocks and answers may be off. */
  slackMs: number;
  nameOf: (scheduledAt: number) => string;
}

export interface DecisionCheck {
  faults: string[];
  admitted: number | undefined;
  /** The run that released the slot, and whether its occurrence was counted as missed. */
  released: { run: string; missed: boolean } | undefined;
  /** Newly counted misses by reason. */
  missed: Record<string, number>;
}

/**
 * Every occurrence that a decision passes over must be counted, exactly once, but the one that it admits; and one that never
 * started is counted as its slot is released.
 */
export function faultsOfDecision(decision: Decision): DecisionCheck {
  const { before, after, now, nameOf } = decision;
  const missed = newlyMissed(before, after);
  const total = Object.values(missed).reduce((sum, count) => sum + count, 0);
  const faults: string[] = [];
  if (Object.values(missed).some((count) => count < 0)) {
    faults.push("a count of missed occurrences fell");
  }
  const sum = (after.missedReasons ?? []).reduce((all, { count }) => all + count, 0);
  if ((after.missed ?? 0) !== sum) {
    faults.push(`${after.missed} missed, the reasons add up to ${sum}`);
  }
  faults.push(...faultsOfRest(decision));

  const passed = passedOver(decision);
  const admitted = passed.findLast(
    (at) => nameOf(at) === after.activeRun && after.activeRun !== before.activeRun,
  );
  const released = before.activeRun !== undefined && after.activeRun !== before.activeRun;
  const expected = passed.length - (admitted === undefined ? 0 : 1);
  // An occurrence that was admitted and never started is counted as its slot is released.
  const returned = total - expected;
  if (returned !== 0 && !(returned === 1 && released)) {
    const range = passed.map((at) => new Date(at).toISOString().slice(11, 16)).join(" ");
    faults.push(`${total} occurrences counted as missed instead of ${expected} of [${range}]`);
  }
  if ((missed.NeverStarted ?? 0) > Math.max(0, returned)) {
    faults.push("counted as never started at no time");
  }
  if (admitted !== undefined) {
    faults.push(...faultsOfWindow(admitted, decision));
  }
  if (passed.some((at) => at > now + decision.slackMs)) {
    faults.push("decided before it was due");
  }
  const gave = released ? { run: before.activeRun ?? "", missed: returned === 1 } : undefined;
  return { faults, admitted, released: gave, missed };
}

/** Occurrences between the newest that was decided before and the newest that is decided now. */
function passedOver({ before, after }: Decision): number[] {
  if (after.lastScheduledAt === before.lastScheduledAt || after.lastScheduledAt === undefined) {
    return [];
  }
  const since = Math.max(time(after.scheduledSince), time(before.lastScheduledAt) || 0);
  if (after.schedule === undefined || Number.isNaN(since)) {
    return [];
  }
  return new ModelSchedule(after.schedule).between(since, time(after.lastScheduledAt));
}

function newlyMissed(before: JobStatus, after: JobStatus): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { reason, count } of after.missedReasons ?? []) {
    counts[reason] = count;
  }
  for (const { reason, count } of before.missedReasons ?? []) {
    counts[reason] = (counts[reason] ?? 0) - count;
  }
  for (const [reason, count] of Object.entries(counts)) {
    if (count === 0) {
      delete counts[reason];
    }
  }
  return counts;
}

/** A schedule is followed again only after somebody changed, paused or reopened it. */
function faultsOfRest({ before, after, changes, now, slackMs }: Decision): string[] {
  if (after.lastScheduledAt !== undefined && before.lastScheduledAt !== undefined) {
    if (time(after.lastScheduledAt) < time(before.lastScheduledAt)) {
      return ["went back to an older occurrence"];
    }
  }
  if (after.scheduledSince === before.scheduledSince) {
    return [];
  }
  const spec = changes.at(-1);
  if (!spec) {
    return ["followed without a spec"];
  }
  if (after.scheduledSince === undefined) {
    const rested = changes.some(
      (change) => isResting(change) && change.at > time(before.scheduledSince) - slackMs,
    );
    return rested ? [] : ["rests although nobody requested it"];
  }
  const since = time(after.scheduledSince);
  if (Math.abs(since - now) > slackMs) {
    return [`follows the schedule since ${after.scheduledSince}`];
  }
  const from = time(before.scheduledSince) || 0;
  const changed = changes.some(({ at }) => at > from - slackMs);
  return changed ? [] : ["began again although nobody changed anything"];
}

function isResting({ spec, deleting }: SpecChange): boolean {
  return deleting || spec.paused === true || spec.job?.closedAt !== undefined;
}

/** An occurrence is admitted within the window and before the next one, on a schedule that is followed. */
function faultsOfWindow(admitted: number, { after, now, windowMs, slackMs, changes }: Decision): string[] {
  const faults: string[] = [];
  const next = new ModelSchedule(after.schedule ?? "").next(admitted);
  if (now > Math.min(admitted + windowMs, next) + slackMs) {
    faults.push(`admitted ${(now - admitted) / 1_000} s after its minute`);
  }
  if (admitted <= time(after.scheduledSince)) {
    faults.push("admitted an occurrence from before the schedule began");
  }
  const spec = changes.at(-1);
  if (spec && isResting(spec)) {
    faults.push("admitted although the schedule rests");
  }
  if (spec && spec.spec.job?.cron !== after.schedule) {
    faults.push("admitted by a schedule that was changed");
  }
  return faults;
}
