import { type Clock, type Logger, sleep } from "@slipway/process";
import type { LeaderElector } from "./leader-elector.ts";
import type { RuntimeMetrics } from "./runtime-metrics.ts";

export interface LeadershipOptions {
  elector: LeaderElector;
  log: Logger;
  metrics: RuntimeMetrics;
  /** Ends the process. */
  exit: (code: number) => void;
  /** What the leader does until it stops; whether all of it has ended then. */
  work: () => Promise<boolean>;
}

/**
 * Waits for the lease, works while it is held, and releases it once the work has ended. A lost lease ends the process:
 * what is under way might still write, and only that surely stops it.
 */
export async function leadWhileHeld(options: LeadershipOptions, signal: AbortSignal): Promise<void> {
  const { elector, log, metrics } = options;
  const { name } = elector;
  metrics.leader.set({ name }, 0);
  if (!(await elector.acquire(signal))) {
    return;
  }
  metrics.leader.set({ name }, 1);
  log.info({ lease: name }, "became leader");
  const stop = new AbortController();
  const holding = elector.hold(stop.signal).then((end) => {
    if (end === "stopped") {
      return;
    }
    metrics.leader.set({ name }, 0);
    log.error({ lease: name, holder: elector.holder }, "lost the lease; the process ends");
    options.exit(1);
  });
  const ended = await options.work();
  stop.abort();
  await holding;
  // With something still under way, the lease has to expire.
  if (ended) {
    await elector.release();
  }
  metrics.leader.set({ name }, 0);
}

/** Waits until the signal aborts. Never rejects. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
    } else {
      signal.addEventListener("abort", () => resolve(), { once: true });
    }
  });
}

/** Waits until all have ended, but not longer than so many milliseconds; whether they have. Never rejects. */
export async function haveEndedWithin(
  running: readonly Promise<unknown>[],
  ms: number,
  clock: Clock,
): Promise<boolean> {
  const grace = new AbortController();
  const late = sleep(clock, ms, grace.signal);
  const ended = Promise.allSettled(running).then(() => true);
  const inTime = await Promise.race([ended, late.then(() => false)]);
  grace.abort();
  return inTime;
}
