/** The controller's reads of Nodes, and reads and writes of Jobs, Pods and JobRuns. Every write is conditional on the object that was read. */

import {
  hasFinalizer,
  isAlreadyExists,
  isConflict,
  isNotFound,
  type KubernetesObject,
  mergePatch,
  type ObjectRef,
  type Resource,
  refKey,
  refOf,
  resources,
  type Store,
} from "@slipway/controller-runtime";
import { fieldManagers, finalizers, type JobRun } from "@slipway/crds";
import { jobRunResource } from "../../resources.ts";
import { type CronJob, JOB_NAME, type Job, type RunCluster, type RunNode, type RunPod } from "./cluster.ts";
import { BY_JOB, type JobRunStores } from "./stores.ts";

interface Kind<T extends KubernetesObject> {
  resource: Resource;
  store: Store<T>;
}

/** Uids of deleted objects that are kept; forgetting one costs a request. */
const MAX_DELETED = 10_000;

/** Preconditions of a delete. */
export interface DeleteOptions {
  /** Only if it has not changed since it was read. */
  unchanged?: boolean;
}

export class RunObjects {
  readonly runs: Kind<JobRun>;
  readonly jobs: Kind<Job>;
  readonly pods: Kind<RunPod>;
  readonly nodes: Kind<RunNode>;
  readonly #cluster: RunCluster;
  /** Uids that this process has deleted: the watch reports it a moment later. */
  readonly #deleted = new Set<string>();

  constructor(cluster: RunCluster, stores: JobRunStores) {
    this.#cluster = cluster;
    this.runs = { resource: jobRunResource, store: stores.runs };
    this.jobs = { resource: resources.jobs, store: stores.jobs };
    this.pods = { resource: resources.pods, store: stores.pods };
    this.nodes = { resource: resources.nodes, store: stores.nodes };
  }

  /** An object as it is now, which also updates the store; undefined when it was deleted. */
  async live<T extends KubernetesObject>(
    { resource, store }: Kind<T>,
    ref: ObjectRef,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    const live = await this.#cluster.getOrUndefined<T>(resource, ref, { signal });
    if (live) {
      store.observe(live);
    }
    return live;
  }

  /** The project's CronJob as it is now. */
  cronJob(ref: ObjectRef, signal: AbortSignal): Promise<CronJob | undefined> {
    return this.#cluster.getOrUndefined<CronJob>(resources.cronJobs, ref, { signal });
  }

  /** Pods of a Job, oldest first, from the cache. */
  podsOf(ref: ObjectRef): RunPod[] {
    return oldestFirst(this.pods.store.byIndex(BY_JOB, refKey(ref)));
  }

  /** Pods of a Job as they are now, oldest first. */
  async livePodsOf({ namespace, name }: ObjectRef, signal: AbortSignal): Promise<RunPod[]> {
    const selection = { namespace, labelSelector: `${JOB_NAME}=${name}`, signal };
    const pods = await this.#cluster.listAll<RunPod>(resources.pods, selection);
    for (const pod of pods) {
      this.pods.store.observe(pod);
    }
    return oldestFirst(pods);
  }

  /** Creates; undefined when one of the name exists. */
  async create<T extends KubernetesObject>(
    { resource, store }: Kind<T>,
    object: T,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    try {
      const created = await this.#cluster.create<T>(resource, object, {
        fieldManager: fieldManagers.jobRun,
        signal,
      });
      store.observe(created);
      return created;
    } catch (error) {
      if (isAlreadyExists(error)) {
        return undefined;
      }
      throw error;
    }
  }

  /**
   * Merges a patch into an object that has not changed since it was read. After a conflict the store has the new version.
   * @throws KubeError 409 when it has changed, 404 when it was deleted
   */
  async patch<T extends KubernetesObject>(
    kind: Kind<T>,
    object: T,
    patch: { metadata?: object; spec?: object; status?: object },
    options: { signal: AbortSignal; subresource?: string },
  ): Promise<T> {
    const { uid, resourceVersion } = object.metadata ?? {};
    const body = { ...patch, metadata: { ...patch.metadata, uid, resourceVersion } };
    try {
      const written = await this.#cluster.patch<T>(kind.resource, refOf(object), body, {
        fieldManager: fieldManagers.jobRun,
        ...options,
      });
      if (!isBeingRemoved(written)) {
        kind.store.observe(written);
      }
      return written;
    } catch (error) {
      if (isConflict(error)) {
        await this.live(kind, refOf(object), options.signal);
      }
      throw error;
    }
  }

  /** Writes a run's status, when it differs. @throws KubeError 409 when the run has changed since it was read */
  async writeStatus(
    run: JobRun,
    status: NonNullable<JobRun["status"]>,
    signal: AbortSignal,
  ): Promise<JobRun> {
    const patch = mergePatch(run.status, status);
    if (!patch) {
      return run;
    }
    return await this.patch(this.runs, run, { status: patch }, { signal, subresource: "status" });
  }

  /** Removes our finalizer. No error when the object was deleted. */
  async release<T extends KubernetesObject>(
    kind: Kind<T>,
    object: T,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    if (!hasFinalizer(object, finalizers.jobRun)) {
      return object;
    }
    const left = (object.metadata?.finalizers ?? []).filter((name) => name !== finalizers.jobRun);
    try {
      return await this.patch(kind, object, { metadata: { finalizers: left } }, { signal });
    } catch (error) {
      if (isNotFound(error)) {
        return undefined;
      }
      throw error;
    }
  }

  /**
   * Deletes this object and never a namesake; a pod with its own grace period. Does nothing when it is being deleted.
   * @throws KubeError 409 when a precondition fails
   */
  async remove<T extends KubernetesObject>(
    { resource }: Kind<T>,
    object: T,
    signal: AbortSignal,
    { unchanged = false }: DeleteOptions = {},
  ): Promise<void> {
    const { uid = "", resourceVersion, deletionTimestamp } = object.metadata ?? {};
    if (deletionTimestamp || this.#deleted.has(uid)) {
      return;
    }
    await this.#cluster.delete(resource, refOf(object), {
      uid,
      signal,
      ...(unchanged ? { resourceVersion } : {}),
    });
    if (this.#deleted.size >= MAX_DELETED) {
      this.#deleted.clear();
    }
    this.#deleted.add(uid);
  }
}

function oldestFirst(pods: RunPod[]): RunPod[] {
  const age = ({ metadata }: RunPod) => `${metadata.creationTimestamp ?? ""}/${metadata.name}`;
  return pods.toSorted((a, b) => (age(a) < age(b) ? -1 : 1));
}

function isBeingRemoved({ metadata }: KubernetesObject): boolean {
  return metadata?.deletionTimestamp !== undefined && (metadata.finalizers ?? []).length === 0;
}
