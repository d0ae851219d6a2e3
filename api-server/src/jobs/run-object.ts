import { API_VERSION, type JobRun, labels, MANAGED_BY, type Project } from "@slipway/crds";

/** The custom resource of a run that is requested. Pure. */

const MINUTE_MS = 60_000;

/** What a one-off run is requested with; a run of a job has neither. */
export type RunRequest = Pick<JobRun["spec"], "command" | "timeoutSeconds">;

/** The requested run. Its id has its minute, so a call that continues an earlier one keeps that. Pure. */
export function runObject(
  project: Project,
  id: string,
  organizationId: string,
  now: Date,
  request: RunRequest = {},
): JobRun {
  const { namespace, name, uid = "" } = project.metadata;
  return {
    apiVersion: API_VERSION,
    kind: "JobRun",
    metadata: {
      name: id,
      namespace,
      labels: {
        [labels.managedBy]: MANAGED_BY,
        [labels.organization]: organizationId,
        [labels.project]: name,
        [labels.type]: project.spec.type,
      },
      ownerReferences: [
        { apiVersion: API_VERSION, kind: "Project", name, uid, controller: true, blockOwnerDeletion: true },
      ],
    },
    spec: {
      projectRef: { name },
      trigger: "manual",
      scheduledAt: scheduledAtOf(id, now).toISOString(),
      ...request,
    },
  };
}

/** When a run of this id was requested: now, in the minute that it names, or else that minute. Pure. */
export function scheduledAtOf(id: string, now: Date): Date {
  const minute = Number(/-([0-9]+)-[a-z0-9]+$/.exec(id)?.[1]);
  const isOfNow = Math.floor(now.getTime() / MINUTE_MS) === minute;
  return isOfNow || Number.isNaN(minute) ? now : new Date(minute * MINUTE_MS);
}
