/** What is measured of overdue invoices. No label has values without bound. */

import { Counter, Gauge, type Registry } from "prom-client";

export interface OverdueMetrics {
  steps: Counter<"step">;
  failures: Counter;
}

/**
 * Registers the metrics.
 * @param age seconds since all unpaid invoices were last read; 0 where this process does not
 * @throws Error when it is called twice for one registry
 */
export function createOverdueMetrics(registry: Registry, age: () => number): OverdueMetrics {
  const registers = [registry];
  new Gauge({
    name: "slipway_overdue_round_age_seconds",
    help: "Seconds since this process has notified of all unpaid invoices and blocked for overdue ones, while it leads; else 0.",
    registers,
    collect() {
      this.set(age());
    },
  });
  const steps = new Counter({
    name: "slipway_overdue_steps_total",
    help: "Notices of unpaid invoices, and blocks of organizations for overdue ones, that this process has recorded, by step.",
    labelNames: ["step"],
    registers,
  });
  for (const step of ["notice", "block"]) {
    steps.inc({ step }, 0);
  }
  return {
    steps,
    failures: new Counter({
      name: "slipway_overdue_failures_total",
      help: "What failed of notices and blocks of unpaid invoices: a page, an organization, or a whole round.",
      registers,
    }),
  };
}
