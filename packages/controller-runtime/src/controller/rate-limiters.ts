import type { Random } from "@slipway/process";

/** Bounds of an exponential backoff, in milliseconds. */
export interface BackoffOptions {
  readonly baseMs: number;
  readonly maxMs: number;
  readonly factor?: number;
}

/** The delay before the given attempt (0 is the first retry), without jitter, in milliseconds. */
export function backoffDelay(attempt: number, options: BackoffOptions): number {
  return Math.min(options.maxMs, options.baseMs * (options.factor ?? 2) ** attempt);
}

/** A jittered exponential backoff without an end: delays of 0.5–1 × min(max, base × factor^attempt). */
export class Backoff {
  #attempt = 0;
  readonly #options: BackoffOptions;
  readonly #random: Random;

  constructor(options: BackoffOptions, random: Random) {
    this.#options = options;
    this.#random = random;
  }

  /** The next delay in milliseconds. */
  next(): number {
    const delay = backoffDelay(this.#attempt, this.#options);
    if (delay < this.#options.maxMs) {
      this.#attempt += 1;
    }
    return delay * (0.5 + this.#random() / 2);
  }

  /** Starts over, after a success. */
  reset(): void {
    this.#attempt = 0;
  }
}

/** A rate with a burst. */
export interface BucketOptions {
  readonly perSecond: number;
  readonly burst: number;
}

/** Issues tokens at a rate, up to a burst together; a token may be taken in advance, which delays the caller. */
export class TokenBucket {
  readonly #perMs: number;
  readonly #burst: number;
  #tokens: number;
  #at: number;

  /** `now` is a monotonic time in milliseconds, as in every call. */
  constructor(options: BucketOptions, now: number) {
    this.#perMs = options.perSecond / 1000;
    this.#burst = options.burst;
    this.#tokens = options.burst;
    this.#at = now;
  }

  /** Takes a token; returns the milliseconds to wait for it. */
  reserve(now: number): number {
    this.#refill(now);
    this.#tokens -= 1;
    return this.#tokens >= 0 ? 0 : -this.#tokens / this.#perMs;
  }

  /** Takes a token if one is available. */
  tryTake(now: number): boolean {
    this.#refill(now);
    if (this.#tokens < 1) {
      return false;
    }
    this.#tokens -= 1;
    return true;
  }

  #refill(now: number): void {
    this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#at) * this.#perMs);
    this.#at = now;
  }
}
