import { failures } from "../errors/catalog.ts";

export interface FailedAttemptsOptions {
  /** Credentials that are not valid, from one address within the window. */
  limit: number;
  windowMs: number;
  /** Addresses kept at most; beyond it the oldest go. */
  capacity: number;
  /** Monotonic milliseconds. */
  now: () => number;
}

interface Window {
  failed: number;
  endsAt: number;
}

/**
 * Counts invalid credentials by address, so that guessing them does not cost the ledger a query each.
 * In this process alone: it protects its own connections.
 */
export class FailedAttempts {
  readonly #options: FailedAttemptsOptions;
  readonly #windows = new Map<string, Window>();

  constructor(options: Partial<FailedAttemptsOptions> = {}) {
    const now = () => performance.now();
    this.#options = { limit: 60, windowMs: 60_000, capacity: 10_000, now, ...options };
  }

  /** @throws Failure 429 while the address has had as many as it may */
  admit(address: string): void {
    const window = this.#current(address);
    if (!window || window.failed < this.#options.limit) {
      return;
    }
    throw failures.rateLimitExceeded(Math.max(1, Math.ceil((window.endsAt - this.#options.now()) / 1000)));
  }

  /** Another one was not valid. */
  count(address: string): void {
    const { windowMs, capacity, now } = this.#options;
    const window = this.#current(address);
    if (window) {
      window.failed += 1;
      return;
    }
    this.#windows.delete(address);
    if (this.#windows.size >= capacity) {
      const [oldest] = this.#windows.keys();
      if (oldest !== undefined) {
        this.#windows.delete(oldest);
      }
    }
    this.#windows.set(address, { failed: 1, endsAt: now() + windowMs });
  }

  #current(address: string): Window | undefined {
    const window = this.#windows.get(address);
    return window && window.endsAt > this.#options.now() ? window : undefined;
  }
}
