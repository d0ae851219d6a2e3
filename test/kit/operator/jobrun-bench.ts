/** A cluster in memory, one job in it, and the reconciler: tests play the controller-manager and the kubelet. */

import {
  type EventInput,
  type KubernetesObject,
  type ObjectRef,
  resources,
  Store,
} from "@slipway/controller-runtime";
import { annotations, type JobRun, jobRunName, labels, type Project } from "@slipway/crds";
import { silentLogger } from "@slipway/process";
import { Registry } from "prom-client";
import { ChargeRecorder } from "../../../operator/src/jobs/runs/charge-recorder.ts";
import {
  JOB_NAME,
  type Job,
  type RunCluster,
  type RunNode,
  type RunPod,
  SCHEDULED_TIMESTAMP,
} from "../../../operator/src/jobs/runs/cluster.ts";
import type { JobRunDependencies } from "../../../operator/src/jobs/runs/context.ts";
import { LogArchiver } from "../../../operator/src/jobs/runs/log-archiver.ts";
import { createJobRunMetrics } from "../../../operator/src/jobs/runs/metrics.ts";
import type { ChargedRun, RecordedRun, RunLogs } from "../../../operator/src/jobs/runs/ports.ts";
import { jobRunReconciler } from "../../../operator/src/jobs/runs/reconciler.ts";
import { indexers } from "../../../operator/src/jobs/runs/stores.ts";
import { jobRunResource, projectResource } from "../../../operator/src/resources.ts";
import { Apiserver, type NewObject } from "../../simulator/apiserver.ts";
import type { Stored } from "../../simulator/objects.ts";
import { Timeline } from "../../simulator/timeline.ts";

const NAMESPACE = "slipway-org-test";
export const PROJECT = "pjob";
const NODE = "node-1";

export interface BenchOptions {
  cron?: string;
  /** Initial time. */
  start?: string;
  limitMs?: number;
  /** An application that serves in place of the job. */
  application?: true;
  /** Since when the operator leads: the initial time by default. */
  leaderSince?: Date;
}

/** What the ledger was given, by run; a run that is there stays as it is. */
class BenchLedger {
  readonly rows = new Map<string, ChargedRun>();
  down = false;
  /** The rule by which it refuses every charge. */
  refuses: string | undefined;

  async record(rows: ChargedRun[]): Promise<RecordedRun[]> {
    if (this.down) {
      throw new Error("no ledger");
    }
    const reason = this.refuses;
    return rows.map((row) => {
      if (reason !== undefined) {
        return { id: row.id, organization_id: row.organization_id, outcome: "refused", reason };
      }
      const known = this.rows.get(row.id);
      if (!known) {
        this.rows.set(row.id, row);
      }
      const outcome = !known ? "recorded" : known.amount === row.amount ? "already" : "differs";
      return { id: row.id, organization_id: row.organization_id, outcome };
    });
  }
}

export class Bench {
  readonly timeline: Timeline;
  readonly api: Apiserver;
  readonly deps: JobRunDependencies;
  readonly ledger = new BenchLedger();
  /** Where logs are read; every one can be, and is at its end, unless a test changes that. */
  readonly logs: RunLogs = {
    archive: async () => "stored",
    follow: async () => ({ ended: Promise.resolve(), store: async () => "stored" }),
  };
  readonly events: EventInput[] = [];
  /** Every write that was sent, as `verb resource`. */
  readonly writes: string[] = [];
  /** Plurals of what a watch is behind on: changes do not arrive. */
  readonly staleWatches = new Set<string>();
  /** Called before each write; throwing keeps it from being sent. */
  beforeWrite: (write: string) => void = () => {};
  /** Called after each write; throwing loses its answer. */
  afterWrite: (write: string) => void = () => {};
  readonly #reconcile;

