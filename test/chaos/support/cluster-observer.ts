import {
  type KubeClient,
  type KubernetesObject,
  Reflector,
  type Resource,
  resources,
  Store,
} from "@slipway/controller-runtime";
import { type JobRun, labels, type Project } from "@slipway/crds";
import type { Ledger } from "@slipway/ledger";
import { sql } from "kysely";
import { jobRunResource, projectResource } from "../../kit/processes/job-platform.ts";
import type {
  JobRecord,
  JobRunRecord,
  LedgerCharge,
  LedgerRun,
  PodRecord,
  ProjectRecord,
  Records,
} from "./checks.ts";
import {
  type Job,
  jobLine,
  jobRunLine,
  ObservationLog,
  type Pod,
  podLine,
  projectLine,
  recordLines,
} from "./observation-log.ts";

const date = (text: string | null | undefined) => (text ? new Date(text) : undefined);

/** A watch of one kind of object, which can be restarted. */
interface Followed {
  resource: Resource;
  known(): readonly KubernetesObject[];
  /** Lists immediately, and watches from there. Resolves once the list is complete. */
  begin(): Promise<void>;
}

/**
 * Observes everything that happens in the cluster from the apiserver directly, independently of the operator, and keeps deleted
 * objects. Pods and JobRuns have finalizers, so none is created and deleted while a watch is down; but their final state is known
 * only if the operator removes the finalizers after a new list. So a test that stops the apiserver has to call `relist`.
 */
export class ClusterObserver {
  readonly #pods = new Map<string, { pod: Pod; deleted: boolean; ends: Set<string> }>();
  readonly #jobRuns = new Map<string, { jobRun: JobRun; deleted: boolean }>();
  readonly #since = new Map<string, { schedule: string | undefined; since: Date }>();
  readonly #jobs: Store<Job>;
  readonly #projects: Store<Project>;
  readonly #followed: Followed[] = [];
  readonly #abort = new AbortController();
  readonly #client: KubeClient;
  readonly #ledger: Ledger;
  readonly #log = new ObservationLog();

