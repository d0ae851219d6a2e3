import type { Dispatcher } from "undici";
import { KubeError } from "./errors.ts";
import type { StatusBody } from "./types.ts";

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
