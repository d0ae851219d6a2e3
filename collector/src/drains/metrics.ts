import { collectProcessMetrics } from "@slipway/process";
import { Counter, Gauge, Registry } from "prom-client";

/** States of a drain, as its conditions have them. */
export const STATES = ["delivering", "failing", "idle", "misconfigured"] as const;
export type State = (typeof STATES)[number];

/** Metrics of the process. No label has values of organizations: what one drain does is in its status. */
export class DrainMetrics {
  readonly registry = new Registry();
  readonly drains = this.#gauge("slipway_log_drains", "Log drains, by state", ["state"]);
  readonly lag = this.#gauge(
    "slipway_log_drains_lag_seconds",
    "By how much the slowest log drain is behind the store, by state",
    ["state"],
  );
  readonly lines = this.#counter(
    "slipway_log_drains_lines_total",
    "Lines of logs, by what became of them: delivered, refused by the receiver, skipped",
    "result",
  );
  readonly deliveries = this.#counter(
    "slipway_log_drains_deliveries_total",
    "Turns of log drains, by how the last batch of each ended",
    "result",
  );
  readonly failures = this.#counter(
    "slipway_log_drains_failures_total",
    "Steps of the platform's own that failed and are tried again",
    "step",
  );
  readonly waiting = this.#gauge(
    "slipway_log_drains_waiting_seconds",
    "For how long a log drain waits for its turn whose receiver takes lines",
    [],
  );
  readonly round = this.#gauge(
    "slipway_log_drains_last_round_timestamp_seconds",
    "When the store was last read for log drains",
    [],
  );

  constructor() {
    // Every state is there from the start, also for alerts.
    for (const state of STATES) {
      this.drains.set({ state }, 0);
      this.lag.set({ state }, 0);
    }
  }

  withProcess(): this {
    collectProcessMetrics(this.registry);
    return this;
  }

  #gauge(name: string, help: string, labelNames: string[]): Gauge {
    return new Gauge({ name, help, labelNames, registers: [this.registry] });
  }

  #counter(name: string, help: string, label: string): Counter {
    return new Counter({ name, help, labelNames: [label], registers: [this.registry] });
  }
}
