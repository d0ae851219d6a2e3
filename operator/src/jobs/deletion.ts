/** Deletes a scheduled job: no run is cut short, and none is deleted before its charge is recorded. */

import {
  type KubeClient,
  type KubernetesObject,
  type Resource,
  removeFinalizer,
  resources,
} from "@slipway/controller-runtime";
import { fieldManagers, finalizers, isRunPending, type JobRun, labels, type Project } from "@slipway/crds";
import {
  DELETION_POLL_INTERVAL_MS,
  type DeletionStep,
  liveChildren,
  runDeletionStep,
} from "../projects/deletion.ts";
import type { Remaining } from "../projects/kind.ts";
import type { Finding } from "../projects/status.ts";
import { jobRunResource, projectResource } from "../resources.ts";
import { hasOneOffRuns } from "./runs/run.ts";

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
    (await runDeletionStep(scheduleStep, project, { client }, signal)) ??
    (await removeEnded(project, client, signal)) ??
    (await runDeletionStep(remainsStep, project, { client }, signal)) ??
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

// The runs that a job's deletion waits for, and the Secrets that they still need: all read live.

/**
 * Whether a project that is being deleted has a run to wait for, read live. The slot is read first: once a Project is
 * being deleted no run can acquire it, for that needs an older version of the Project; and its run has a JobRun.
 */
export async function hasPendingRun(
  { metadata: { namespace, name, uid } }: Project,
  client: KubeClient,
  signal: AbortSignal,
): Promise<boolean> {
  const live = await client.getOrUndefined<Project>(projectResource, { namespace, name }, { signal });
  if (live?.metadata.uid === uid && live?.status?.job?.activeRun !== undefined) {
    return true;
  }
  const labelSelector = `${labels.project}=${name}`;
  const labelled = await client.listAll<JobRun>(jobRunResource, { namespace, labelSelector, signal });
  // One that was created with kubectl has no label until its first reconcile.
  return (
    labelled.some(isRunPending) || (await runsOf({ namespace, name }, client, signal)).some(isRunPending)
  );
}

/** Every run of a project, read live. */
export async function runsOf(
  { namespace, name }: { namespace?: string; name: string },
  client: KubeClient,
  signal: AbortSignal,
): Promise<JobRun[]> {
  const all = await client.listAll<JobRun>(jobRunResource, { namespace, signal });
  return all.filter(({ spec }) => spec.projectRef.name === name);
}

/** The parts of a Job that are read here. */
export interface JobSecrets extends KubernetesObject {
  spec?: {
    template?: {
      spec?: {
        imagePullSecrets?: readonly { name?: string }[];
        containers?: readonly { envFrom?: readonly { secretRef?: { name?: string } }[] }[];
      };
    };
  };
  status?: { conditions?: readonly { type: string; status: string }[] };
}

/** Names of the Secrets from which pods of unfinished runs may still start, read live; none for a project that has no runs. */
export async function secretsOfRuns(
  project: Project,
  client: KubeClient,
  signal: AbortSignal,
): Promise<Set<string>> {
  if (project.spec.type === "job") {
    return secretsOfUnfinished(await liveChildren(resources.jobs, project, client, signal));
  }
  if (!hasOneOffRuns(project)) {
    return new Set();
  }
  const { namespace, name } = project.metadata;
  const labelSelector = `${labels.oneOffRun}=${name}`;
  return secretsOfUnfinished(
    await client.listAll<KubernetesObject>(resources.jobs, { namespace, labelSelector, signal }),
  );
}

/** Names of the Secrets from which pods of these Jobs may still start. */
export function secretsOfUnfinished(jobs: readonly KubernetesObject[]): Set<string> {
  return new Set((jobs as readonly JobSecrets[]).filter((job) => !hasEnded(job)).flatMap(namesOf));
}

function hasEnded({ status }: JobSecrets): boolean {
  return (status?.conditions ?? []).some(
    ({ type, status: is }) => is === "True" && (type === "Complete" || type === "Failed"),
  );
}

function namesOf({ spec }: JobSecrets): string[] {
  const { imagePullSecrets = [], containers = [] } = spec?.template?.spec ?? {};
  const variables = containers.flatMap(({ envFrom = [] }) => envFrom.map(({ secretRef }) => secretRef?.name));
  return [...imagePullSecrets.map(({ name }) => name), ...variables].filter((name) => name !== undefined);
}