  constructor(client: KubeClient, ledger: Ledger) {
    this.#client = client;
    this.#ledger = ledger;
    const follow = <T extends KubernetesObject>(resource: Resource) => {
      const store = new Store<T>();
      this.#follow(resource, store);
      return store;
    };
    follow<Pod>(resources.pods).subscribe(({ type, object }) => {
      const uid = object.metadata?.uid ?? "";
      const ends = this.#pods.get(uid)?.ends ?? new Set();
      const { terminated } = object.status?.containerStatuses?.[0]?.state ?? {};
      if (terminated?.finishedAt) {
        ends.add(terminated.finishedAt);
      }
      const deleted = type === "delete";
      this.#pods.set(uid, { pod: object, deleted, ends });
      this.#log.add(runOf(object), podLine(object, deleted));
    });
    follow<JobRun>(jobRunResource).subscribe(({ type, object }) => {
      const deleted = type === "delete";
      this.#jobRuns.set(object.metadata.uid ?? "", { jobRun: object, deleted });
      this.#log.add(object.metadata.name, jobRunLine(object, deleted));
    });
    this.#jobs = follow<Job>(resources.jobs);
    this.#jobs.subscribe(({ type, object }) =>
      this.#log.add(object.metadata?.name ?? "", jobLine(object, type === "delete")),
    );
    this.#projects = follow<Project>(projectResource);
    this.#projects.subscribe(({ type, object }) => {
      this.#log.add(object.metadata.name, projectLine(object, type === "delete"));
      const { schedule, scheduledSince } = object.status?.job ?? {};
      const since = date(scheduledSince);
      const { name } = object.metadata;
      const known = this.#since.get(name);
      if (since && known?.schedule !== schedule) {
        this.#since.set(name, { schedule, since });
      }
    });
  }

  stop(): void {
    this.#abort.abort();
  }

  /** Lists all objects again: to be called after the apiserver was down, before the operator reaches it. */
  async relist(): Promise<void> {
    await Promise.all(this.#followed.map(({ begin }) => begin()));
  }

  /** Whether the caches equal the live objects of some projects. */
  async isUpToDate(projects: readonly string[]): Promise<boolean> {
    const wanted = new Set(projects);
    const versions = (objects: readonly KubernetesObject[], resource: Resource) =>
      objects
        .filter((object) => wanted.has(projectOf(object, resource)))
        .map(({ metadata }) => `${metadata?.uid} ${metadata?.resourceVersion}`)
        .toSorted()
        .join();
    const same = await Promise.all(
      this.#followed.map(async ({ resource, known }) => {
        const live = await this.#client.listAll(resource);
        return versions(live, resource) === versions(known(), resource);
      }),
    );
    return same.every(Boolean);
  }

  /** Unsuspended Jobs without an observed pod. */
  withoutPods(): string[] {
    const made = new Set([...this.#pods.values()].map(({ pod }) => runOf(pod)));
    return this.#jobs
      .list()
      .filter(({ spec, metadata }) => spec?.suspend !== true && !made.has(metadata?.name ?? ""))
      .map(({ metadata }) => metadata?.name ?? "");
  }

  #follow<T extends KubernetesObject>(resource: Resource, store: Store<T>): void {
    const client = this.#client;
    let running = new AbortController();
    const begin = () => {
      running.abort();
      running = new AbortController();
      const signal = AbortSignal.any([running.signal, this.#abort.signal]);
      return new Promise<void>((resolve) => {
        const reflector = new Reflector<T>({ client, resource, store, events: { onList: () => resolve() } });
        void reflector.run(signal).then(resolve);
      });
    };
    this.#followed.push({ resource, known: () => store.list(), begin });
    void begin();
  }

  /** All that was observed of a run or a project, in order, and its records. */
  log(subject: string, records: Records): string[] {
    return [...this.#log.of(subject), ...recordLines(subject, records)];
  }

  /** What is known of some projects now. */
  async records(projects: readonly string[]): Promise<Records> {
    const wanted = new Set(projects);
    const of = <T extends { project: string }>(all: T[]) => all.filter(({ project }) => wanted.has(project));
    return {
      pods: of([...this.#pods.values()].map(({ pod, deleted, ends }) => podRecord(pod, deleted, ends))),
      jobRuns: of([...this.#jobRuns.values()].map(({ jobRun, deleted }) => jobRunRecord(jobRun, deleted))),
      jobs: of(this.#jobs.list().map(jobRecord)),
      projects: this.#projects
        .list()
        .filter(({ metadata }) => wanted.has(metadata.name))
        .map((project) => projectRecord(project, this.#since.get(project.metadata.name)?.since)),
      ...(await this.#ledgerRecords(projects)),
    };
  }

  async #ledgerRecords(projects: readonly string[]): Promise<{ runs: LedgerRun[]; charges: LedgerCharge[] }> {
    // Not by the ledger's own functions: they are under test.
    const runs = await sql<LedgerRun>`
      select id, project_id as project, trigger, scheduled_at as "scheduledAt", started_at as "startedAt",
        finished_at as "finishedAt", billed_until as "billedUntil", status, billed_minutes as "billedMinutes",
        price_per_minute::text as "pricePerMinute", amount::text as amount
      from job_runs where project_id = any(${projects})`.execute(this.#ledger);
    const charges = await sql<LedgerCharge>`
      select key as run, project_id as project, amount::text as amount
      from charges where kind = 'job_run' and project_id = any(${projects})`.execute(this.#ledger);
    return { runs: runs.rows, charges: charges.rows };
  }
}

/** The project that an object is, or is of. */
function projectOf(object: KubernetesObject, resource: Resource): string {
  const { spec, metadata } = object as JobRun;
  if (resource === projectResource) {
    return metadata.name;
  }
  return spec?.projectRef?.name ?? metadata.labels?.[labels.project] ?? "";
}

const runOf = ({ metadata }: Pod): string => metadata?.labels?.["batch.kubernetes.io/job-name"] ?? "";

function podRecord(pod: Pod, deleted: boolean, ends: ReadonlySet<string>): PodRecord {
  const { metadata } = pod;
  const { running, terminated } = pod.status?.containerStatuses?.[0]?.state ?? {};
  return {
    uid: metadata?.uid ?? "",
    name: metadata?.name ?? "",
    project: metadata?.labels?.[labels.project] ?? "",
    run: runOf(pod),
    startedAt: date(terminated?.startedAt ?? running?.startedAt),
    finishedAt: date(terminated?.finishedAt),
    otherEnds: [...ends].filter((end) => end !== terminated?.finishedAt).map((end) => new Date(end)),
    exitCode: terminated?.exitCode,
    finalizers: (metadata?.finalizers ?? []).filter((name) => name.startsWith("slipway.dev/")),
    deleted,
  };
}

function jobRunRecord({ metadata, spec, status }: JobRun, deleted: boolean): JobRunRecord {
  return {
    name: metadata.name,
    project: spec.projectRef.name,
    trigger: spec.trigger,
    scheduledAt: new Date(spec.scheduledAt),
    admittedAt: date(status?.admittedAt),
    cancelRequestedAt: date(spec.cancelRequestedAt),
    lastObservedRunningAt: date(status?.lastObservedRunningAt),
    chargedAt: date(status?.chargedAt),
    refused:
      status?.conditions?.some(({ type, status: value }) => type === "Admitted" && value === "False") ??
      false,
    deleted,
  };
}

function jobRecord({ metadata }: KubernetesObject): JobRecord {
  return {
    name: metadata?.name ?? "",
    project: metadata?.labels?.[labels.project] ?? "",
    finalizers: (metadata?.finalizers ?? []).filter((name) => name.startsWith("slipway.dev/")),
  };
}

function projectRecord({ metadata, status }: Project, since: Date | undefined): ProjectRecord {
  const job = status?.job;
  return {
    id: metadata.name,
    scheduledSince: since,
    lastScheduledAt: date(job?.lastScheduledAt),
    missed: job?.missed ?? 0,
    missedReasons: Object.fromEntries((job?.missedReasons ?? []).map(({ reason, count }) => [reason, count])),
    activeRun: job?.activeRun,
  };
}
