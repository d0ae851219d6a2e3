/** Whether a row of the ledger is what the run's container, its cancellation and its price come to. */

import type { ChargedRun } from "../../operator/src/jobs/runs/ports.ts";
import { MAX_SILENT_MS } from "./nodes.ts";
import type { RunTruth } from "./run-truth.ts";

export interface ChargeLimits {
  limitMs: number;
  /** Most milliseconds by which two clocks differ. */
  skewMs: number;
}

/** The faults of a row; empty without any. */
export function faultsOfCharge(row: ChargedRun, truth: RunTruth, limits: ChargeLimits): string[] {
  const faults: string[] = [];
  const started = row.started_at.getTime();
  const finished = row.finished_at.getTime();
  const billed = row.billed_until.getTime();
  // A pod made in place of one taken by force may have started in the same second.
  const those = truth.containers.filter(({ reportedStartedAt }) => time(reportedStartedAt) === started);
  const record = those.find(({ reportedFinishedAt }) => time(reportedFinishedAt) === finished) ?? those[0];
  if (!record) {
    return [`charged from ${row.started_at.toISOString()}, when no container started`];
  }
  if (record.endedAt === undefined && !truth.tampered) {
    faults.push("charged while its container runs");
  }
  if (row.trigger !== truth.trigger) {
    faults.push(`trigger is ${row.trigger}`);
  }
  if (row.scheduled_at.getTime() !== truth.scheduledAt) {
    faults.push("scheduled at another moment");
  }
  faults.push(...faultsOfEnd(finished, started, record.reportedFinishedAt, truth, limits));
  faults.push(...faultsOfStatus(row, truth, record.exitCode, limits));
  if (row.billed_minutes !== minutesBetween(started, billed)) {
    faults.push(`${row.billed_minutes} minutes for ${(billed - started) / 1_000} s`);
  }
  if (row.plan !== truth.plan) {
    faults.push(`plan ${row.plan} instead of ${truth.plan}`);
  }
  if (row.price_per_minute !== truth.price) {
    faults.push(`price ${row.price_per_minute} instead of ${truth.price}`);
  }
  if (units(row.amount) !== units(row.price_per_minute) * BigInt(row.billed_minutes)) {
    faults.push(`amount ${row.amount}`);
  }
  return faults;
}

/** The end must be the one that the pod reported; without one, the last moment at which it was seen running. */
function faultsOfEnd(
  finished: number,
  started: number,
  reported: string | undefined,
  truth: RunTruth,
  { skewMs }: ChargeLimits,
): string[] {
  const known =
    reported !== undefined && truth.reportedEnds.has(reported)
      ? Math.max(time(reported), started)
      : undefined;
  if (known !== undefined && finished === known) {
    return [];
  }
  if (known !== undefined && !truth.tampered) {
    return [`finished at ${iso(finished)}, its pod reported ${iso(known)}`];
  }
  const seen = time(truth.ended?.status?.lastObservedRunningAt);
  const expected = Number.isNaN(seen) ? started : Math.max(seen, started);
  if (finished !== expected) {
    return [`finished at ${iso(finished)}, last seen running at ${iso(expected)}`];
  }
  const ended = Math.max(...truth.containers.map(({ endedAt }) => endedAt ?? Number.POSITIVE_INFINITY));
  // Two clocks, and the time in which a dead container is still reported as running by a node that is reported as ready.
  return finished > ended + skewMs + MAX_SILENT_MS
    ? [`finished at ${iso(finished)}, long after its container`]
    : [];
}

function faultsOfStatus(
  row: ChargedRun,
  truth: RunTruth,
  exitCode: number | undefined,
  { limitMs }: ChargeLimits,
): string[] {
  const [started, finished, billed] = [row.started_at, row.finished_at, row.billed_until].map((at) =>
    at.getTime(),
  );
  if (started === undefined || finished === undefined || billed === undefined) {
    return [];
  }
  const cancelAt = cancelOf(truth);
  const cancelled =
    !Number.isNaN(cancelAt) &&
    (Math.floor(finished / 1_000) >= Math.floor(cancelAt / 1_000) || isUnsure(truth));
  if (row.status === "cancelled" || (cancelled && !isUnsure(truth))) {
    const expected = Math.max(started, Math.min(cancelAt, finished));
    if (row.status !== "cancelled") {
      return [`${row.status} although it was cancelled`];
    }
    if (!cancelled) {
      return ["cancelled although nobody requested it in time"];
    }
    return billed === expected ? [] : [`billed until ${iso(billed)} instead of ${iso(expected)}`];
  }
  if (billed !== finished) {
    return [`billed until ${iso(billed)}, finished at ${iso(finished)}`];
  }
  const duration = finished - started;
  if (row.status === "deadline_exceeded") {
    return duration >= limitMs - 11_000 ? [] : [`deadline after ${duration / 1_000} s`];
  }
  if (duration >= limitMs) {
    return [`${row.status} after ${duration / 1_000} s`];
  }
  const succeeded = exitCode === 0 && !isUnsure(truth);
  if (isUnsure(truth)) {
    return [];
  }
  return (row.status === "succeeded") === succeeded ? [] : [`${row.status} with exit code ${exitCode}`];
}

/** A request to cancel counts from the time in it, but no more than 10 s before the run was last seen without it. */
function cancelOf({ ended, seenBeforeCancel }: RunTruth): number {
  const requested = time(ended?.spec.cancelRequestedAt);
  return Math.max(requested, (time(seenBeforeCancel) || 0) - 10_000);
}

/** Whether the pod may have been deleted before its end was read. */
function isUnsure(truth: RunTruth): boolean {
  return truth.tampered || truth.reportedEnds.size === 0;
}

/** Decimal places of `units`. */
const SCALE = 12;

/** A decimal as a whole number of 10^-12. */
export function units(decimal: string): bigint {
  const [whole = "0", fraction = ""] = decimal.split(".");
  return BigInt(whole + fraction.padEnd(SCALE, "0").slice(0, SCALE));
}

/** Minutes to be charged between two moments: every begun one, 1 to 60. */
export function minutesBetween(from: number, to: number): number {
  let minutes = 1;
  while (minutes < 60 && from + minutes * 60_000 < to) {
    minutes += 1;
  }
  return minutes;
}

/** A time of a status, in milliseconds; NaN without one. */
export function time(text: string | undefined): number {
  return text === undefined ? Number.NaN : Date.parse(text);
}

const iso = (at: number) => new Date(at).toISOString();