  constructor({
    cron = "* * * * *",
    start = "2026-03-01T12:00:30Z",
    limitMs = 3_600_000,
    application,
    leaderSince,
  }: BenchOptions = {}) {
    this.timeline = new Timeline(Date.parse(start));
    this.api = new Apiserver(this.timeline);
    const clock = {
      now: () => new Date(this.timeline.now),
      monotonic: () => this.timeline.now,
      setTimeout: (callback: () => void, ms: number) =>
        this.timeline.after(ms, () => {
          this.timeline.touch();
          callback();
        }),
    };
    const stores = {
      projects: this.#store<Project>(projectResource.plural),
      runs: this.#store<JobRun>(jobRunResource.plural, indexers.runs),
      jobs: this.#store<Job>("jobs", indexers.jobs),
      pods: this.#store<RunPod>("pods", indexers.pods),
      nodes: this.#store<RunNode>("nodes"),
    };
    const led = leaderSince ?? clock.now();
    this.deps = {
      cluster: this.#cluster(),
      clock,
      stores,
      recorder: { event: (_object, _resource, input) => void this.events.push(input) },
      catalog: () => ({ jobPlans: [jobPlan], httpPlans: [httpPlan, freePlan], storagePlans: [] }),
      chargeRecorder: new ChargeRecorder({
        ledger: this.ledger,
        clock,
        random: () => 0.5,
        log: silentLogger,
      }),
      logArchiver: new LogArchiver({ logs: this.logs, clock, log: silentLogger }),
      samples: {
        follow: () => {},
        read: () => undefined,
        finish: () => ({ status: "unavailable" }),
        forget: () => {},
      },
      metrics: createJobRunMetrics(new Registry()),
      settings: { limitMs, windowMs: 120_000, startDeadlineMs: 600_000 },
      leaderSince: () => led,
    };
    this.#reconcile = jobRunReconciler(this.deps);
    this.api.create(projectResource, {
      metadata: { name: PROJECT, namespace: NAMESPACE },
      spec: application
        ? { type: "http", name: "example", plan: "basic", paymentMode: "hourly", port: 8080, image: IMAGE }
        : { type: "job", name: "example", plan: "job-basic", paymentMode: "per_minute", job: { cron } },
    });
    if (application) {
      this.serve();
    }
    this.accept(true);
    this.api.create(resources.nodes, { metadata: { name: NODE } });
    this.nodeReady(true, "2026-01-01T00:00:00Z");
  }

  /** Advances the clock; what is due in the background happens. */
  async pass(ms: number): Promise<void> {
    await this.timeline.runUntil(this.timeline.now + ms);
  }

  /** Advances the clock to a time of its current day. */
  async passTo(time: string): Promise<void> {
    const day = new Date(this.timeline.now).toISOString().slice(0, 11);
    await this.pass(Date.parse(`${day}${time}Z`) - this.timeline.now);
  }

  /** Reconciles until nothing changes, background work included. Returns the requested requeue time in ms. */
  async reconcileUntilStable(): Promise<number | undefined> {
    let after: number | undefined;
    for (let pass = 0; pass < 30; pass += 1) {
      const before = this.api.version;
      after = (await this.once())?.requeueAfterMs;
      await this.pass(60);
      if (this.api.version === before && (after === undefined || after > 60)) {
        return after;
      }
    }
    throw new Error("it never becomes stable");
  }

  /** One reconcile. */
  once(name = PROJECT) {
    const context = { signal: new AbortController().signal, log: silentLogger, clock: this.deps.clock };
    return this.#reconcile({ namespace: NAMESPACE, name }, context);
  }

  // What others write.

  accept(accepted: boolean): void {
    const status = accepted ? "True" : "False";
    const condition = {
      type: "Accepted",
      status,
      reason: "Accepted",
      message: "",
      lastTransitionTime: "2026-01-01T00:00:00Z",
    };
    this.api.patch(
      projectResource,
      this.ref(),
      { status: { conditions: [condition] } },
      { subresource: "status" },
    );
  }

  /** The project as it is before its own controller has reconciled it. */
  clearConditions(): void {
    const status = { conditions: [] };
    this.api.patch(projectResource, this.ref(), { status }, { subresource: "status" });
  }

