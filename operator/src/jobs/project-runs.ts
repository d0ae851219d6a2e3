/** Runs that a job's deletion has to wait for. */

import type { KubeClient } from "@slipway/controller-runtime";
import { isRunPending, type JobRun, labels, type Project } from "@slipway/crds";
import { jobRunResource, projectResource } from "../resources.ts";

/**
 * Whether a project that is being deleted has a run to wait for, read live. The slot first: once a Project is being
 * deleted nobody takes it, for that needs the Project's version of before; and whoever has it makes the JobRun.
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
  // One that was asked for with kubectl has no label until somebody has looked at it.
  return (
    labelled.some(isRunPending) || (await runsOf({ namespace, name }, client, signal)).some(isRunPending)
  );
}

/** Every run of a project that is there, read live. */
export async function runsOf(
  { namespace, name }: { namespace?: string; name: string },
  client: KubeClient,
  signal: AbortSignal,
): Promise<JobRun[]> {
  const all = await client.listAll<JobRun>(jobRunResource, { namespace, signal });
  return all.filter(({ spec }) => spec.projectRef.name === name);
}
