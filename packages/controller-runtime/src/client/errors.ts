import { setTimeout as sleep } from "node:timers/promises";
import type { Dispatcher } from "undici";
import type { StatusBody } from "./types.ts";

/**
 * A request that the apiserver answered with a failure, or that got no answer.
 *
 * `status` is the HTTP status, 0 when none came (connection refused, reset, timed out).
 * `reason` is the API's own word (`NotFound`, `Conflict`, `AlreadyExists`, `Invalid`, …), or `NetworkError`/`Timeout`.
 * `code` is the Node or undici error code where there is one (`ECONNREFUSED`).
 * The message never holds a request body, since bodies may hold Secrets.
 */
export class KubeError extends Error {
  override readonly name = "KubeError";
  readonly status: number;
  readonly reason: string;
  readonly code: string;
  readonly body: StatusBody | undefined;
  /** Milliseconds that the server requests to wait, if it does. */
  readonly retryAfterMs: number | undefined;

  constructor(options: {
    status: number;
    reason: string;
    message: string;
    code?: string;
    body?: StatusBody;
    retryAfterMs?: number;
    cause?: unknown;
  }) {
    super(options.message, { cause: options.cause });
    this.status = options.status;
    this.reason = options.reason;
    this.code = options.code ?? "";
    this.body = options.body;
    this.retryAfterMs = options.retryAfterMs;
  }
}

const byStatus =
  (status: number, reason?: string) =>
  (error: unknown): error is KubeError =>
    error instanceof KubeError &&
    error.status === status &&
    (reason === undefined || error.reason === reason);

/** 404: the object, or its resource, does not exist. */
export const isNotFound = byStatus(404);
/** 409 because the resourceVersion or a precondition no longer holds. */
export const isConflict = byStatus(409, "Conflict");
/** 409 because an object of that name exists. */
export const isAlreadyExists = byStatus(409, "AlreadyExists");
/** 422: the object is invalid; sending it again cannot help. */
export const isInvalid = byStatus(422);
/** 403. Also answered for a namespace that is being deleted; see {@link isNamespaceTerminating}. */
export const isForbidden = byStatus(403);
/** 410: the resourceVersion or the continue token is too old. */
export const isGone = byStatus(410);
/** 429. */
export const isTooManyRequests = byStatus(429);

/** A ResourceQuota refused a write, and not the lack of a right. */
export function isQuotaExceeded(error: unknown): error is KubeError {
  return isForbidden(error) && error.message.includes("exceeded quota");
}

/** A creation was refused because its namespace is being deleted. */
export function isNamespaceTerminating(error: unknown): error is KubeError {
  return (
    isForbidden(error) &&
    (error.body?.details?.causes ?? []).some((cause) => cause.reason === "NamespaceTerminating")
  );
}

/** No answer came: nobody knows whether a write was done. */
export function isNetworkError(error: unknown): error is KubeError {
  return error instanceof KubeError && error.status === 0;
}

/** Whether waiting may help: no answer, 408, 409 conflict, 429 or any 5xx. */
export function isTransient(error: unknown): error is KubeError {
  if (!(error instanceof KubeError)) {
    return false;
  }
  return (
    error.status === 0 ||
    error.status === 408 ||
    error.status === 429 ||
    error.status >= 500 ||
    isConflict(error)
  );
}

/** Rights that have only just been given: the apiserver learns of a binding by a watch of its own, and refuses until then. */

/** How long is waited for in all, and between two tries, in milliseconds. */
const LIMIT_MS = 4_000;
const BETWEEN_MS = 200;

/** Whether the apiserver's authorizer denied a permission: quotas and admission deny with 403, too. */
export function isUnbound(error: unknown): boolean {
  return isForbidden(error) && /\bcannot [a-z]+ resource "/.test(error.message);
}

/**
 * Does what can be done again, until it is not refused for a right that is missing, for 4 s at most.
 * @throws what the last try threw
 */
export async function onceBound<T>(work: () => Promise<T>): Promise<T> {
  const end = performance.now() + LIMIT_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isUnbound(error) || performance.now() + BETWEEN_MS > end) {
        throw error;
      }
    }
    await sleep(BETWEEN_MS);
  }
}

/** What an error names of a request. */
interface SentRequest {
  readonly method: string;
  readonly path: string;
  readonly signal?: AbortSignal;
}

/** The error that an answer with a status ≥ 400 means. Reads the body. */
export async function statusError(
  request: SentRequest,
  response: Dispatcher.ResponseData,
): Promise<KubeError> {
  const text = await response.body.text().catch(() => "");
  let body: StatusBody | undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === "object" && parsed !== null) {
      body = parsed as StatusBody;
    }
  } catch {
    body = undefined;
  }
  const status = response.statusCode;
  const seconds = Number(response.headers["retry-after"] ?? Number.NaN);
  const retryable = (status === 429 || status >= 500) && Number.isFinite(seconds);
  return new KubeError({
    status,
    reason: body?.reason ?? `HTTP${status}`,
    message: `${request.method} ${request.path}: ${status} ${body?.message ?? "no Status in the answer"}`,
    ...(body ? { body } : {}),
    ...(retryable ? { retryAfterMs: Math.max(0, seconds * 1000) } : {}),
  });
}

/** Turns whatever undici throws into a KubeError; an abort by the caller stays what it is. */
export function networkError(request: SentRequest, error: unknown): Error {
  if (request.signal?.aborted) {
    const reason: unknown = request.signal.reason;
    return reason instanceof Error ? reason : new DOMException("aborted", "AbortError");
  }
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const timedOut = code.endsWith("_TIMEOUT") || code === "ETIMEDOUT";
  return new KubeError({
    status: 0,
    reason: timedOut ? "Timeout" : "NetworkError",
    code,
    message: `${request.method} ${request.path}: ${error instanceof Error ? error.message : String(error)}`,
    cause: error,
  });
}
