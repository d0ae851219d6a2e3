import { KubeError } from "@slipway/controller-runtime";
import { isRunPending, type JobRun, labels, type Project, type ProjectSpec } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import type { ApiProject } from "../projects/api-project.ts";
import { changeProject } from "../projects/change.ts";
import { waitForProject } from "../projects/wait.ts";
import { jobRunResource, projectResource } from "../resources.ts";
import type { Services } from "../services.ts";

/** How long an answer waits for the operator to acknowledge that the schedule is closed: longer than a standby takes over. */
const CLOSED_LIMIT_MS = 25_000;

type ClosingServices = Pick<Services, "kube" | "projects" | "jobRuns" | "domainZone" | "now">;

/**
 * The first steps of deleting a job: closes its schedule, waits until the operator has acknowledged that, so that no run
 * is under way and not visible yet, and then reads live which runs have not ended.
 * @throws Failure 409 when there are such runs: the project is kept, its schedule stays closed; 503 when the operator or
 *   the cluster does not answer
 */
export async function closeJob(
  project: ApiProject,
  services: ClosingServices,
  limitMs = CLOSED_LIMIT_MS,
): Promise<void> {
  const close = (spec: ProjectSpec): ProjectSpec =>
    spec.job === undefined || spec.job.closedAt !== undefined
      ? spec
      : { ...spec, job: { ...spec.job, closedAt: services.now().toISOString() } };
  const { project: closed } = await changeProject(project, services, close);
  await waitForProject(closed, services, isClosed, limitMs);
  await refusePending(project, services);
}

/**
 * Whether the schedule is closed, as the operator has acknowledged. Checked right before the deletion: another call may
 * have opened it again.
 */
export function isClosed({ spec, status }: Project): boolean {
  const closedAt = spec.job?.closedAt;
  const acknowledged = status?.job?.scheduleClosedAt;
  // The acknowledgement may count whole seconds.
  return (
    closedAt !== undefined && acknowledged !== undefined && wholeSecond(acknowledged) >= wholeSecond(closedAt)
  );
}

const wholeSecond = (moment: string): number => Math.floor(Date.parse(moment) / 1_000);

/** @throws Failure 409 for a run that has not ended, or whose charge is not in the ledger */
export async function refusePending(project: ApiProject, services: ClosingServices): Promise<void> {
  const pending = await pendingRuns(project, services).catch((error: unknown) => {
    throw error instanceof KubeError ? failures.clusterUnavailable(error) : error;
  });
  if (pending.length > 0) {
    throw failures.jobRunsPending(pending.some((run) => run?.status?.finishedAt === undefined));
  }
}

/** Live runs that have not ended; undefined for one that only the project's status names. */
async function pendingRuns(
  project: ApiProject,
  { kube, jobRuns }: ClosingServices,
): Promise<(JobRun | undefined)[]> {
  const { namespace, name } = project.resource.metadata;
  const labelSelector = `${labels.project}=${name}`;
  const listed = await kube.listAll<JobRun>(jobRunResource, { namespace, labelSelector });
  // A manual run may lack the label until the operator has admitted it.
  const names = new Set(listed.map(({ metadata }) => metadata.name));
  const others = jobRuns.ofProject(project).filter(({ metadata }) => !names.has(metadata.name));
  const read = await Promise.all(
    others
      .filter(isRunPending)
      .map(({ metadata }) => kube.getOrUndefined<JobRun>(jobRunResource, { namespace, name: metadata.name })),
  );
  const live = await kube.getOrUndefined<Project>(projectResource, { namespace, name });
  const active = live?.status?.job?.activeRun === undefined ? [] : [undefined];
  return [...[...listed, ...read.filter((run) => run !== undefined)].filter(isRunPending), ...active];
}
