import {
  isAlreadyExists,
  isConflict,
  isForbidden,
  type KubeClient,
  KubeError,
} from "@slipway/controller-runtime";
import {
  fieldManagers,
  isOneOff,
  type JobRun,
  jobRunReasons,
  ONE_OFF_ACTIVE_MAX,
  type Project,
  projectConditions,
} from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import type { Failure } from "../errors/failure.ts";
import type { ApiProject } from "../projects/api-project.ts";
import { waitForProject } from "../projects/wait.ts";
import { jobRunResource, projectResource } from "../resources.ts";
import type { Services } from "../services.ts";
import { limitReached, RUN_LIMIT_REACHED, reachedLimit } from "./one-off-limits.ts";
import { conditionOf, isTerminal } from "./run.ts";
import { type RunRequest, runObject } from "./run-object.ts";

/** Starts runs of jobs: creates a JobRun, and waits until the operator has admitted it. */

/** How long an answer waits for the operator to decide: longer than a standby takes over from one that was killed (its lease is 15 s). */
const DECISION_LIMIT_MS = 25_000;

type StartServices = Pick<Services, "catalog" | "jobRuns" | "kube" | "now" | "projects">;

/** A run that was admitted. */
export interface StartedRun {
  id: string;
  scheduledAt: Date;
}

/**
 * Requests a run of this id, or continues with one that was requested before, and resolves once the operator has admitted it.
 * @param id as `newManualRunId` generates it
 * @throws Failure 409 when a run is active, or the project runs nothing now; 503 when the operator does not decide
 */
export async function startRun(
  project: ApiProject,
  id: string,
  services: StartServices,
  { limitMs = DECISION_LIMIT_MS, ...request }: RunRequest & { limitMs?: number } = {},
): Promise<StartedRun> {
  const began = performance.now();
  const run = await create(project, { id, request }, services, limitMs);
  await services.jobRuns.observe(run);
  // One timeout for both waits: meanwhile a call keeps the lock of its key.
  const leftMs = Math.max(0, limitMs - (performance.now() - began));
  const decided = await services.jobRuns.waitFor(run, decision, leftMs);
  if (decided === undefined) {
    await withdraw(run, services);
  } else if (decided !== "admitted") {
    throw decided.code === RUN_LIMIT_REACHED ? limitReached(project, services, id) : decided;
  }
  return { id, scheduledAt: new Date(run.spec.scheduledAt) };
}

/** The operator's decision on a run. */
function decision(run: JobRun | undefined): "admitted" | Failure | undefined {
  // Admitted, ended and deleted, or deleted by hand: the cause is not known, and nothing runs.
  if (run === undefined) {
    return failures.operatorUnavailable();
  }
  const admitted = conditionOf(run, "Admitted");
  if (admitted?.status === "True" || isTerminal(run.status?.phase)) {
    return "admitted";
  }
  return admitted?.status === "False" ? refusal(admitted.reason, isOneOff(run)) : undefined;
}

/** Why there is no run, by the reason of the condition. */
function refusal(reason: string, isOneOff: boolean): Failure {
  switch (reason) {
    case jobRunReasons.Overlap:
      return failures.jobRunActive();
    case jobRunReasons.Paused:
      return failures.projectPaused();
    case jobRunReasons.ScheduleClosed:
      return failures.jobScheduleClosed();
    case jobRunReasons.ProjectGone:
      return failures.projectAlreadyDeleted();
    case jobRunReasons.NotDeployed:
      return failures.projectNotDeployed();
    case jobRunReasons.TooManyRuns:
      return failures.runLimitReached("project", ONE_OFF_ACTIVE_MAX.project);
    default:
      return isOneOff ? failures.runNotAccepted() : failures.jobNotAccepted();
  }
}

