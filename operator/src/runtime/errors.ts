/** What a reconciler throws to say how its object stands. `outcome.ts` is the one place that acts on them. */

/** Details of a reconcile error. */
export interface ReconcileErrorOptions {
  cause?: unknown;
  /** A more specific condition that gets the same status, reason and message as `Ready`. */
  condition?: string;
}

abstract class ReconcileError extends Error {
  /** CamelCase, from a fixed set: it becomes the condition's and the event's reason. */
  readonly reason: string;
  readonly condition: string | undefined;

  constructor(reason: string, message: string, options: ReconcileErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.reason = reason;
    this.condition = options.condition;
  }
}

/**
 * The object as it is can never succeed: only a change of its spec, or of what it refers to, helps. Not retried.
 * The message is for the object's owner; it holds no secret and nothing that changes by itself.
 */
export class TerminalError extends ReconcileError {
  override readonly name = "TerminalError";
}

/**
 * Nothing is wrong; something else must happen first (a rollout, a namespace going away). Not counted as an error.
 * An event of a watched object brings the key back; `requeueAfterMs` is the time after which it comes back anyway.
 */
export class WaitingError extends ReconcileError {
  override readonly name = "WaitingError";
  readonly requeueAfterMs: number;

  constructor(
    reason: string,
    message: string,
    options: ReconcileErrorOptions & { requeueAfterMs?: number } = {},
  ) {
    super(reason, message, options);
    this.requeueAfterMs = options.requeueAfterMs ?? 30_000;
  }
}

/** It failed and may succeed later: retried with exponential backoff. */
export class RetryableError extends ReconcileError {
  override readonly name = "RetryableError";
}

/** Whether an error is one of the three. */
export function isReconcileError(error: unknown): error is TerminalError | WaitingError | RetryableError {
  return error instanceof ReconcileError;
}