  patchProject(patch: object): void {
    this.api.patch(projectResource, this.ref(), patch);
  }

  /** The application serves a version, of another plan than the usual one where that is given. */
  serve({ plan = "basic", ...more }: { plan?: string; id?: string; settingsHash?: string } = {}): void {
    const deployments = [{ ...deployment, ...more, settings: { ...deployment.settings, plan } }];
    this.api.patch(projectResource, this.ref(), { status: { deployments } }, { subresource: "status" });
  }

  nodeReady(ready: boolean, lastTransitionTime = this.#second()): void {
    const status = {
      conditions: [{ type: "Ready", status: ready ? "True" : "Unknown", lastTransitionTime }],
    };
    this.api.patch(resources.nodes, { name: NODE }, { status }, { subresource: "status" });
  }

  /** The controller-manager makes an occurrence's Job. */
  makeJob(time: string): string {
    const at = new Date(`${new Date(this.timeline.now).toISOString().slice(0, 11)}${time}Z`);
    const name = jobRunName(PROJECT, at);
    this.api.create(resources.jobs, {
      metadata: {
        name,
        namespace: NAMESPACE,
        labels: { [labels.project]: PROJECT },
        annotations: { [SCHEDULED_TIMESTAMP]: at.toISOString(), [annotations.plan]: "job-basic" },
      },
      spec: { suspend: true },
    });
    return name;
  }

  /** The project controller makes the CronJob. */
  makeCronJob(): void {
    this.api.create(resources.cronJobs, {
      metadata: { name: PROJECT, namespace: NAMESPACE },
      spec: {
        jobTemplate: {
          metadata: {
            labels: { [labels.project]: PROJECT },
            annotations: { [annotations.plan]: "job-basic" },
          },
          spec: { backoffLimit: 0 },
        },
      },
    });
  }

  /** A Job creates its pod, on a node by default. */
  makePod(name: string, bound = true): string {
    const pod = `${name}-x`;
    this.api.create(resources.pods, {
      metadata: {
        name: pod,
        namespace: NAMESPACE,
        labels: { [labels.project]: PROJECT, [JOB_NAME]: name },
        finalizers: ["slipway.dev/jobrun"],
      },
      spec: { ...(bound ? { nodeName: NODE } : {}), terminationGracePeriodSeconds: 30 },
    } as NewObject);
    return pod;
  }

  /** The kubelet reports the container; times are of the current day. */
  patchPodStatus(pod: string, state: object, phase = "Running"): void {
    const status = { phase, containerStatuses: [{ name: "app", state }] };
    this.api.patch(resources.pods, this.ref(pod), { status }, { subresource: "status" });
  }

