import type { Drain } from "./drain.ts";
import type { DrainMetrics, State } from "./metrics.ts";
import { DeliveryError } from "./receiver.ts";

/** Sets the metrics of all drains, and reports what each status should say. */
export function observe(
  drains: Iterable<Drain>,
  { horizon, now }: { horizon: number; now: number },
  metrics: DrainMetrics,
  report: (drain: Drain, lagMs: number) => void,
): void {
  const counts: Record<State, number> = { delivering: 0, failing: 0, idle: 0, misconfigured: 0 };
  const lags: Record<State, number> = { delivering: 0, failing: 0, idle: 0, misconfigured: 0 };
  let waitedMs = 0;
  for (const drain of drains) {
    const state = stateOf(drain);
    const lagMs = drain.lagMs(horizon);
    counts[state] += 1;
    lags[state] = Math.max(lags[state], lagMs);
    // Those of failing and slow receivers wait for each other.
    if (!drain.waitsApart) {
      waitedMs = Math.max(waitedMs, drain.waitedMs(now));
    }
    report(drain, lagMs);
  }
  for (const [state, count] of Object.entries(counts)) {
    metrics.drains.set({ state }, count);
    metrics.lag.set({ state }, lags[state as State] / 1000);
  }
  metrics.waiting.set({}, waitedMs / 1000);
}

function stateOf({ outcome, readiness }: Drain): State {
  if (readiness instanceof DeliveryError) {
    return "misconfigured";
  }
  if (outcome === undefined) {
    return "idle";
  }
  return outcome instanceof DeliveryError ? "failing" : "delivering";
}
