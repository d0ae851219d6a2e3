/** Which failed requests are sent again, and when. Pure but for its jitter. */

import { isConflict, type KubeError } from "./errors.ts";
import type { HttpRequest } from "./http-request.ts";

/** How often an answer with `Retry-After` (429, 5xx) is tried again; such answers come before any processing. */
const MAX_RETRY_AFTER = 3;
const MAX_RETRY_AFTER_MS = 10_000;

/**
 * How often a write is sent again that the quota admission refused because somebody else wrote the ResourceQuota meanwhile, and
 * the mean wait before the first time, in milliseconds: 50, 100, 200 and so on, less than 4 s in all.
 */
const MAX_QUOTA_CONFLICTS = 6;
const QUOTA_CONFLICT_MS = 50;

/** Milliseconds until a request is sent again that has failed `attempt` times before; undefined when it is not. */
export function retryDelay(error: KubeError, request: HttpRequest, attempt: number): number | undefined {
  if (error.status === 401 && attempt === 0) {
    // A rotated token: the caller reads it again, once.
    return 0;
  }
  if (isStaleConnection(error, request) && attempt === 0) {
    // The server closed an idle connection just as a repeatable request went out on it.
    return 0;
  }
  if (isQuotaConflict(error, request) && attempt < MAX_QUOTA_CONFLICTS) {
    // Admission refuses before anything is written. Waits differ, so that those who met do not meet again.
    return QUOTA_CONFLICT_MS * 2 ** attempt * (0.5 + Math.random());
  }
  if (error.retryAfterMs !== undefined && attempt < MAX_RETRY_AFTER) {
    return Math.min(error.retryAfterMs, MAX_RETRY_AFTER_MS);
  }
  return undefined;
}

function isStaleConnection(error: KubeError, request: HttpRequest): boolean {
  const repeatable = request.method === "GET" || request.contentType === "application/apply-patch+yaml";
  return (
    repeatable && (error.code === "UND_ERR_SOCKET" || error.code === "ECONNRESET" || error.code === "EPIPE")
  );
}

/** A conflict that is not about the request's own object, but about the quota that counts it. */
function isQuotaConflict(error: KubeError, { path }: HttpRequest): boolean {
  const quotas = "resourcequotas";
  return isConflict(error) && error.body?.details?.kind === quotas && !path.includes(`/${quotas}`);
}
