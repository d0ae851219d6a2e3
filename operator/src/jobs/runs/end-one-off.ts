/** Ends the one-off runs of an application that is deleted. */

import { isConflict, isNotFound, type KubeClient } from "@slipway/controller-runtime";
import {
  fieldManagers,
  isRunPending,
  type JobRun,
  organizationOfNamespace,
  type Project,
} from "@slipway/crds";
import type { Clock } from "@slipway/process";
import { jobRunResource } from "../../resources.ts";
import { runsOf } from "../deletion.ts";

/**
 * Cancels the runs of a project that have not ended; each is deleted once it has, and is charged.
 * @returns how many exist, read live
 */
export async function endOneOffRuns(
  { metadata: { namespace = "", name } }: Project,
  { client, clock }: { client: KubeClient; clock: Clock },
  signal: AbortSignal,
): Promise<number> {
  if (organizationOfNamespace(namespace) === undefined) {
    return 0;
  }
  const runs = await runsOf({ namespace, name }, client, signal);
  for (const run of runs.filter(isToBeCancelled)) {
    await cancel(run, clock.now(), client, signal);
  }
  return runs.length;
}

const isToBeCancelled = (run: JobRun): boolean =>
  isRunPending(run) && run.status?.finishedAt === undefined && run.spec.cancelRequestedAt === undefined;

/** One that has changed since is read again by the next call. */
async function cancel(
  { metadata }: JobRun,
  now: Date,
  client: KubeClient,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name, uid, resourceVersion } = metadata;
  const patch = { metadata: { uid, resourceVersion }, spec: { cancelRequestedAt: now.toISOString() } };
  try {
    const options = { fieldManager: fieldManagers.project, signal };
    await client.patch<JobRun>(jobRunResource, { namespace, name }, patch, options);
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) {
      throw error;
    }
  }
}
