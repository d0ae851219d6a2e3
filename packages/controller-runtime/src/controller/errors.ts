/** Errors by which a reconciler reports the state of its object. Only `outcome.ts` handles them. */

import type { ConditionCatalog } from "../status/conditions.ts";

/** Details of a reconcile error. */
export interface ReconcileErrorOptions<Catalog extends ConditionCatalog = ConditionCatalog> {
  cause?: unknown;
  /** A more specific condition that gets the same status, reason and message as `Ready`. */
  condition?: Catalog["type"] | undefined;
}

abstract class ReconcileError<Catalog extends ConditionCatalog> extends Error {
  /** It becomes the condition's and the event's reason. */
  readonly reason: Catalog["reason"];
  readonly condition: Catalog["type"] | undefined;

  constructor(reason: Catalog["reason"], message: string, options: ReconcileErrorOptions<Catalog> = {}) {
    super(message, { cause: options.cause });
    this.reason = reason;
    this.condition = options.condition;
  }
}

/**
 * The object as it is can never succeed: only a change of its spec, or of what it refers to, helps. Not retried.
 * The message is for the object's owner; it contains no secret and nothing that changes without a cause.
 */
export class TerminalError<
  Catalog extends ConditionCatalog = ConditionCatalog,
> extends ReconcileError<Catalog> {
  override readonly name = "TerminalError";
}

/**
 * Nothing is wrong; something else must happen first (a rollout, a namespace going away). Not counted as an error.
 * An event of a watched object requeues the key; `requeueAfterMs` is the time after which it is requeued anyway.
 */
export class WaitingError<
  Catalog extends ConditionCatalog = ConditionCatalog,
> extends ReconcileError<Catalog> {
  override readonly name = "WaitingError";
  readonly requeueAfterMs: number;

  constructor(
    reason: Catalog["reason"],
    message: string,
    options: ReconcileErrorOptions<Catalog> & { requeueAfterMs?: number } = {},
  ) {
    super(reason, message, options);
    this.requeueAfterMs = options.requeueAfterMs ?? 30_000;
  }
}

/** It failed and may succeed later: retried with exponential backoff. */
export class RetryableError<
  Catalog extends ConditionCatalog = ConditionCatalog,
> extends ReconcileError<Catalog> {
  override readonly name = "RetryableError";
}

/** Whether an error is one of the three. */
export function isReconcileError(error: unknown): error is TerminalError | WaitingError | RetryableError {
  return error instanceof ReconcileError;
}

/** The same error, as one that requeues its object in `ms` milliseconds at the latest; unchanged without a number. Pure. */
export function retriedIn(error: unknown, ms: number | undefined): unknown {
  if (ms === undefined || !(error instanceof TerminalError || error instanceof WaitingError)) {
    return error;
  }
  const { reason, message, condition, cause } = error;
  const requeueAfterMs = error instanceof WaitingError ? Math.min(error.requeueAfterMs, ms) : ms;
  return new WaitingError(reason, message, { condition, cause, requeueAfterMs });
}

/** Reasons of conditions and events that the runtime itself gives, whatever its reconcilers are of. */
export type RuntimeReason =
  | "ApiRefused"
  | "ApiUnavailable"
  | "ChildConflict"
  | "ChildTerminating"
  | "ClockSkew"
  | "Conflict"
  | "InternalError"
  | "NamespaceTerminating"
  | "TimedOut";

/** Of the runtime's own errors. */
export interface RuntimeCatalog {
  type: "Ready";
  reason: RuntimeReason;
}
