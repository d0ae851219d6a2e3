/** Budgets of organizations: what compares them with charges, and what applies their hard caps. */

import type { Manager, Store } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import { sleep } from "@slipway/process";
import type { PolicyRule } from "../rbac.ts";
import { BudgetCaps } from "./caps.ts";
import { recordCrossings } from "./crossings.ts";
import { createBudgetMetrics } from "./metrics.ts";
import type { BudgetLedger } from "./ports.ts";

/** In every namespace: what a cap pauses and resumes. */
export const rules: PolicyRule[] = [
  { apiGroups: ["slipway.dev"], resources: ["projects"], verbs: ["list", "watch", "patch"] },
];

/** Between two rounds. */
const PERIOD_MS = 10_000;

export interface BudgetOptions {
  ledger: BudgetLedger;
  projects: Store<Project>;
  /** Tests change it. */
  periodMs?: number;
}

/** Adds them to a manager: the leader of the first shard records what is reached, and each shard's applies caps to its own projects. */
export function addBudgets(
  manager: Manager,
  { ledger, projects, periodMs = PERIOD_MS }: BudgetOptions,
): void {
  const { client, clock, log, trustedClock } = manager;
  /** By runnable, when its last round was complete, or when it began. */
  const completed = new Map<string, number>();
  const age = () => Math.max(0, ...completed.values().map((at) => (clock.monotonic() - at) / 1_000));
  const metrics = createBudgetMetrics(manager.registry, age);
  const caps = new BudgetCaps({
    ...{ ledger, client, projects, clock, trustedClock, log },
    owns: (namespace) => manager.owns(namespace),
    onAction: (action) => metrics.capActions.inc({ action }),
    onFailure: () => metrics.failures.inc(),
  });

  async function repeatedly(
    name: string,
    signal: AbortSignal,
    round: () => Promise<boolean>,
    failure: string,
  ): Promise<void> {
    completed.set(name, clock.monotonic());
    while (!signal.aborted) {
      try {
        if (await round()) {
          completed.set(name, clock.monotonic());
        }
      } catch (error) {
        if (!signal.aborted) {
          metrics.failures.inc();
          log.warn({ err: error }, failure);
        }
      }
      await sleep(clock, periodMs, signal);
    }
    completed.delete(name);
  }

  manager.addRunnable({
    name: "budget-crossings",
    run: (signal) => {
      const options = {
        ...{ ledger, trustedClock, clock, log },
        onRecorded: (count: number) => metrics.crossings.inc(count),
        onFailure: () => metrics.failures.inc(),
      };
      const round = () => recordCrossings(options, signal);
      return repeatedly("crossings", signal, round, "budgets could not be compared with charges");
    },
  });
  manager.addRunnable({
    name: "budget-caps",
    everyShard: true,
    run: (signal) =>
      repeatedly("caps", signal, () => caps.enforce(signal), "caps of budgets could not be applied"),
  });
}
