/** Metrics of the jobrun controller. No label has unbounded values. */

import type { Store } from "@slipway/controller-runtime";
import { type JobRun, type MissedReason, missedReasons, type Project } from "@slipway/crds";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { EndPhase } from "./ports.ts";
import { hasCondition, isCharged, isEnded } from "./run.ts";

export type JobRunMetrics = ReturnType<typeof createJobRunMetrics>;

const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 1.5, 2, 3, 4, 5, 7.5, 10, 15, 20, 30, 60, 120];
const outcomes: readonly (EndPhase | "never_started")[] = [
  "succeeded",
  "failed",
  "deadline_exceeded",
  "cancelled",
  "never_started",
];

/** Registers the metrics. @throws Error when it is called twice for one registry */
export function createJobRunMetrics(registry: Registry) {
  const registers = [registry];
  const histogram = (name: string, help: string, buckets = SECONDS) =>
    new Histogram({ name, help, buckets, registers });
  const runs = new Counter({
    name: "slipway_job_runs_total",
    help: "Job runs that have ended, by outcome.",
    labelNames: ["outcome"],
    registers,
  });
  const missed = new Counter({
    name: "slipway_job_missed_total",
    help: "Occurrences of schedules that were missed, by reason.",
    labelNames: ["reason"],
    registers,
  });
  for (const outcome of outcomes) {
    runs.inc({ outcome }, 0);
  }
  for (const reason of missedReasons) {
    missed.inc({ reason }, 0);
  }
  return {
    skew: histogram(
      "slipway_job_run_schedule_skew_seconds",
      "From an occurrence's scheduled time to its admission.",
    ),
    admissionLatency: histogram(
      "slipway_job_run_admission_latency_seconds",
      "From the creation of an occurrence's Job, which has whole seconds, to its admission.",
    ),
    billingLag: histogram(
      "slipway_job_run_billing_lag_seconds",
      "From the end of a run's container to its charge being read back from the ledger.",
      [...SECONDS, 300, 600, 1_800],
    ),
    differs: new Counter({
      name: "slipway_job_run_charges_differ_total",
      help: "Runs that the ledger had with other billing fields: its own stand.",
      registers,
    }),
    runEnded: (outcome: EndPhase | "never_started") => runs.inc({ outcome }),
    occurrenceMissed: (reason: MissedReason) => missed.inc({ reason }),
  };
}

/** Registers gauges that are read from the stores when metrics are scraped. */
export function registerJobRunGauges(
  registry: Registry,
  stores: { projects: Store<Project>; runs: Store<JobRun> },
  now: () => Date,
): void {
  const registers = [registry];
  new Gauge({
    name: "slipway_job_runs_active",
    help: "Projects whose slot is held by a run.",
    registers,
    collect() {
      this.set(stores.projects.list().filter(({ status }) => status?.job?.activeRun !== undefined).length);
    },
  });
  new Gauge({
    name: "slipway_job_runs_uncharged",
    help: "Runs that have ended and whose charge was not read back yet.",
    registers,
    collect() {
      this.set(stores.runs.list().filter((run) => isEnded(run) && !isCharged(run)).length);
    },
  });
  new Gauge({
    name: "slipway_job_runs_charge_refused",
    help: "Runs whose charge the ledger refuses by one of its rules: it is never recorded without somebody's help.",
    registers,
    collect() {
      this.set(
        stores.runs.list().filter((run) => hasCondition(run, "Charged", "False", "ChargeRefused")).length,
      );
    },
  });
  new Gauge({
    name: "slipway_job_runs_uncharged_oldest_seconds",
    help: "How long ago the first of those runs ended; zero when there is none.",
    registers,
    collect() {
      const ends = stores.runs
        .list()
        .filter((run) => isEnded(run) && !isCharged(run))
        .flatMap(({ status }) => (status?.finishedAt === undefined ? [] : [Date.parse(status.finishedAt)]));
      this.set(ends.length === 0 ? 0 : Math.max(0, (now().getTime() - Math.min(...ends)) / 1_000));
    },
  });
}
