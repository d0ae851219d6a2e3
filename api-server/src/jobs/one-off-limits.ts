import { isOneOff, isRunPending, type JobRun, ONE_OFF_ACTIVE_MAX, oneOffLimit } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import type { Failure } from "../errors/failure.ts";
import type { ApiProject } from "../projects/api-project.ts";
import type { Services } from "../services.ts";

/** Bounds of one-off runs. The operator enforces them; the runs in memory show them before anything is created. */

export const RUN_LIMIT_REACHED = "RUN_LIMIT_REACHED";

type LimitServices = Pick<Services, "catalog" | "jobRuns">;

/**
 * The bound that active runs have reached.
 * @param but id of a run that does not count
 */
export function reachedLimit(
  project: ApiProject,
  services: LimitServices,
  but?: string,
): Failure | undefined {
  const { jobRuns } = services;
  const isActive = (run: JobRun) =>
    isOneOff(run) && isRunPending(run) && run.status?.finishedAt === undefined && run.metadata.name !== but;
  const limit = limitOf(project, services);
  if (jobRuns.ofProject(project).filter(isActive).length >= limit) {
    return failures.runLimitReached("project", limit);
  }
  const { organization } = ONE_OFF_ACTIVE_MAX;
  return jobRuns.ofOrganization(project.organizationId).filter(isActive).length >= organization
    ? failures.runLimitReached("organization", organization)
    : undefined;
}

/** The bound for which the operator has refused a run: the project's, where fewer are active by now. */
export const limitReached = (project: ApiProject, services: LimitServices, but: string): Failure =>
  reachedLimit(project, services, but) ?? failures.runLimitReached("project", limitOf(project, services));

/** By the plan of the version that serves, as the operator has it. */
function limitOf({ resource: { status } }: ApiProject, { catalog }: LimitServices): number {
  const serving = status?.deployments?.find((deployment) => deployment.status === "succeeded");
  return oneOffLimit(catalog.current.httpPlans.find(({ plan }) => plan === serving?.settings.plan));
}
