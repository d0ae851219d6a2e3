/** When a request is sent again, and after which time. */

export interface RetryOptions {
  /** How often a request is sent at the most, the first time included; 4 unless given. */
  readonly attempts?: number;
  /** The first wait, in milliseconds, which doubles each time; 250 unless given. */
  readonly baseMs?: number;
  /** The longest wait, in milliseconds, also of what the server asks for: beyond it the failure is returned; 60,000 unless given. */
  readonly maxWaitMs?: number;
}

export const RETRIES: Required<RetryOptions> = { attempts: 4, baseMs: 250, maxWaitMs: 60_000 };

/** Statuses of requests that another time may succeed: limits, and servers or proxies that are unavailable. */
const TRANSIENT: readonly number[] = [429, 502, 503, 504];

export const isTransient = (status: number): boolean => TRANSIENT.includes(status);

/** Whether sending a request twice does what sending it once does: a read, or a write that the server knows by its key. Pure. */
export const isRepeatable = ({ method, headers }: Pick<Request, "method" | "headers">): boolean =>
  method === "GET" || headers.has("idempotency-key");

/** `Retry-After` in milliseconds, of its two forms; undefined without a valid one. Pure. */
export function retryAfterMs(header: string | null, now: number): number | undefined {
  const text = header?.trim() ?? "";
  if (/^\d{1,9}$/.test(text)) {
    return Number(text) * 1_000;
  }
  const date = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/**
 * How long to wait before the next attempt, in milliseconds; undefined where there is none. What the server asks for is the least.
 * Jitter keeps clients that failed together from returning together. Pure.
 * @param attempt how often it was sent, from 1
 * @param asked what the server asked for
 * @param random from 0 to below 1
 */
export function waitBefore(
  attempt: number,
  asked: number | undefined,
  random: number,
  { attempts, baseMs, maxWaitMs }: Required<RetryOptions> = RETRIES,
): number | undefined {
  if (attempt >= attempts || (asked ?? 0) > maxWaitMs) {
    return undefined;
  }
  const backoff = Math.min(baseMs * 2 ** (attempt - 1), maxWaitMs);
  return asked === undefined
    ? backoff * (0.5 + random / 2)
    : Math.min(asked + (backoff * random) / 2, maxWaitMs);
}
