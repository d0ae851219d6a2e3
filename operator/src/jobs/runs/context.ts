/** What the steps of the jobrun reconciler share: their dependencies, and the context of one reconcile. */

import type { EventRecorder } from "@slipway/controller-runtime";
import type { Catalog } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import type { Placement } from "../../workload/app.ts";
import type { ChargeRecorder } from "./charge-recorder.ts";
import type { RunCluster } from "./cluster.ts";
import type { LogArchiver } from "./log-archiver.ts";
import type { JobRunMetrics } from "./metrics.ts";
import type { RunSamples } from "./ports.ts";
import type { JobRunSettings } from "./settings.ts";
import type { JobRunStores } from "./stores.ts";

/** Dependencies of the jobrun reconciler. */
export interface JobRunDependencies {
  cluster: RunCluster;
  clock: Clock;
  recorder: EventRecorder;
  stores: JobRunStores;
  catalog: () => Pick<Catalog, "jobPlans" | "httpPlans" | "storagePlans">;
  chargeRecorder: ChargeRecorder;
  logArchiver: LogArchiver;
  samples: RunSamples;
  metrics: JobRunMetrics;
  settings: JobRunSettings;
  /** Where pods of applications run. */
  placement?: Placement;
  /** Time at which this process became the leader. */
  leaderSince: () => Date;
}

/** The arguments of one step. */
export interface RunContext {
  signal: AbortSignal;
  requeue: Requeue;
}

/** When a key has to be reconciled again: the earliest time that any step requests. */
export class Requeue {
  #ms: number | undefined;

  after(ms: number): void {
    const wait = Math.max(ms, 1);
    this.#ms = this.#ms === undefined ? wait : Math.min(this.#ms, wait);
  }

  at(moment: Date, now: Date): void {
    this.after(moment.getTime() - now.getTime());
  }

  get ms(): number | undefined {
    return this.#ms;
  }
}

/** A failure of one run must not delay the others: the first one is thrown after all were tried. */
export class Failures {
  #first: { error: unknown } | undefined;

  async each<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
    for (const item of items) {
      try {
        await work(item);
      } catch (error) {
        this.#first ??= { error };
      }
    }
  }

  rethrow(): void {
    if (this.#first) {
      throw this.#first.error;
    }
  }
}
