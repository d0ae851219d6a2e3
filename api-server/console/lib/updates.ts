import { type Api, ApiFailure, type Query } from "./api.ts";
import type { StreamEvent } from "./sse.ts";

/** Keeps a view current: polls, or follows a stream of events, with retries. */

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

/** Resolves once the page is visible. */
function whileHidden(signal: AbortSignal): Promise<void> {
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

/** Milliseconds to wait after so many failures one after the other: longer each time, or as the API says. Pure. */
export function waitAfter(failures: number, intervalMs: number, error: unknown): number {
  if (error instanceof ApiFailure && error.retryAfter !== undefined) {
    return error.retryAfter * 1_000;
  }
  return Math.min(intervalMs * 2 ** Math.min(failures, 6), 60_000);
}

/** Whether a retry may help: not where the key or the plan lacks the permission. Pure. */
export function isPassing(error: unknown): boolean {
  return !(error instanceof ApiFailure) || error.status === 0 || error.status === 429 || error.status >= 500;
}

interface Polled<Value> {
  intervalMs: number;
  load: () => Promise<Value>;
  /** @returns whether the value is final */
  show: (value: Value) => boolean | undefined;
  fail: (error: unknown) => void;
}

/** Loads again and again while the page is visible, until the signal is aborted, the value is final, or a retry cannot help. */
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

interface Followed {
  path: string;
  query: Query;
  /** @returns whether the stream has reported its end */
  event: (event: StreamEvent) => boolean;
  /** The stream is open, or lost and opened again after a while. */
  state: (isOpen: boolean) => void;
}

const POLL_INTERVAL_MS = 1_000;

/**
 * Reads a stream of events to its end, and continues after the last id when the connection is lost or the server has ended it without
 * saying that it is the end.
 * @throws ApiFailure that a retry does not help
 */
export async function follow(api: Api, of: Followed, signal: AbortSignal): Promise<void> {
  let after: string | undefined;
  let failures = 0;
  while (!signal.aborted) {
    try {
      for await (const event of openedEvents()) {
        after = event.id ?? after;
        if (of.event(event)) {
          return;
        }
      }
      of.state(false);
      await sleep(POLL_INTERVAL_MS, signal);
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      if (!isPassing(error)) {
        throw error;
      }
      failures += 1;
      of.state(false);
      await sleep(waitAfter(failures, POLL_INTERVAL_MS, error), signal).catch(() => undefined);
    }
  }

  async function* openedEvents(): AsyncGenerator<StreamEvent> {
    for await (const event of api.events(of.path, of.query, signal, after, () => of.state(true))) {
      failures = 0;
      yield event;
    }
  }
}
