import { TerminalError, WaitingError } from "./errors.ts";

/** The same error, as one that brings its object back in `ms` milliseconds at the latest; unchanged without a number. Pure. */
export function retriedIn(error: unknown, ms: number | undefined): unknown {
  if (ms === undefined || !(error instanceof TerminalError || error instanceof WaitingError)) {
    return error;
  }
  const { reason, message, condition, cause } = error;
  const requeueAfterMs = error instanceof WaitingError ? Math.min(error.requeueAfterMs, ms) : ms;
  return new WaitingError(reason, message, { condition, cause, requeueAfterMs });
}
