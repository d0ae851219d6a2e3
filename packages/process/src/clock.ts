/** A timer that can be cancelled. */
export interface Timer {
  cancel(): void;
}

/** Time as the code sees it, so that tests can move it. */
export interface Clock {
  /** The wall clock: for timestamps that others read. It may jump. */
  now(): Date;
  /** Milliseconds that only ever grow: for durations and deadlines. */
  monotonic(): number;
  /** Calls `callback` once, `ms` later. */
  setTimeout(callback: () => void, ms: number): Timer;
}

/** Yields numbers in [0, 1). */
export type Random = () => number;

/** The real clock. */
export const systemClock: Clock = {
  now: () => new Date(),
  monotonic: () => performance.now(),
  setTimeout: (callback, ms) => {
    // setTimeout fires immediately past 2^31-1 ms; no timer here waits 24 days.
    const handle = setTimeout(callback, Math.min(ms, 0x7fffffff));
    return { cancel: () => clearTimeout(handle) };
  },
};

/** Waits `ms`, or until the signal aborts, whichever is first. Never rejects. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const done = () => {
      timer.cancel();
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = clock.setTimeout(done, ms);
    signal?.addEventListener("abort", done, { once: true });
  });
}

/** The promise did not resolve within its time. */
export class TimeoutError extends Error {
  override readonly name = "TimeoutError";
}

/**
 * Resolves as the promise does. A result that arrives after `ms` is dropped; the work behind it is not cancelled.
 * @throws TimeoutError after `ms` milliseconds; whatever the promise is rejected with before
 */
export async function withTimeout<T>(promise: Promise<T>, ms: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new TimeoutError(`no answer for ${ms} ms`)), ms);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
