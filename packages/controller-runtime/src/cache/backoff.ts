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
