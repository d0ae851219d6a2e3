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
