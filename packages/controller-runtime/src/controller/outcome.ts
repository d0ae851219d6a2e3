import { isConflict, isNamespaceTerminating, isTransient, KubeError } from "../client/errors.ts";
import type { RuntimeReason } from "./errors.ts";
import { isReconcileError, TerminalError, WaitingError } from "./errors.ts";

/** What one reconcile came to: the label of metrics, and the source of condition, event and requeue. */
export interface Outcome {
  kind: "success" | "waiting" | "terminal" | "retryable" | "panic";
  /** Reason and message of the condition; empty for success. */
  reason: string;
  message: string;
  /** A more specific condition than `Ready` that the error named. */
  condition: string | undefined;
  /** Whether the object's owner is notified: a conflict or a short failure of the apiserver is not about the object. */
  visible: boolean;
  /** Type of the event that goes with a change of the condition. */
  eventType: "Normal" | "Warning";
  requeue: { type: "none" } | { type: "after"; ms: number } | { type: "backoff" };
}

/** What a reconciler returns on success: after how many milliseconds to reconcile again. */
export interface Result {
  requeueAfterMs?: number;
}

const BACKOFF = { type: "backoff" } as const;

/** The outcome of a reconcile that returned. */
export function outcomeOfResult(result: Result | undefined): Outcome {
  const ms = result?.requeueAfterMs;
  return {
    kind: "success",
    reason: "",
    message: "",
    condition: undefined,
    visible: true,
    eventType: "Normal",
    requeue: ms === undefined ? { type: "none" } : { type: "after", ms },
  };
}

/** The outcome of a reconcile that threw. */
export function outcomeOfError(error: unknown): Outcome {
  if (isReconcileError(error)) {
    return ofReconcileError(error);
  }
  return ofOtherError(error);
}

/** What the runtime itself says of an error that no reconciler has named. */
function ofOtherError(error: unknown): Outcome & { reason: RuntimeReason } {
  const quiet = { condition: undefined, visible: false, eventType: "Warning", requeue: BACKOFF } as const;
  if (isConflict(error)) {
    return { ...quiet, kind: "retryable", reason: "Conflict", message: "the object changed meanwhile" };
  }
  if (isNamespaceTerminating(error)) {
    const message = "the namespace is being deleted";
    const requeue = { type: "after", ms: 10_000 } as const;
    return { ...quiet, kind: "waiting", reason: "NamespaceTerminating", message, visible: true, requeue };
  }
  if (isTransient(error)) {
    return { ...quiet, kind: "retryable", reason: "ApiUnavailable", message: "the apiserver did not answer" };
  }
  if (error instanceof KubeError) {
    return { ...quiet, kind: "retryable", reason: "ApiRefused", message: error.message, visible: true };
  }
  if (isAbort(error)) {
    return { ...quiet, kind: "retryable", reason: "TimedOut", message: "the reconcile took too long" };
  }
  // A defect. Its text may hold anything, so only the log gets it.
  const message = "the controller failed; its log has the details";
  return { ...quiet, kind: "panic", reason: "InternalError", message, visible: true };
}

function ofReconcileError(
  error: TerminalError | WaitingError | { reason: string; message: string; condition: string | undefined },
): Outcome {
  const { reason, message, condition } = error;
  const base = { reason, message, condition, visible: true };
  if (error instanceof TerminalError) {
    return { ...base, kind: "terminal", eventType: "Warning", requeue: { type: "none" } };
  }
  if (error instanceof WaitingError) {
    const requeue = { type: "after", ms: error.requeueAfterMs } as const;
    return { ...base, kind: "waiting", eventType: "Normal", requeue };
  }
  return { ...base, kind: "retryable", eventType: "Warning", requeue: BACKOFF };
}

function isAbort(error: unknown): boolean {
  return error instanceof DOMException && (error.name === "AbortError" || error.name === "TimeoutError");
}
