import type { RateLimit } from "../policy/table.ts";

/** Limits the rate of calls by operation and credential, in the memory of this process. */

export interface Decision {
  allowed: boolean;
  limit: number;
  /** Calls left in the window. */
  remaining: number;
  /** Seconds until the window ends, rounded up. */
  resetSeconds: number;
  /**
   * The resourceVersion of the newest write of the given organization, when one was published in the last
   * minute: see `http/newest-writes.ts`.
   */
  newestWrite?: string;
  /** The same of the runs of its jobs. */
  newestRun?: string;
}

/**
 * Counts calls. The memory limiter answers immediately; one that is shared by replicas answers with a promise.
 * `bucket` names who and what is counted; with `organizationId` that organization's newest write is returned as well.
 */
export interface RateLimiter {
  take(
    bucket: string,
    limit: number,
    windowSeconds: number,
    organizationId?: string,
  ): Decision | Promise<Decision>;
  /** Counts a call less, which turned out to be one that has no limit. */
  giveBack(bucket: string): void | Promise<void>;
}

/** The limit after `SLIPWAY_RATE_LIMIT_SCALE`: rounded up, at least 1. */
export function scaledLimit(rateLimit: RateLimit, scale: number): number {
  return Math.max(1, Math.ceil(rateLimit.limit * scale));
}

/** `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers: what is allowed. */
export function rateLimitPolicyHeader(limit: number, windowSeconds: number): string {
  return `"default";q=${limit};w=${windowSeconds}`;
}

/** `RateLimit` of the same draft: what is left of it. */
export function rateLimitHeader({ remaining, resetSeconds }: Decision): string {
  return `"default";r=${remaining};t=${resetSeconds}`;
}

interface Window {
  endsAt: number;
  used: number;
}

/** Windows kept at most; beyond it the ended ones go, then the oldest. */
const MAX_WINDOWS = 100_000;

/**
 * Counts in this process: exact for one replica. A window starts with the first call in it.
 * `now` returns monotonic milliseconds.
 */
export class MemoryRateLimiter implements RateLimiter {
  readonly #windows = new Map<string, Window>();
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  take(bucket: string, limit: number, windowSeconds: number): Decision {
    const now = this.#now();
    let window = this.#windows.get(bucket);
    if (window === undefined || window.endsAt <= now) {
      window = { endsAt: now + windowSeconds * 1000, used: 0 };
      this.#windows.delete(bucket);
      if (this.#windows.size >= MAX_WINDOWS) {
        this.#makeRoom(now);
      }
      this.#windows.set(bucket, window);
    }
    const allowed = window.used < limit;
    if (allowed) {
      window.used += 1;
    }
    return {
      allowed,
      limit,
      remaining: limit - window.used,
      resetSeconds: Math.max(1, Math.ceil((window.endsAt - now) / 1000)),
    };
  }

  giveBack(bucket: string): void {
    const window = this.#windows.get(bucket);
    if (window !== undefined && window.used > 0) {
      window.used -= 1;
    }
  }

  /** Windows are kept in the order in which they began. */
  #makeRoom(now: number): void {
    for (const [bucket, window] of this.#windows) {
      if (window.endsAt <= now) {
        this.#windows.delete(bucket);
      }
    }
    for (const bucket of this.#windows.keys()) {
      if (this.#windows.size < MAX_WINDOWS) {
        break;
      }
      this.#windows.delete(bucket);
    }
  }
}
