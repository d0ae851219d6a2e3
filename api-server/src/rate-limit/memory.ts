import type { Decision, RateLimiter } from "./limiter.ts";

interface Window {
  endsAt: number;
  used: number;
}

/** Windows kept at most; beyond it the ended ones go, then the oldest. */
const MOST_WINDOWS = 100_000;

/**
 * Counts in this process: exact for one replica. A window starts with the first call in it.
 * `now` gives monotonic milliseconds.
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
      if (this.#windows.size >= MOST_WINDOWS) {
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

  /** Windows are kept in the order in which they began. */
  #makeRoom(now: number): void {
    for (const [bucket, window] of this.#windows) {
      if (window.endsAt <= now) {
        this.#windows.delete(bucket);
      }
    }
    for (const bucket of this.#windows.keys()) {
      if (this.#windows.size < MOST_WINDOWS) {
        break;
      }
      this.#windows.delete(bucket);
    }
  }
}
