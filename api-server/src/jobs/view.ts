import { jsonDecimal } from "../http/json-decimal.ts";
import { type Run, secondsOf } from "./run.ts";

/** A run as `/v1` shows it. Pure. What a run in progress does not have yet is left out. */

export const CURRENCY = "brl";

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
