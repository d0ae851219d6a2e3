/** The Jobs of backups in the cluster: created once, read from the watches, deleted when they have ended. */

import {
  isAlreadyExists,
  type KubeClient,
  type Manager,
  type ObjectRef,
  type OwnerReference,
  refKey,
  resources,
  type Store,
} from "@slipway/controller-runtime";
import { type Backup, fieldManagers, labels } from "@slipway/crds";
import type { Clock } from "@slipway/process";
import type { DatabaseImage } from "../databases/settings.ts";
import type { Result } from "./agent/protocol.ts";
import type { EngineScripts } from "./engines/engine.ts";
import { engineJob } from "./job.ts";
import { type JobState, jobState, podsOf, type WorkJob, type WorkPod } from "./job-state.ts";
import { urlsSecret, type Work } from "./names.ts";
import type { BackupSettings } from "./settings.ts";
import type { BackupStore } from "./store.ts";

export interface WorkStores {
  jobs: Store<WorkJob>;
  pods: Store<WorkPod>;
}

/** Index of pods by `namespace/backup`. */
const BY_BACKUP = "backup";

const ofBackup = ({ metadata }: { metadata: WorkJob["metadata"] }) => {
  const name = metadata.labels?.[labels.backup];
  return name === undefined ? [] : [refKey({ namespace: metadata.namespace, name })];
};

/** Creates the stores; their reflectors start with the manager. */
export function createWorkStores(manager: Manager): WorkStores {
  const labelSelector = labels.backup;
  return {
    jobs: manager.store<WorkJob>(resources.jobs, {
      labelSelector,
      indexers: { [BY_BACKUP]: ofBackup },
      transform: ({ apiVersion, kind, metadata, status }) => ({
        apiVersion,
        kind,
        metadata: { ...metadata, managedFields: undefined },
        status: { conditions: status?.conditions },
      }),
    }),
    pods: manager.store<WorkPod>(resources.pods, {
      labelSelector,
      indexers: { [BY_BACKUP]: ofBackup },
      transform: ({ apiVersion, kind, metadata, status }) => ({
        apiVersion,
        kind,
        metadata: { ...metadata, managedFields: undefined },
        status: { phase: status?.phase, containerStatuses: status?.containerStatuses },
      }),
    }),
  };
}

export interface WorkDependencies {
  client: KubeClient;
  clock: Clock;
  stores: WorkStores;
  /** The store of a backup. */
  store: (backup: Backup) => BackupStore;
  settings: () => BackupSettings | undefined;
}

/** What a Job of an engine does, and to what. */
export interface EngineWork {
  work: Exclude<Work, "erase">;
  job: string;
  backup: Backup;
  owner: OwnerReference;
  scripts: EngineScripts;
  image: DatabaseImage;
  projectId?: string;
  sizeGb: number;
}

export class BackupWork {
  readonly #deps: WorkDependencies;

  constructor(deps: WorkDependencies) {
    this.#deps = deps;
  }

  /** Creates a Job where there is none, and returns its state. @throws Error while backups are switched off */
  async follow(requested: EngineWork, signal: AbortSignal): Promise<JobState> {
    const { client, clock, stores } = this.#deps;
    const ref = refOf(requested);
    const job = stores.jobs.get(ref.namespace, ref.name) ?? (await this.#make(requested, ref, signal));
    const pods = podsOf(
      job,
      stores.pods.byIndex(BY_BACKUP, refKey({ ...ref, name: requested.backup.metadata.name })),
    );
    const state = jobState(job, pods, clock.now());
    if (state.state === "running" && state.partiallyTerminated) {
      const { name, namespace, uid } = state.partiallyTerminated.metadata;
      await client.delete(resources.pods, { name, namespace }, { uid, signal });
    }
    return state;
  }

  /** Commits what a Job has written as the backup. @returns why it is rejected */
  commit(requested: EngineWork, result: Extract<Result, { ok: true }>, signal: AbortSignal) {
    const job = { ...refOf(requested), owner: requested.owner };
    return this.#deps.store(requested.backup).commit(job, requested.backup, result, signal);
  }

  /** Deletes a Job with its pods, and what was created for it. */
  async end(job: { name: string; namespace: string }, signal: AbortSignal): Promise<void> {
    await this.#deps.client.delete(resources.jobs, job, { signal });
    await this.revoke(job, signal);
  }

  /** Deletes the URLs of a Job. */
  async revoke({ name, namespace }: { name: string; namespace: string }, signal: AbortSignal): Promise<void> {
    await this.#deps.client.delete(resources.secrets, { name: urlsSecret(name), namespace }, { signal });
  }

  /** Deletes a Job. @returns whether it is deleted, with all its pods */
  async stop(job: { name: string; namespace: string }, signal: AbortSignal): Promise<boolean> {
    const { client } = this.#deps;
    const live = await client.getOrUndefined<WorkJob>(resources.jobs, job, { signal });
    if (!live) {
      return true;
    }
    const { uid } = live.metadata;
    await client.delete(resources.jobs, job, { uid, signal, propagationPolicy: "Foreground" });
    return false;
  }

  async #make(
    requested: EngineWork,
    ref: ObjectRef & { namespace: string },
    signal: AbortSignal,
  ): Promise<WorkJob> {
    const { client, settings, store, stores } = this.#deps;
    const current = settings();
    if (!current) {
      throw new Error("backups are switched off");
    }
    const live = await client.getOrUndefined<WorkJob>(resources.jobs, ref, { signal });
    if (live) {
      return live;
    }
    const job = { ...ref, owner: requested.owner };
    const place =
      requested.work === "dump"
        ? await store(requested.backup).openWrite(job, requested.backup, requested.sizeGb, signal)
        : await store(requested.backup).openRead(job, requested.backup, signal);
    const wanted = engineJob(
      {
        work: requested.work,
        name: ref.name,
        namespace: ref.namespace,
        backup: requested.backup.metadata.name,
        owner: requested.owner,
        agentImage: current.image,
        place,
        deadlineSeconds: current.deadlineSeconds,
      },
      {
        scripts: requested.scripts,
        image: requested.image,
        projectId: requested.projectId,
        scratchGb: requested.sizeGb,
        sha256: requested.backup.status?.sha256,
        storedBytes: requested.backup.status?.sizeBytes,
      },
    );
    try {
      const options = { fieldManager: fieldManagers.backup, signal };
      const made = (await client.create(resources.jobs, wanted, options)) as WorkJob;
      stores.jobs.observe(made);
      return made;
    } catch (error) {
      if (!isAlreadyExists(error)) {
        throw error;
      }
      return client.get<WorkJob>(resources.jobs, ref, { signal });
    }
  }
}

const refOf = ({ job, backup }: EngineWork) => ({ namespace: backup.metadata.namespace ?? "", name: job });
