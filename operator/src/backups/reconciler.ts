/** Reconciles one backup, from its request to its deletion. */

import {
  controllerOf,
  type EventRecorder,
  ensureFinalizer,
  type KubeClient,
  type KubernetesObject,
  objectReconciler,
  type Reconciler,
  type Result,
  removeFinalizer,
  resources,
  type Store,
} from "@slipway/controller-runtime";
import { type Backup, type BackupConditionCatalog, fieldManagers, finalizers, labels } from "@slipway/crds";
import type { Clock, Logger } from "@slipway/process";
import { backupResource } from "../resources.ts";
import type { BackupMetrics } from "./metrics.ts";
import { BackupRetention, type RetentionDependencies } from "./retention.ts";
import { type BackupContext, BackupRunner, isActive, type RunnerDependencies } from "./runner.ts";
import type { BackupStore } from "./store.ts";

export interface BackupDependencies extends RunnerDependencies, RetentionDependencies {
  client: KubeClient;
  recorder: EventRecorder;
  log: Logger;
  backups: Store<Backup>;
}

/** How often a deletion checks what it waits for, in milliseconds. */
const DELETION_POLL_INTERVAL_MS = 1_000;

export function backupReconciler(deps: BackupDependencies): Reconciler {
  const { client, clock, recorder, backups: store } = deps;
  const runner = new BackupRunner(deps);
  const retention = new BackupRetention(deps);
  const options = { client, resource: backupResource, store, fieldManager: fieldManagers.backup };
  const reconcile = objectReconciler<Backup, BackupConditionCatalog>({
    ...options,
    clock,
    recorder,
    reconcile: (backup, context) => {
      if (backup.metadata.deletionTimestamp) {
        return remove(backup, context, deps);
      }
      return isActive(backup) ? runner.run(backup, context) : retention.reconcile(backup, context);
    },
    // A store's error is shown in the status while the backup is retried.
    summarize: (backup, status, _, outcome) => {
      if (isActive({ ...backup, status }) && outcome.kind === "retryable") {
        status.message = outcome.message;
      }
    },
  });
  return async (ref, context) => {
    const backup = store.get(ref.namespace, ref.name);
    if (backup) {
      await ensureFinalizer(backup, finalizers.backup, { ...options, signal: context.signal });
    }
    return reconcile(ref, context);
  };
}

/** First stops what reads or writes it, then removes what is stored, and the finalizer last. */
async function remove(
  backup: Backup,
  context: BackupContext,
  deps: BackupDependencies,
): Promise<Result | undefined> {
  const { conditions, signal, status } = context;
  const { client, backups, settings } = deps;
  const wait = (message: string) => {
    conditions.set({ type: "Ready", status: "False", reason: "DeletingData", message });
    return { requeueAfterMs: DELETION_POLL_INTERVAL_MS };
  };
  const jobs = await liveJobs(backup, client, signal);
  if (jobs.some((job) => controllerOf(job)?.kind === "Project" && !hasEnded(job))) {
    return wait("A new project is being made from it.");
  }
  const own = jobs.filter((job) => controllerOf(job)?.kind === "Backup" && !isErasing(job));
  for (const { metadata } of own) {
    const { name = "", namespace, uid } = metadata ?? {};
    // In the foreground: a deleted Job has no pod that still writes.
    await client.delete(
      resources.jobs,
      { name, namespace },
      { uid, signal, propagationPolicy: "Foreground" },
    );
  }
  if (own.length > 0) {
    return wait("Its pods are being stopped.");
  }
  if (status.startedAt !== undefined) {
    if (!settings()) {
      return wait("Backups are switched off on this platform: nobody can remove what is stored.");
    }
    const remaining = await eraseStored(backup, context, deps);
    if (remaining) {
      return wait(remaining);
    }
  }
  conditions.set({ type: "Ready", status: "False", reason: "DeletingData" });
  await removeFinalizer(backup, finalizers.backup, {
    client,
    resource: backupResource,
    store: backups,
    fieldManager: fieldManagers.backup,
    signal,
  });
  return undefined;
}

type LiveJob = KubernetesObject & { status?: { conditions?: { type: string; status: string }[] } };

function liveJobs({ metadata }: Backup, client: KubeClient, signal: AbortSignal): Promise<LiveJob[]> {
  const labelSelector = `${labels.backup}=${metadata.name}`;
  return client.listAll<LiveJob>(resources.jobs, { namespace: metadata.namespace, labelSelector, signal });
}

const hasEnded = ({ status }: LiveJob) =>
  status?.conditions?.some((one) => one.status === "True" && /^(Complete|Failed)$/.test(one.type)) ?? false;

const isErasing = ({ metadata }: LiveJob) => metadata?.name?.endsWith("-erase") === true;

export interface EraseDependencies {
  clock: Clock;
  log: Logger;
  metrics: Pick<BackupMetrics, "missing">;
  store: (backup: Backup) => BackupStore;
}

const ERASING = "What is stored is being removed.";

/**
 * Called until it returns undefined; `status.eraseStartedAt` is written in between.
 * @returns what is waited for, for people
 */
export async function eraseStored(
  backup: Backup,
  { event, signal, status }: Pick<BackupContext, "event" | "signal" | "status">,
  { clock, log, metrics, store }: EraseDependencies,
): Promise<string | undefined> {
  // Once the status has the start of the removal, a missing file is no fault.
  if (status.eraseStartedAt !== undefined) {
    return store(backup).erase(backup, signal);
  }
  if (status.phase === "succeeded" && (await store(backup).has(backup, signal)) === false) {
    const { location } = status;
    event(
      "Warning",
      "DataMissing",
      `What was stored is not there any more (${location}): it was removed by others.`,
    );
    metrics.missing();
    log.error({ backup: backup.metadata.name, location }, "a good backup is not where it was stored");
  }
  status.eraseStartedAt = clock.now().toISOString();
  return ERASING;
}
