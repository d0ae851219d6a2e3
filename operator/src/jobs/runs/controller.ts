/** The jobrun controller: its dependencies, watches and permissions. */

import {
  type Controller,
  customSource,
  type KubernetesObject,
  keyOf,
  type Manager,
  type ObjectRef,
  refKey,
  type Source,
  untilAborted,
  watchMapped,
} from "@slipway/controller-runtime";
import type { Catalog, Project } from "@slipway/crds";
import type { PolicyRule } from "../../rbac.ts";
import type { Placement } from "../../workload/app.ts";
import { ChargeRecorder } from "./charge-recorder.ts";
import { isReady, type RunNode } from "./cluster.ts";
import { LogArchiver } from "./log-archiver.ts";
import { createJobRunMetrics, registerJobRunGauges } from "./metrics.ts";
import type { RunLedger, RunLogs, RunSamples } from "./ports.ts";
import { jobRunReconciler } from "./reconciler.ts";
import type { JobRunSettings } from "./settings.ts";
import {
  BY_PROJECT,
  createJobRunStores,
  type JobRunStores,
  projectOfObject,
  projectOfRun,
} from "./stores.ts";

/** Permissions of the controller; the chart's ClusterRole is generated from them. */
export const rules: PolicyRule[] = [
  { apiGroups: ["slipway.dev"], resources: ["projects"], verbs: ["get", "list", "watch"] },
  { apiGroups: ["slipway.dev"], resources: ["projects/status"], verbs: ["patch"] },
  {
    apiGroups: ["slipway.dev"],
    resources: ["jobruns"],
    verbs: ["get", "list", "watch", "create", "patch", "delete"],
  },
  { apiGroups: ["slipway.dev"], resources: ["jobruns/status"], verbs: ["patch"] },
  { apiGroups: ["batch"], resources: ["jobs"], verbs: ["list", "watch"] },
  { apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"] },
  { apiGroups: [""], resources: ["nodes"], verbs: ["get", "list", "watch"] },
];

/** In organizations' namespaces alone. */
export const organizationRules: PolicyRule[] = [
  { apiGroups: ["batch"], resources: ["jobs"], verbs: ["get", "create", "patch", "delete"] },
  { apiGroups: ["batch"], resources: ["cronjobs"], verbs: ["get"] },
  { apiGroups: [""], resources: ["pods"], verbs: ["get", "patch", "delete"] },
];

/** Dependencies that `operator.ts` passes. */
export interface JobRunOptions {
  stores: Pick<JobRunStores, "projects" | "nodes">;
  catalog: () => Catalog;
  onCatalogChange: (listener: () => void) => () => void;
  ledger: RunLedger;
  logs: RunLogs;
  samples: RunSamples;
  settings: JobRunSettings;
  /** Where pods of applications run. */
  placement?: Placement;
}

/** Adds the jobrun controller to a manager. */
export function addJobRunController(manager: Manager, options: JobRunOptions): Controller {
  const { client, clock, random, log, recorder, registry } = manager;
  const stores = createJobRunStores(manager, options.stores);
  const chargeRecorder = new ChargeRecorder({ ledger: options.ledger, clock, random, log });
  const logArchiver = new LogArchiver({ logs: options.logs, clock, log });
  const led = new LeaderSince(() => clock.now());
  registerJobRunGauges(registry, stores, () => clock.now());
  manager.addRunnable({
    name: "charges-and-logs",
    everyShard: true,
    async run(signal) {
      await untilAborted(signal);
      // Neither keeps a process alive that has lost the leadership.
      chargeRecorder.stop();
      logArchiver.stop();
    },
  });
  return manager.addController({
    name: "jobrun",
    reconcile: jobRunReconciler({
      cluster: client,
      clock: manager.trustedClock,
      recorder,
      stores,
      catalog: options.catalog,
      chargeRecorder,
      logArchiver,
      samples: options.samples,
      metrics: createJobRunMetrics(registry),
      settings: options.settings,
      placement: options.placement,
      leaderSince: () => led.since,
    }),
    sources: [
      led.source,
      ...jobRunSources(stores),
      customSource((enqueue) => chargeRecorder.onRecorded((key) => enqueue(key))),
      customSource((enqueue) => logArchiver.onArchived((key) => enqueue(key))),
      customSource((enqueue) =>
        options.onCatalogChange(() => {
          for (const project of stores.projects.list().filter(isJob)) {
            enqueue(keyOf(project));
          }
        }),
      ),
    ],
    traced: (ref) => stores.runs.byIndex(BY_PROJECT, refKey(ref)),
    // More only slow down every write of a busy apiserver, those that create the Jobs included.
    workers: 12,
    // When many runs begin concurrently, many writes conflict with one of the job controller's: each is retried immediately.
    bucket: { perSecond: 200, burst: 1_000 },
  });
}

/** Maps events of the stores to keys of projects. */
export function jobRunSources(stores: JobRunStores): Source[] {
  const { projects, runs, jobs, pods, nodes } = stores;
  const ofProject = (object: KubernetesObject) => {
    const project = projectOfObject(object);
    return project ? [project] : [];
  };
  return [
    // Of other types only one that is being deleted matters: it waits for its runs.
    watchMapped(projects, (project) =>
      isJob(project) || project.metadata.deletionTimestamp !== undefined ? [refOfProject(project)] : [],
    ),
    watchMapped(runs, (run) => [projectOfRun(run)]),
    watchMapped(jobs, ofProject),
    watchMapped(pods, ofProject),
    // A node's readiness decides whether the state of its pods is trusted.
    watchMapped(
      nodes,
      (node) =>
        pods
          .list()
          .filter(({ spec }) => spec?.nodeName === node.metadata.name)
          .flatMap(ofProject),
      (event) => event.type !== "update" || isReady(event.old) !== isReady(event.object as RunNode),
    ),
  ];
}

const isJob = ({ spec, status }: Project): boolean => spec.type === "job" || status?.job !== undefined;

const refOfProject = ({ metadata: { namespace, name } }: Project): ObjectRef => ({ namespace, name });

/** The time at which this process became the leader: the controller's sources are attached then. */
class LeaderSince {
  #since: Date | undefined;
  readonly #now: () => Date;

  constructor(now: () => Date) {
    this.#now = now;
  }

  get since(): Date {
    this.#since ??= this.#now();
    return this.#since;
  }

  /** Attached first; it never enqueues a key. */
  get source(): Source {
    return customSource(() => {
      this.#since = this.#now();
      return () => {};
    });
  }
}
