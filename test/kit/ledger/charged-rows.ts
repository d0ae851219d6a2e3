import { billedMinutes, jobRunName, type PlanCharge, runAmount } from "@slipway/crds";
import type { JobRunRow, StorageHour } from "@slipway/ledger";

export interface JobRunFacts extends Partial<Omit<JobRunRow, "billed_minutes" | "amount">> {
  organization_id: string;
  scheduled_at: Date;
  /** From the container's start to its end. Default 42. */
  seconds?: number;
  /** Of a manual run. */
  suffix?: string;
}

/** A run as the operator would record it: id, minutes and amount follow from the rest. */
export function jobRun({ seconds = 42, suffix, ...facts }: JobRunFacts): JobRunRow {
  const project_id = facts.project_id ?? "nightly";
  const started_at = facts.started_at ?? new Date(facts.scheduled_at.getTime() + 3_000);
  const finished_at = facts.finished_at ?? new Date(started_at.getTime() + seconds * 1_000);
  const billed_until = facts.billed_until ?? finished_at;
  const price_per_minute = facts.price_per_minute ?? "0.35";
  const billed_minutes = billedMinutes(started_at, billed_until);
  return {
    project_id,
    project_uid: "11111111-2222-3333-4444-555555555555",
    id: jobRunName(project_id, facts.scheduled_at, suffix),
    trigger: suffix === undefined ? "schedule" : "manual",
    status: "succeeded",
    plan: "job-basic",
    metrics: null,
    ...facts,
    started_at,
    finished_at,
    billed_until,
    price_per_minute,
    billed_minutes,
    amount: runAmount(price_per_minute, billed_minutes),
  };
}

/** An hour of storage whose index counts from 1970, and whose amount follows from the rest. */
export function storageHour(
  facts: Partial<StorageHour> & { organization_id: string; from: Date },
): StorageHour {
  const { gb = 10, price_per_gb_hour = "0.012" } = facts;
  return {
    project_id: "nightly",
    project_uid: "11111111-2222-3333-4444-555555555555",
    hour_index: Math.floor(facts.from.getTime() / 3_600_000),
    gb,
    price_per_gb_hour,
    amount: runAmount(price_per_gb_hour, gb),
    ...facts,
  };
}

const HOUR_MS = 3_600_000;

/** An hour of the instance 0 of the project `u1`, by its number since the project's beginning, in milliseconds. */
export function instanceHour(begin: number, index: number, facts: Partial<PlanCharge> = {}): PlanCharge {
  const to = begin + (index + 1) * HOUR_MS;
  return {
    key: `u1/instance_hour/${index}/0`,
    kind: "instance_hour",
    from: to - HOUR_MS,
    to,
    finalAt: to,
    plan: "basic",
    instance: 0,
    price: "3",
    amount: "3",
    ...facts,
  };
}