  starts(pod: string): void {
    this.patchPodStatus(pod, { running: { startedAt: this.#second() } });
  }

  ends(
    pod: string,
    exitCode: number,
    startedAt: string,
    reason = exitCode === 0 ? "Completed" : "Error",
  ): void {
    const finishedAt = this.#second();
    const phase = exitCode === 0 ? "Succeeded" : "Failed";
    this.patchPodStatus(
      pod,
      { terminated: { exitCode, reason, startedAt: this.day(startedAt), finishedAt } },
      phase,
    );
  }

  /** A run from its Job to its running container, begun at the minute that the clock shows. */
  async start(time: string): Promise<{ name: string; pod: string }> {
    const name = this.makeJob(time);
    await this.reconcileUntilStable();
    const pod = this.makePod(name);
    this.starts(pod);
    await this.reconcileUntilStable();
    return { name, pod };
  }

  // What is seen.

  get state(): NonNullable<NonNullable<Project["status"]>["job"]> {
    const project = this.api.get<Stored>(projectResource, this.ref()) as unknown as Project;
    return project.status?.job ?? {};
  }

  run(name: string): JobRun | undefined {
    return this.api.get<Stored>(jobRunResource, this.ref(name)) as unknown as JobRun | undefined;
  }

  job(name: string): Job | undefined {
    return this.api.get<Stored>(resources.jobs, this.ref(name)) as unknown as Job | undefined;
  }

  pod(name: string): RunPod | undefined {
    return this.api.get<Stored>(resources.pods, this.ref(name)) as unknown as RunPod | undefined;
  }

  condition(name: string, type: string): string | undefined {
    const found = this.run(name)?.status?.conditions?.find((condition) => condition.type === type);
    return found && `${found.status}/${found.reason}`;
  }

  missed(): string {
    return (this.state.missedReasons ?? []).map(({ reason, count }) => `${reason} ${count}`).join(", ");
  }

  ref(name = PROJECT): ObjectRef & { namespace: string } {
    return { namespace: NAMESPACE, name };
  }

  day(time: string): string {
    return `${new Date(this.timeline.now).toISOString().slice(0, 11)}${time}Z`;
  }

  #second(): string {
    return `${new Date(this.timeline.now).toISOString().slice(0, 19)}Z`;
  }

  #store<T extends KubernetesObject>(plural: string, indexes = {}): Store<T> {
    const store = new Store<T>({ indexers: indexes, transform: (object) => object });
    store.replace([], "0");
    this.api.onChange(({ type, resource, object }) => {
      if (resource.plural !== plural || this.staleWatches.has(plural)) {
        return;
      }
      if (type === "delete") {
        store.remove(object as unknown as T);
      } else {
        store.upsert(object as unknown as T);
      }
    });
    return store;
  }

  #cluster(): RunCluster {
    const { api } = this;
    const write = <T>(what: string, call: () => T): T => {
      this.beforeWrite(what);
      const result = call();
      this.writes.push(what);
      this.afterWrite(what);
      return result;
    };
    return {
      getOrUndefined: async <T>(resource: { plural: string }, ref: ObjectRef) =>
        api.get(resource as never, ref) as T | undefined,
      listAll: async <T>(resource: { plural: string }, { labelSelector = "" } = {}) => {
        const [label = "", value] = labelSelector.split("=");
        return api
          .list(resource as never)
          .filter(({ metadata }) => metadata.labels?.[label] === value) as T[];
      },
      create: async <T>(resource: { plural: string }, object: unknown) =>
        write(`create ${resource.plural}`, () => api.create(resource as never, object as NewObject) as T),
      patch: async <T>(resource: { plural: string }, ref: ObjectRef, patch: unknown, options = {}) =>
        write(`patch ${resource.plural}`, () => api.patch(resource as never, ref, patch, options) as T),
      delete: async (resource: { plural: string }, ref: ObjectRef, options = {}) => {
        if (!api.get(resource as never, ref)) {
          return false;
        }
        write(`delete ${resource.plural}`, () => api.delete(resource as never, ref, options));
        return true;
      },
    } as RunCluster;
  }
}

const IMAGE = { url: "registry.example/team/app:1", isPublic: true };

const deployment = {
  id: "d1",
  status: "succeeded",
  startedAt: "2026-01-01T00:00:00Z",
  settingsHash: "h1",
  updatedImage: true,
  image: { reference: IMAGE.url },
  settings: { image: IMAGE, port: 8080 },
};

const size = { cpu: "1", memory: "128Mi" };

const httpPlan = {
  plan: "basic",
  free: false,
  prices: { hourly: "3", monthly: "2160", yearly: "25920" },
  resources: { requests: size, limits: size },
} as unknown as ReturnType<JobRunDependencies["catalog"]>["httpPlans"][number];

const freePlan = { ...httpPlan, plan: "free", free: true };

const jobPlan = {
  plan: "job-basic",
  free: false,
  resources: { cpu: "1", memory: "128Mi" },
  features: [],
  permissions: {},
  pricePerMinute: "0.25",
} as unknown as ReturnType<JobRunDependencies["catalog"]>["jobPlans"][number];
