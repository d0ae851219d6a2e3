/** Alerts of projects: what evaluates their rules, in the leader of each shard. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Manager, Store } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import { AlertEvaluator } from "./evaluator.ts";
import { createAlertMetrics } from "./metrics.ts";
import { type AlertLedger, type AlertStore, reopeningStore } from "./ports.ts";

/** Between two evaluations: a sample is there every 15 to 30 s. */
const PERIOD_MS = 30_000;

export interface AlertOptions {
  ledger: AlertLedger;
  /** Opens the analytics store, and may throw; undefined where there is none: then nothing measured is known. */
  openStore?: () => AlertStore;
  projects: Store<Project>;
  /** Tests change it. */
  periodMs?: number;
}

/** Adds them to a manager. */
export function addAlerts(
  manager: Manager,
  { ledger, openStore, projects, periodMs = PERIOD_MS }: AlertOptions,
): void {
  const { clock, log } = manager;
  let completedAt: number | undefined;
  const age = () => (completedAt === undefined ? 0 : (clock.monotonic() - completedAt) / 1_000);
  const metrics = createAlertMetrics(manager.registry, age);
  manager.addRunnable({
    name: "alerts",
    everyShard: true,
    run: async (signal) => {
      const store = openStore && reopeningStore(openStore);
      const owns = (namespace: string) => manager.owns(namespace);
      const evaluator = new AlertEvaluator({ ledger, store, projects, owns, clock, metrics, log });
      completedAt = clock.monotonic();
      while (!signal.aborted) {
        try {
          if (await evaluator.evaluate(signal)) {
            completedAt = clock.monotonic();
          }
        } catch (error) {
          if (!signal.aborted) {
            log.warn({ err: error }, "alerts could not be evaluated");
          }
        }
        await sleep(periodMs, undefined, { signal }).catch(() => undefined);
      }
      completedAt = undefined;
      metrics.rules.set(0);
      metrics.firing.set(0);
      await store?.close();
    },
  });
}
