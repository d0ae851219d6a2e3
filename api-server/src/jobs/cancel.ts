import { setTimeout as sleep } from "node:timers/promises";
import { isConflict, isForbidden, isInvalid, isNotFound, KubeError } from "@slipway/controller-runtime";
import { fieldManagers, isOneOff, isRunNeverStarted, isRunRefused, type JobRun } from "@slipway/crds";
import { failures } from "../errors/catalog.ts";
import type { ApiProject } from "../projects/api-project.ts";
import { jobRunResource } from "../resources.ts";
import type { Services } from "../services.ts";
import { findRow } from "./read.ts";
import { conditionOf, isTerminal, type Run, runOfRow } from "./run.ts";

/** How long an answer waits for the run to end: its 30 s of grace, and what the platform needs to see that it has. */
export const CANCEL_LIMIT_MS = 50_000;
/** Tries to write, while the operator writes to the same run. */
const ATTEMPTS = 20;

type CancelServices = Pick<Services, "jobRuns" | "kube" | "ledger" | "now">;

/** What a cancellation answers. A run that never started is billed nothing. */
export type Cancelled = Required<Pick<Run, "id" | "status" | "billedMinutes">>;

/**
 * Cancels a run and resolves once it has ended, with the state that it came to: `cancelled`, or another one when it ended
 * otherwise. The first request's time is kept and ends the billing; a repeated request waits for the same end.
 * @throws Failure 404 when there is no such run; 409 when it cannot be cancelled safely, or does not end in time; 503
 */
export async function cancelRun(
  project: ApiProject,
  runId: string,
  services: CancelServices,
  limitMs = CANCEL_LIMIT_MS,
): Promise<Cancelled> {
  const requestedAt = services.now();
  const run = await services.jobRuns.find(project, runId);
  if (run === undefined) {
    return endedBefore(project, runId, services);
  }
  const outcome = ended(run) ?? (await stop(run, requestedAt, services, limitMs));
  if (outcome === "unsafe" || outcome === undefined) {
    throw failures.jobRunCancellationUnavailable();
  }
  if (outcome === "refused") {
    throw failures.jobRunNotFound(runId);
  }
  if (outcome !== "gone") {
    await services.jobRuns.observe(outcome);
    return cancelledOf(outcome);
  }
  // It ended, and was charged and removed before we saw it; or it never started, and nothing is left of it.
  const row = await findRow(project, runId, services);
  return row ? cancelledRow(row) : { id: runId, status: "cancelled", billedMinutes: 0 };
}

/** What became of a run: itself once it has ended, or why there is nothing to wait for. */
type Outcome = JobRun | "gone" | "refused" | "unsafe";

function ended(run: JobRun | undefined): Outcome | undefined {
  if (run === undefined) {
    return "gone";
  }
  if (isRunRefused(run)) {
    return "refused";
  }
  if (isTerminal(run.status?.phase) || isRunNeverStarted(run)) {
    return run;
  }
  return conditionOf(run, "CancelUnsafe")?.status === "True" ? "unsafe" : undefined;
}

/** Requests the end of the run, unless it is requested already, and waits for it. */
async function stop(
  run: JobRun,
  requestedAt: Date,
  services: CancelServices,
  limitMs: number,
): Promise<Outcome | undefined> {
  const written = await request(run, requestedAt, services);
  if (typeof written === "string") {
    return written;
  }
  const outcome = ended(written);
  if (outcome !== undefined) {
    return outcome;
  }
  await services.jobRuns.observe(written);
  return services.jobRuns.waitFor(written, ended, limitMs);
}

/** Persists when cancellation was first requested. @returns the live run, or why there is none */
async function request(run: JobRun, requestedAt: Date, { kube }: CancelServices): Promise<JobRun | "gone"> {
  const { namespace, name, uid } = run.metadata;
  const ref = { namespace, name };
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      if (attempt > 0) {
        await sleep(Math.random() * 10 * attempt);
      }
      const live = await kube.getOrUndefined<JobRun>(jobRunResource, ref);
      if (live === undefined || live.metadata.uid !== uid) {
        return "gone";
      }
      if (live.spec.cancelRequestedAt !== undefined || ended(live) !== undefined) {
        return live;
      }
      const { resourceVersion } = live.metadata;
      const patch = {
        metadata: { uid, resourceVersion },
        spec: { cancelRequestedAt: requestedAt.toISOString() },
      };
      try {
        return await kube.patch<JobRun>(jobRunResource, ref, patch, { fieldManager: fieldManagers.api });
      } catch (error) {
        if (isNotFound(error)) {
          return "gone";
        }
        if (!isConflict(error)) {
          throw error;
        }
      }
    }
  } catch (error) {
    throw toFailure(error);
  }
  throw failures.clusterUnavailable(new Error("the run changes without end"));
}

/** A run that is in the ledger alone, of any cycle. */
async function endedBefore(project: ApiProject, runId: string, services: CancelServices): Promise<Cancelled> {
  const row = await findRow(project, runId, services);
  if (!row) {
    throw failures.jobRunNotFound(runId);
  }
  return cancelledRow(row);
}

const cancelledRow = (row: Parameters<typeof runOfRow>[0]): Cancelled => {
  const { id, status, billedMinutes = 0 } = runOfRow(row);
  return { id, status, billedMinutes };
};

const cancelledOf = ({ metadata, spec, status }: JobRun): Cancelled => ({
  id: metadata.name,
  // Without a phase its container never started: a one-off run has failed, and one of a job is no run for other routes.
  status: status?.phase ?? (isOneOff({ spec }) ? "failed" : "cancelled"),
  billedMinutes: status?.billedMinutes ?? 0,
});

function toFailure(error: unknown): unknown {
  if (!(error instanceof KubeError)) {
    return error;
  }
  // The operator grants rights in an organization's namespace while it provisions it.
  if (isForbidden(error)) {
    return failures.organizationRuntimeUnavailable();
  }
  return isInvalid(error) ? failures.internal(error) : failures.clusterUnavailable(error);
}
