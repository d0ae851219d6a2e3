/** The operator's jobrun controller as one process of the model runs it: the same reconciler, queue and background work. */

import {
  Controller,
  createRuntimeMetrics,
  customSource,
  resources,
  type Source,
} from "@slipway/controller-runtime";
import { type JobRun, labels, type Project } from "@slipway/crds";
import { type Logger, silentLogger } from "@slipway/process";
import { Registry } from "prom-client";
import { ChargeRecorder } from "../../operator/src/jobs/runs/charge-recorder.ts";
import {
  type Job,
  type RunNode,
  type RunPod,
  slimJob,
  slimRunPod,
} from "../../operator/src/jobs/runs/cluster.ts";
import { jobRunSources } from "../../operator/src/jobs/runs/controller.ts";
import { LogArchiver } from "../../operator/src/jobs/runs/log-archiver.ts";
import { createJobRunMetrics } from "../../operator/src/jobs/runs/metrics.ts";
import type { RunLogs, RunSamples } from "../../operator/src/jobs/runs/ports.ts";
import { jobRunReconciler } from "../../operator/src/jobs/runs/reconciler.ts";
import type { JobRunSettings } from "../../operator/src/jobs/runs/settings.ts";
import { indexers, type JobRunStores } from "../../operator/src/jobs/runs/stores.ts";
import { slimNode } from "../../operator/src/metrics/nodes.ts";
import { jobRunResource, projectResource } from "../../operator/src/resources.ts";
import type { ModelCatalog } from "./catalog.ts";
import type { InvariantChecker } from "./invariant-checker.ts";
import type { ModelLedger } from "./ledger.ts";
import type { ModelProcess } from "./process.ts";
import type { Chance } from "./random.ts";

export interface JobRunProcessParts {
  ledger: ModelLedger;
  catalog: ModelCatalog;
  settings: JobRunSettings;
  /** Whether this process leads, as far as it knows. */
  mayAct: () => boolean;
  chance: Chance;
  checker: InvariantChecker;
}

export class JobRunProcess {
  readonly #process: ModelProcess;
  readonly #controller: Controller;
  #leaderSince = new Date(0);

  constructor(process: ModelProcess, parts: JobRunProcessParts) {
    this.#process = process;
    const { clock } = process;
    const { ledger, catalog, settings, mayAct, chance, checker } = parts;
    const random = () => chance.next();
    const log = defectLogger(checker, process);
    const registry = new Registry();
    const stores = modelStores(process);
    const chargeRecorder = new ChargeRecorder({
      ledger: ledger.connect((run) => process.wake(run)),
      clock,
      random,
      log,
    });
    const logArchiver = new LogArchiver({ logs: modelLogs(process, chance), clock, log });
    const reconcile = jobRunReconciler({
      cluster: process.cluster,
      clock,
      recorder: { event: () => {} },
      stores,
      // Its projects are jobs.
      catalog: () => ({ jobPlans: catalog.jobPlans, httpPlans: [], storagePlans: [] }),
      chargeRecorder,
      logArchiver,
      samples: noSamples,
      metrics: createJobRunMetrics(registry),
      settings,
      leaderSince: () => this.#leaderSince,
    });
    this.#controller = new Controller(
      { name: "jobrun", reconcile, sources: sourcesOf(stores, chargeRecorder, logArchiver), workers: 32 },
      { clock, random, log, metrics: createRuntimeMetrics(registry), mayAct },
    );
  }

  /** Whether its caches are synced. */
  get synced(): boolean {
    return this.#controller.hasSynced();
  }

  /** Begins to work. It ends with its process. */
  lead(): void {
    this.#leaderSince = this.#process.clock.now();
    void this.#controller.run(new AbortController().signal);
  }
}

function modelStores(process: ModelProcess): JobRunStores {
  const labelSelector = labels.project;
  return {
    projects: process.store<Project>(projectResource),
    runs: process.store<JobRun>(jobRunResource, { indexers: indexers.runs }),
    jobs: process.store<Job>(resources.jobs, { labelSelector, indexers: indexers.jobs, transform: slimJob }),
    pods: process.store<RunPod>(resources.pods, {
      labelSelector,
      indexers: indexers.pods,
      transform: slimRunPod,
    }),
    nodes: process.store<RunNode>(resources.nodes, { transform: slimNode }),
  };
}

function sourcesOf(stores: JobRunStores, chargeRecorder: ChargeRecorder, logArchiver: LogArchiver): Source[] {
  return [
    ...jobRunSources(stores),
    customSource((enqueue) => chargeRecorder.onRecorded((key) => enqueue(key))),
    customSource((enqueue) => logArchiver.onArchived((key) => enqueue(key))),
  ];
}

/** Reads a log soon, late, or not at all; one that is followed opens soon, too late to be waited for, or not at all. */
function modelLogs(process: ModelProcess, chance: Chance): RunLogs {
  return {
    follow: (_run, signal) =>
      new Promise((resolve, reject) => {
        const fails = chance.happens(0.05);
        const ms = chance.happens(0.05) ? chance.between(1_000, 10_000) : chance.between(5, 50);
        process.clock.setTimeout(() => {
          if (signal.aborted || fails) {
            reject(new Error("the node does not answer"));
          } else {
            resolve({ ended: Promise.resolve(), store: async () => "stored" });
          }
        }, ms);
      }),
    archive: (_run, signal) =>
      new Promise((resolve, reject) => {
        const fails = chance.happens(0.05);
        const ms = chance.happens(0.02) ? chance.between(1_000, 20_000) : chance.between(5, 50);
        process.clock.setTimeout(() => {
          if (signal.aborted) {
            reject(signal.reason);
          } else if (fails) {
            reject(new Error("the node does not answer"));
          } else {
            resolve(chance.happens(0.9) ? "stored" : "unavailable");
          }
        }, ms);
      }),
  };
}

const noSamples: RunSamples = {
  follow: () => {},
  read: () => undefined,
  finish: () => ({ status: "unavailable" }),
  forget: () => {},
};

/** A defect of the reconciler, such as a change of a shared object, is a violation. Time limits pass while a process is frozen. */
function defectLogger(checker: InvariantChecker, process: ModelProcess): Logger {
  const logger = (bound: object): Logger => ({
    ...silentLogger,
    error: (fields, message) => {
      if (process.wasFrozen && message === "reconcile over its time limit") {
        return;
      }
      checker.defect(message, { ...bound, ...fields });
    },
    child: (fields) => logger({ ...bound, ...fields }),
  });
  return logger({});
}
