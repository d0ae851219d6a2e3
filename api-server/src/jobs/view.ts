import { formatDecimal, parseDecimal } from "@slipway/crds";
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

declare global {
  interface JSON {
    /** ECMAScript's "JSON.parse source text access": a value whose JSON text is this very text. */
    rawJSON(text: string): unknown;
  }
}

/**
 * A decimal as a JSON number of all its digits: `JSON.stringify` writes what it returns as the shortest text of the very
 * amount, `0.3` for `"0.30"`. It never becomes a floating-point number here.
 * @throws RangeError when the text is no plain decimal
 */
export function jsonDecimal(text: string): unknown {
  return JSON.rawJSON(formatDecimal(parseDecimal(text)));
}