/** @throws Failure 409 by what the project is now, 503 when the operator has not reconciled it, before anything is written */
async function create(
  project: ApiProject,
  { id, request }: { id: string; request: RunRequest },
  services: StartServices,
  limitMs: number,
): Promise<JobRun> {
  const { kube, now } = services;
  const { namespace, name } = project.resource.metadata;
  try {
    const live = await kube.getOrUndefined<Project>(projectResource, { namespace, name });
    if (live === undefined) {
      throw failures.projectNotFound();
    }
    const kept = await kube.getOrUndefined<JobRun>(jobRunResource, { namespace, name: id });
    if (kept) {
      return kept;
    }
    refuseBy(live);
    // Last, as all refusals of the platform's own.
    if (request.command === undefined && !services.catalog.current.jobsEnabled) {
      throw failures.scheduledJobsUnavailable();
    }
    if (request.command !== undefined) {
      refuseOneOff(live, project, services);
    }
    // It would refuse a run of a project that it has not validated, such as one that was created a moment ago.
    await waitForProject(project, services, isJudged, limitMs);
    return await createOrKeep(kube, runObject(live, id, project.organizationId, now(), request));
  } catch (error) {
    if (!(error instanceof KubeError)) {
      throw error;
    }
    // The operator grants rights in an organization's namespace while it provisions it.
    if (isForbidden(error)) {
      throw failures.organizationRuntimeUnavailable();
    }
    throw failures.clusterUnavailable(error);
  }
}

/** The operator refuses the same; this answers immediately. */
function refuseBy({ metadata, spec, status }: Project): void {
  if (metadata.deletionTimestamp !== undefined) {
    throw failures.projectAlreadyDeleted();
  }
  if (spec.job?.closedAt !== undefined) {
    throw failures.jobScheduleClosed();
  }
  if (spec.paused) {
    throw failures.projectPaused();
  }
  if (status?.job?.activeRun !== undefined) {
    throw failures.jobRunActive();
  }
}

function refuseOneOff({ status }: Project, project: ApiProject, services: StartServices): void {
  if (!status?.deployments?.some((deployment) => deployment.status === "succeeded")) {
    throw failures.projectNotDeployed();
  }
  const reached = reachedLimit(project, services);
  if (reached) {
    throw reached;
  }
}

/** Whether the operator has accepted the project, or has refused it as it is now. */
function isJudged({ metadata: { generation = 0 }, status }: Project): boolean {
  const accepted = status?.conditions?.find(({ type }) => type === projectConditions.Accepted);
  return accepted?.status === "True" || (accepted?.observedGeneration ?? -1) >= generation;
}

async function createOrKeep(kube: KubeClient, run: JobRun): Promise<JobRun> {
  try {
    return await kube.create<JobRun>(jobRunResource, run, { fieldManager: fieldManagers.api });
  } catch (error) {
    if (!isAlreadyExists(error)) {
      throw error;
    }
    const { namespace, name } = run.metadata;
    return kube.get<JobRun>(jobRunResource, { namespace, name });
  }
}

/**
 * Deletes a run that the operator has not decided on; one that was decided in the last moment stays.
 * @throws Failure 503, unless it was admitted after all
 */
async function withdraw(run: JobRun, { kube }: StartServices): Promise<void> {
  const { namespace, name } = run.metadata;
  const ref = { namespace, name };
  for (let attempt = 0; attempt < 3; attempt += 1) {
    const live = await kube.getOrUndefined<JobRun>(jobRunResource, ref).catch((error: unknown) => {
      throw failures.clusterUnavailable(error);
    });
    const decided = live && decision(live);
    if (decided === "admitted") {
      return;
    }
    if (decided !== undefined || live === undefined) {
      throw decided ?? failures.operatorUnavailable();
    }
    try {
      const { uid, resourceVersion } = live.metadata;
      await kube.delete(jobRunResource, ref, { uid, resourceVersion });
      throw failures.operatorUnavailable();
    } catch (error) {
      if (!isConflict(error)) {
        throw error instanceof KubeError ? failures.clusterUnavailable(error) : error;
      }
    }
  }
  throw failures.operatorUnavailable();
}
