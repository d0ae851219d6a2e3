import { collectProcessMetrics } from "@slipway/process";
import { Counter, Gauge, Histogram, Registry } from "prom-client";

const REQUEST_RESULTS = ["forwarded", "refused", "timeout", "unknown", "abandoned", "failed"];
const WAKE_RESULTS = ["requested", "limited", "failed"];

/** Metrics of the activator. No label has values of organizations. */
export class ActivatorMetrics {
  readonly registry = new Registry();
  readonly requests = new Counter({
    name: "slipway_activator_requests_total",
    help: "Requests, by what became of them: forwarded, refused (too many), timeout, unknown (no such project), abandoned (by the client), failed",
    labelNames: ["result"],
    registers: [this.registry],
  });
  readonly held = new Gauge({
    name: "slipway_activator_held_requests",
    help: "Requests that wait for an instance",
    registers: [this.registry],
  });
  readonly wakes = new Counter({
    name: "slipway_activator_wakes_total",
    help: "Wakes of projects, by what became of them: requested, limited (asked again a second later), failed",
    labelNames: ["result"],
    registers: [this.registry],
  });
  readonly waits = new Histogram({
    name: "slipway_activator_wait_seconds",
    help: "For how long requests waited for an instance that were forwarded",
    buckets: [0.01, 0.1, 0.5, 1, 2, 3, 5, 10, 20, 40, 60],
    registers: [this.registry],
  });

  constructor() {
    for (const result of REQUEST_RESULTS) {
      this.requests.inc({ result }, 0);
    }
    for (const result of WAKE_RESULTS) {
      this.wakes.inc({ result }, 0);
    }
  }

  withProcess(): this {
    collectProcessMetrics(this.registry);
    return this;
  }
}
