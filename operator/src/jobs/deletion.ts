/** Deletes a scheduled job: no run is cut short, and none is deleted before its charge is recorded. */

import {
  type KubeClient,
  type KubernetesObject,
  type Resource,
  removeFinalizer,
  resources,
} from "@slipway/controller-runtime";
import { fieldManagers, finalizers, type Project } from "@slipway/crds";
import {
  DELETION_POLL_INTERVAL_MS,
  type DeletionStep,
  liveChildren,
  runDeletionStep,
} from "../projects/deletion.ts";
import type { Remaining } from "../projects/kind.ts";
import type { Finding } from "../projects/status.ts";
import { jobRunResource } from "../resources.ts";
import { hasPendingRun, runsOf } from "./project-runs.ts";

/** Ends the metering of a project's storage. Returns whether its last charge is recorded. */
export type CloseMetering = (project: Project, signal: AbortSignal) => Promise<boolean>;

export interface JobDeletionDependencies {
  client: KubeClient;
  closeMetering: CloseMetering;
}

const PENDING: Finding = {
  reason: "JobRunsPending",
  message: "A run has not ended yet, or its charge is not recorded.",
};
const ENDED: Finding = { reason: "DeletingChildren", message: "Ended runs are being removed." };
const METERED: Finding = {
  reason: "DeletingChildren",
  message: "The last charge of the storage is being recorded.",
};

const scheduleStep: DeletionStep = {
  delete: [resources.cronJobs],
  pending: [resources.cronJobs],
  waiting: { reason: "DeletingChildren", message: "The schedule is being removed." },
};
const remainsStep: DeletionStep = {
  delete: [resources.persistentVolumeClaims, resources.secrets],
  pending: [resources.persistentVolumeClaims],
  waiting: { reason: "DeletingChildren", message: "The volume is being removed." },
};

/**
 * Deletes as much as is possible in this reconcile.
 * @returns what is waited for, or undefined when nothing is left
 */
export async function removeJob(
  project: Project,
  { client, closeMetering }: JobDeletionDependencies,
  signal: AbortSignal,
): Promise<Remaining | undefined> {
  const waiting =
    ((await hasPendingRun(project, client, signal)) ? PENDING : undefined) ??
    (await runDeletionStep(scheduleStep, project, client, signal)) ??
    (await removeEnded(project, client, signal)) ??
    (await runDeletionStep(remainsStep, project, client, signal)) ??
    (project.spec.storage?.persistent && !(await closeMetering(project, signal)) ? METERED : undefined);
  return waiting && { ...waiting, retryAfterMs: DELETION_POLL_INTERVAL_MS };
}

/**
 * Deletes Jobs, pods and JobRuns of ended runs, and removes finalizers that the controller of runs has not removed yet.
 */
async function removeEnded(
  project: Project,
  client: KubeClient,
  signal: AbortSignal,
): Promise<Finding | undefined> {
  for (const resource of [resources.jobs, resources.pods, jobRunResource]) {
    const left = await endedOf(resource, project, client, signal);
    for (const object of left) {
      await release(object, resource, client, signal);
    }
    if (left.length > 0 && (await endedOf(resource, project, client, signal)).length > 0) {
      return ENDED;
    }
  }
  return undefined;
}

function endedOf(
  resource: Resource,
  project: Project,
  client: KubeClient,
  signal: AbortSignal,
): Promise<KubernetesObject[]> {
  return resource === jobRunResource
    ? runsOf(project.metadata, client, signal)
    : liveChildren(resource, project, client, signal);
}

async function release(
  object: KubernetesObject,
  resource: Resource,
  client: KubeClient,
  signal: AbortSignal,
): Promise<void> {
  const options = { client, resource, fieldManager: fieldManagers.project, signal };
  await removeFinalizer(object, finalizers.jobRun, options);
  const { name = "", namespace, uid, deletionTimestamp } = object.metadata ?? {};
  if (!deletionTimestamp) {
    await client.delete(resource, { name, namespace }, { uid, signal });
  }
}
