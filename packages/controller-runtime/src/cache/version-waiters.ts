import type { Clock } from "@slipway/process";

interface Waiter {
  version: string;
  settle: (reached: boolean) => void;
}

/** Those who wait until a store has seen a resourceVersion. */
export class VersionWaiters {
  readonly #clock: Clock;
  readonly #waiters = new Set<Waiter>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves true once `version` is reached, false on timeout or abort. */
  wait(
    version: string,
    current: string | undefined,
    options: { timeoutMs: number; signal?: AbortSignal },
  ): Promise<boolean> {
    if (current !== undefined && compareResourceVersions(current, version) >= 0) {
      return Promise.resolve(true);
    }
    if (options.signal?.aborted) {
      return Promise.resolve(false);
    }
    return new Promise((resolve) => {
      const settle = (reached: boolean) => {
        timer.cancel();
        options.signal?.removeEventListener("abort", abort);
        this.#waiters.delete(waiter);
        resolve(reached);
      };
      const abort = () => settle(false);
      const timer = this.#clock.setTimeout(abort, options.timeoutMs);
      const waiter: Waiter = { version, settle };
      options.signal?.addEventListener("abort", abort, { once: true });
      this.#waiters.add(waiter);
    });
  }

  /** The store is at `version` now. */
  reached(version: string): void {
    for (const waiter of [...this.#waiters]) {
      if (compareResourceVersions(version, waiter.version) >= 0) {
        waiter.settle(true);
      }
    }
  }

  /** Nobody's version will come: history started over. */
  release(): void {
    for (const waiter of [...this.#waiters]) {
      waiter.settle(false);
    }
  }
}

/**
 * Compares two resourceVersions of the same resource: negative, zero or positive. Kubernetes 1.35 documents them as
 * comparable decimal numbers of any length; earlier apiservers over etcd already made them so.
 */
export function compareResourceVersions(a: string, b: string): number {
  if (a.length !== b.length) {
    return a.length - b.length;
  }
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The greater of two; undefined counts as lowest. */
export function maxResourceVersion(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined) {
    return b;
  }
  if (b === undefined) {
    return a;
  }
  return compareResourceVersions(a, b) >= 0 ? a : b;
}
