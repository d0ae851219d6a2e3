import {
  byNamespace,
  compareResourceVersions,
  type KubeClient,
  KubeError,
  Reflector,
  Store,
} from "@slipway/controller-runtime";
import { type JobRun, organizationNamespace, organizationOfNamespace } from "@slipway/crds";
import type { Logger } from "pino";
import { failures } from "../errors/catalog.ts";
import { localWrites, type Memory, type NewestWrites } from "../http/newest-writes.ts";
import type { ApiProject } from "../projects/api-project.ts";
import { jobRunResource } from "../resources.ts";
import { RunWaiters } from "./waiters.ts";

/** How long the list of all runs may take a page, which no request waits for. */
const LIST_TIMEOUT_MS = 30_000;

export interface JobRunStoreOptions {
  client: KubeClient;
  logger: Logger;
  /** Publishes writes to the other replicas; not by default. */
  writes?: NewestWrites;
}

/** What routes read of the runs that are custom resources: those that are active, and those of the last minutes. */
export interface JobRuns extends Memory {
  /** Every run of a project in memory, in no order. */
  ofProject(project: ApiProject): JobRun[];
  /** Every run of an organization in memory, in no order. */
  ofOrganization(organizationId: string): JobRun[];
  /**
   * One run of a project, from memory, else from the cluster.
   * @throws Failure 503 when it is not in memory and the cluster does not answer
   */
  find(project: ApiProject, runId: string): Promise<JobRun | undefined>;
  /**
   * Stores what a write returned, or what was read live, so that the next read shows it, on this replica and on every
   * other.
   */
  observe(run: JobRun): Promise<JobRun>;
  /**
   * Calls `decide` with the run as it is, and after each change, until it returns something else than undefined; `undefined`
   * means that the run is deleted. After `timeoutMs` it is read live, one last time.
   * @returns undefined when nothing was decided
   * @throws Failure 503 when the cluster does not answer in the end, or this replica stops
   */
  waitFor<T>(
    run: JobRun,
    decide: (run: JobRun | undefined) => T | undefined,
    timeoutMs: number,
  ): Promise<T | undefined>;
}

/** The form of a custom resource's name: no other is read. */
export const RUN_ID = /^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/;

const projectKey = (namespace: string | undefined, project: string): string => `${namespace}/${project}`;

/** Every JobRun of the cluster, in memory, kept by a reflector. */
export class JobRunStore implements JobRuns {
  readonly #client: KubeClient;
  readonly #writes: NewestWrites;
  readonly #store: Store<JobRun>;
  readonly #reflector: Reflector<JobRun>;
  readonly #waiters: RunWaiters;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  constructor({ client, logger, writes = localWrites }: JobRunStoreOptions) {
    this.#client = client;
    this.#writes = writes;
    this.#store = new Store<JobRun>({
      indexers: {
        namespace: byNamespace,
        project: ({ metadata, spec }) => [projectKey(metadata.namespace, spec.projectRef.name)],
      },
      onHandlerError: (error) => logger.error({ err: error }, "run subscriber failed"),
    });
    this.#waiters = new RunWaiters(this.#store);
    this.#reflector = new Reflector<JobRun>({
      client,
      resource: jobRunResource,
      store: this.#store,
      listTimeoutMs: LIST_TIMEOUT_MS,
      events: {
        onError: ({ error, delayMs }) => logger.warn({ err: error, delayMs }, "runs cannot be watched"),
      },
    });
  }

  /** Begins to list and watch; does not wait. */
  start(): void {
    this.#running ??= this.#reflector.run(this.#stop.signal);
  }

  /** Ends every wait: those who wait answer 503, and their clients try again elsewhere. */
  endWaits(): void {
    this.#waiters.end();
  }

  async stop(): Promise<void> {
    this.endWaits();
    this.#stop.abort();
    await this.#running;
  }

  /** Whether every run was read once. */
  get hasSynced(): boolean {
    return this.#store.hasSynced;
  }

  get size(): number {
    return this.#store.size;
  }

  ofProject({ id, resource }: ApiProject): JobRun[] {
    return this.#store.byIndex("project", projectKey(resource.metadata.namespace, id));
  }

  ofOrganization(organizationId: string): JobRun[] {
    return this.#store.byIndex("namespace", organizationNamespace(organizationId));
  }

  async find({ id, resource }: ApiProject, runId: string): Promise<JobRun | undefined> {
    const { namespace } = resource.metadata;
    if (!RUN_ID.test(runId)) {
      return undefined;
    }
    const run = this.#store.get(namespace, runId) ?? (await this.#readLive(namespace, runId));
    return run?.spec.projectRef.name === id ? run : undefined;
  }

  async observe(run: JobRun): Promise<JobRun> {
    this.#store.observe(run);
    const organizationId = organizationOfNamespace(run.metadata.namespace ?? "");
    const { resourceVersion } = run.metadata;
    if (organizationId && resourceVersion) {
      await this.#writes.publish(organizationId, resourceVersion, "jobRuns");
    }
    return run;
  }

  async waitFor<T>(
    run: JobRun,
    decide: (run: JobRun | undefined) => T | undefined,
    timeoutMs: number,
  ): Promise<T | undefined> {
    const decided = await this.#waiters.wait(run, decide, timeoutMs);
    if (decided !== undefined) {
      return decided;
    }
    if (this.#waiters.ended) {
      throw failures.clusterUnavailable(new Error("this replica stops"));
    }
    // The watch may be behind.
    const { namespace, name, uid } = run.metadata;
    const live = await this.#readLive(namespace, name);
    return decide(live?.metadata.uid === uid ? live : undefined);
  }

  hasSeen(resourceVersion: string): boolean {
    const seen = this.#store.resourceVersion;
    return seen !== undefined && compareResourceVersions(seen, resourceVersion) >= 0;
  }

  waitUntilSeen(resourceVersion: string, timeoutMs: number): Promise<boolean> {
    return this.#store.waitForResourceVersion(resourceVersion, { timeoutMs });
  }

  async #readLive(namespace: string | undefined, name: string): Promise<JobRun | undefined> {
    try {
      const live = await this.#client.getOrUndefined<JobRun>(jobRunResource, { namespace, name });
      if (live) {
        this.#store.observe(live);
      }
      return live;
    } catch (error) {
      throw error instanceof KubeError ? failures.clusterUnavailable(error) : error;
    }
  }
}
