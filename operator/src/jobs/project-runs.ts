/** The runs that a job's deletion waits for, and the Secrets that they still need: all read live. */

import { type KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { isRunPending, type JobRun, labels, type Project } from "@slipway/crds";
import { liveChildren } from "../projects/deletion.ts";
import { jobRunResource, projectResource } from "../resources.ts";

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

/** Names of the Secrets from which pods of unfinished runs may still start, read live; none for a project of another type. */
export async function secretsOfRuns(
  project: Project,
  client: KubeClient,
  signal: AbortSignal,
): Promise<Set<string>> {
  if (project.spec.type !== "job") {
    return new Set();
  }
  const jobs: JobSecrets[] = await liveChildren(resources.jobs, project, client, signal);
  return new Set(jobs.filter((job) => !hasEnded(job)).flatMap(namesOf));
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
