import { ApiFailure } from "./api.ts";

/** Resolves after some milliseconds. @throws whatever the signal was aborted with */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const aborted = () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", aborted);
      resolve();
    }, ms);
    signal.addEventListener("abort", aborted, { once: true });
  });
}

/** Resolves once the page is looked at. */
export function whileHidden(signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    if (!document.hidden) {
      return resolve();
    }
    const done = new AbortController();
    const either = { signal: done.signal };
    const shown = () => {
      if (document.hidden) {
        return;
      }
      done.abort();
      resolve();
    };
    const aborted = () => {
      done.abort();
      reject(signal.reason as Error);
    };
    document.addEventListener("visibilitychange", shown, either);
    signal.addEventListener("abort", aborted, either);
  });
}

/** Milliseconds to wait after so many failures one after the other: longer each time, or what the API says. Pure. */
export function waitAfter(failures: number, intervalMs: number, error: unknown): number {
  if (error instanceof ApiFailure && error.retryAfter !== undefined) {
    return error.retryAfter * 1_000;
  }
  return Math.min(intervalMs * 2 ** Math.min(failures, 6), 60_000);
}

/** Whether asking again may help: not where the answer is what the key or the plan may not have. Pure. */
export function isPassing(error: unknown): boolean {
  return !(error instanceof ApiFailure) || error.status === 0 || error.status === 429 || error.status >= 500;
}

interface Polled<Value> {
  intervalMs: number;
  load: () => Promise<Value>;
  /** @returns whether that was the last word */
  show: (value: Value) => boolean | undefined;
  fail: (error: unknown) => void;
}

/** Asks again and again while the page is looked at, until the signal is aborted, nothing changes any more, or asking is of no use. */
export async function poll<Value>(
  { intervalMs, load, show, fail }: Polled<Value>,
  signal: AbortSignal,
): Promise<void> {
  let failures = 0;
  try {
    for (;;) {
      await whileHidden(signal);
      let wait = intervalMs;
      try {
        const value = await load();
        signal.throwIfAborted();
        failures = 0;
        if (show(value) === true) {
          return;
        }
      } catch (error) {
        signal.throwIfAborted();
        failures += 1;
        fail(error);
        if (!isPassing(error)) {
          return;
        }
        wait = waitAfter(failures, intervalMs, error);
      }
      await sleep(wait, signal);
    }
  } catch (error) {
    if (!signal.aborted) {
      throw error;
    }
  }
}
