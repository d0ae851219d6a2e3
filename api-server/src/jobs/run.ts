import {
  CURRENCY,
  durationSeconds,
  formatDecimal,
  type JobRun,
  type JobRunPhase,
  jobRunConditions,
  jobRunPhases,
  parseDecimal,
} from "@slipway/crds";
import type { JobRunRow } from "@slipway/ledger";
import { z } from "zod";

/** A run that has started, from its custom resource or from the ledger. Raw exit codes and end reasons are in neither. */
export interface Run {
  id: string;
  status: JobRunPhase;
  trigger: "schedule" | "manual";
  scheduledAt: Date;
  startedAt: Date;
  /** Of a run that has ended, as all below. */
  finishedAt?: Date;
  billedMinutes?: number;
  /** BRL cents, a decimal. */
  amount?: string;
  plan: string;
}

/** Whether the run has ended. */
export const isTerminal = (phase: JobRunPhase | undefined): boolean =>
  phase !== undefined && phase !== "running";

/** The status of one of a run's conditions. */
export const conditionOf = (run: JobRun, type: keyof typeof jobRunConditions) =>
  run.status?.conditions?.find((condition) => condition.type === jobRunConditions[type]);

/** The run that a custom resource is; undefined while its container has not started, and when it never did. */
export function runOfResource({ metadata, spec, status }: JobRun): Run | undefined {
  const { phase, startedAt } = status ?? {};
  if (phase === undefined || startedAt === undefined) {
    return undefined;
  }
  const { finishedAt, billedMinutes, amount } = status ?? {};
  const ended = isTerminal(phase)
    ? {
        ...(finishedAt === undefined ? {} : { finishedAt: new Date(finishedAt) }),
        ...(billedMinutes === undefined ? {} : { billedMinutes }),
        ...(amount === undefined ? {} : { amount }),
      }
    : {};
  return {
    id: metadata.name,
    status: phase,
    trigger: spec.trigger,
    scheduledAt: new Date(spec.scheduledAt),
    startedAt: new Date(startedAt),
    ...ended,
    plan: status?.plan ?? "",
  };
}

/** The run that the ledger has. */
export function runOfRow(row: JobRunRow): Run {
  return {
    id: row.id,
    status: row.status,
    trigger: row.trigger,
    scheduledAt: row.scheduled_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    billedMinutes: row.billed_minutes,
    amount: row.amount,
    plan: row.plan,
  };
}

/** Wall-clock seconds between start and finish, whole; undefined while it runs. */
export const secondsOf = ({ startedAt, finishedAt }: Run): number | undefined =>
  finishedAt && durationSeconds(startedAt, finishedAt);

/** A run as `/v1` shows it. Pure. What a run in progress does not have yet is left out. */

/** An entry of `data.runs`. */
export function runItem(run: Run) {
  const { finishedAt, billedMinutes, amount } = run;
  const duration = secondsOf(run);
  return {
    id: run.id,
    status: run.status,
    trigger: run.trigger,
    scheduled_at: run.scheduledAt.toISOString(),
    started_at: run.startedAt.toISOString(),
    ...(finishedAt === undefined ? {} : { finished_at: finishedAt.toISOString() }),
    ...(duration === undefined ? {} : { duration_seconds: duration }),
    ...(billedMinutes === undefined ? {} : { billed_minutes: billedMinutes }),
    plan: run.plan,
    ...(amount === undefined ? {} : { amount: jsonDecimal(amount) }),
    currency: CURRENCY,
  };
}

/** `data.run` of a cancellation and of a log. */
export function runSummary({ id, status, billedMinutes }: Pick<Run, "id" | "status" | "billedMinutes">) {
  return {
    id,
    status,
    ...(billedMinutes === undefined ? {} : { billed_minutes: billedMinutes }),
    currency: CURRENCY,
  };
}

declare global {
  interface JSON {
    /** ECMAScript's "JSON.parse source text access": a value whose JSON text is this very text. */
    rawJSON(text: string): unknown;
  }
}

/**
 * A decimal as a JSON number of all its digits: `JSON.stringify` writes what it returns as the shortest text of the exact
 * amount, `0.3` for `"0.30"`. It never becomes a floating-point number here.
 * @throws RangeError when the text is no plain decimal
 */
export function jsonDecimal(text: string): unknown {
  return JSON.rawJSON(formatDecimal(parseDecimal(text)));
}

/** Schemas of what is answered about runs of jobs, for the OpenAPI document and the tests. */

const currency = z.literal(CURRENCY);
const status = z.enum(jobRunPhases);
const billedMinutes = z.int().min(0).max(60);

export const runSchema = z.object({
  id: z.string(),
  status,
  trigger: z.enum(["schedule", "manual"]),
  scheduled_at: z.string(),
  started_at: z.string().describe("When its container really started."),
  finished_at: z
    .string()
    .describe("When its container really ended; absent while it runs, as all below.")
    .optional(),
  duration_seconds: z.int().min(0).optional(),
  billed_minutes: billedMinutes.optional(),
  plan: z.string(),
  amount: z.number().describe("BRL cents, exact; it may be a fraction.").optional(),
  currency,
});

export const runSummarySchema = z.object({
  id: z.string(),
  status,
  billed_minutes: billedMinutes.describe("Absent while it runs; 0 for a run that never started.").optional(),
  currency,
});

export const cycleShape = {
  cycle_started_at: z
    .string()
    .describe("First moment of the current billing cycle, a calendar month in UTC."),
  next_reset_at: z
    .string()
    .describe("First moment of the next one: then the list, logs, metrics and totals begin again."),
};

export const runPagination = z.object({
  page: z.int().min(1),
  limit: z.int().min(1),
  total: z.int().min(0),
  total_pages: z.int().min(0),
});

/** Of a cycle, as every answer about it has them. */
export const cycleView = ({ startedAt, nextResetAt }: { startedAt: Date; nextResetAt: Date }) => ({
  cycle_started_at: startedAt.toISOString(),
  next_reset_at: nextResetAt.toISOString(),
});
