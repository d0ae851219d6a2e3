/** What is measured of projects' alerts. No label has values without bound. */

import { Counter, Gauge, type Registry } from "prom-client";

export interface AlertMetrics {
  rules: Gauge;
  firing: Gauge;
  changes: Counter<"state">;
}

const STATES = ["ok", "firing", "no_data", "removed"] as const;

/**
 * Registers the metrics.
 * @param age seconds since all rules were last evaluated; 0 where this process does not
 * @throws Error when it is called twice for one registry
 */
export function createAlertMetrics(registry: Registry, age: () => number): AlertMetrics {
  const registers = [registry];
  const changes = new Counter({
    name: "slipway_alert_changes_total",
    help: "Changes of states of projects' alerts, by the new one.",
    labelNames: ["state"],
    registers,
  });
  for (const state of STATES) {
    changes.inc({ state }, 0);
  }
  new Gauge({
    name: "slipway_alerts_evaluation_age_seconds",
    help: "Seconds since this process has evaluated all rules of projects' alerts, while it leads; else 0.",
    registers,
    collect() {
      this.set(age());
    },
  });
  return {
    rules: new Gauge({
      name: "slipway_alert_rules",
      help: "Rules of projects' alerts that this process evaluates.",
      registers,
    }),
    firing: new Gauge({
      name: "slipway_alerts_firing",
      help: "Of them, those that fire.",
      registers,
    }),
    changes,
  };
}
