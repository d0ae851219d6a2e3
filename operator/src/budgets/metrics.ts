/** What is measured of budgets. No label has values without bound. */

import { Counter, Gauge, type Registry } from "prom-client";

export interface BudgetMetrics {
  crossings: Counter;
  capActions: Counter<"action">;
  failures: Counter;
}

/**
 * Registers the metrics.
 * @param age seconds since all budgets were last compared; 0 where this process does not
 * @throws Error when it is called twice for one registry
 */
export function createBudgetMetrics(registry: Registry, age: () => number): BudgetMetrics {
  const registers = [registry];
  new Gauge({
    name: "slipway_budgets_comparison_age_seconds",
    help: "Seconds since this process has compared all budgets with charges and applied what follows, while it leads; else 0.",
    registers,
    collect() {
      this.set(age());
    },
  });
  const capActions = new Counter({
    name: "slipway_budget_cap_actions_total",
    help: "Projects that this process has paused because of a budget's hard cap, and resumed, by action.",
    labelNames: ["action"],
    registers,
  });
  for (const action of ["pause", "resume"]) {
    capActions.inc({ action }, 0);
  }
  return {
    failures: new Counter({
      name: "slipway_budget_failures_total",
      help: "What failed of comparing budgets and applying their caps: a page, an organization, a project, or a whole round.",
      registers,
    }),
    capActions,
    crossings: new Counter({
      name: "slipway_budget_crossings_total",
      help: "Thresholds of budgets that this process has recorded as reached.",
      registers,
    }),
  };
}
