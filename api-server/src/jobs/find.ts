import { billingCycle, type JobRun } from "@slipway/crds";
import { findJobRun, type JobRunRow } from "@slipway/ledger";
import { failures } from "../errors/catalog.ts";
import { withLedgerErrors } from "../ledger/availability.ts";
import type { ApiProject } from "../projects/api-project.ts";
import type { Services } from "../services.ts";
import { type Run, runOfResource, runOfRow } from "./run.ts";

/** A run, and where it is known from. */
export interface FoundRun {
  run: Run;
  /** Its custom resource, until some minutes after its end. */
  resource?: JobRun;
  /** Its row in the ledger, where that was read. */
  row?: JobRunRow;
}

type FindServices = Pick<Services, "jobRuns" | "ledger" | "now">;

/** What the ledger has of a run. @throws Failure 503 */
export async function findRow(
  { organizationId, id: projectId }: ApiProject,
  runId: string,
  { ledger }: Pick<Services, "ledger">,
): Promise<JobRunRow | undefined> {
  return withLedgerErrors(() => findJobRun(ledger, { organizationId, projectId, id: runId }));
}

/**
 * A run that has started in the current billing cycle.
 * @throws Failure 404 for any other, 503 when it is not in memory and the ledger is unavailable
 */
export async function findInCycle(
  project: ApiProject,
  runId: string,
  services: FindServices,
): Promise<FoundRun> {
  const found = await findAny(project, runId, services);
  const { startedAt: from, nextResetAt: to } = billingCycle(services.now());
  if (!found || found.run.startedAt < from || found.run.startedAt >= to) {
    throw failures.jobRunNotFound(runId);
  }
  return found;
}

async function findAny(
  project: ApiProject,
  runId: string,
  services: FindServices,
): Promise<FoundRun | undefined> {
  const resource = await services.jobRuns.find(project, runId);
  const run = resource && runOfResource(resource);
  if (run) {
    return { run, resource };
  }
  const row = await findRow(project, runId, services);
  return row && { run: runOfRow(row), row };
}
