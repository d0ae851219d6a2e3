import { billingCycle, type JobRun, type JobRunPhase } from "@slipway/crds";
import { findJobRun, type JobRunRow, listJobRuns, type PendingJobRun, sumJobRuns } from "@slipway/ledger";
import { failures } from "../errors/catalog.ts";
import { withLedgerErrors } from "../ledger/availability.ts";
import type { ApiProject } from "../projects/api-project.ts";
import type { Services } from "../services.ts";
import { type Run, runOfResource, runOfRow } from "./run.ts";

/** Reads runs of jobs: those in memory, and those in the ledger. */

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

/** Far after the last page of any cycle, and still a whole number that every database accepts. */
const FURTHEST = 1_000_000_000;

type ListServices = Pick<Services, "jobRuns" | "ledger" | "now">;

export interface RunPage {
  runs: Run[];
  /** Of all pages. */
  total: number;
  cycle: { startedAt: Date; nextResetAt: Date };
}

/**
 * One page of the runs that started in the current billing cycle, newest scheduled first: those of the ledger, and those
 * that are not in it yet.
 * @throws Failure 503 when the ledger is unavailable
 */
export async function listRuns(
  query: { page: number; limit: number; status?: JobRunPhase | undefined },
  project: ApiProject,
  services: ListServices,
): Promise<RunPage> {
  const cycle = billingCycle(services.now());
  // Read before the ledger: what is removed from the one by then is in the other.
  const uncharged = services.jobRuns
    .ofProject(project)
    .filter((resource) => resource.status?.chargedAt === undefined)
    .flatMap((resource) => runOfResource(resource) ?? [])
    .filter(({ startedAt }) => startedAt >= cycle.startedAt && startedAt < cycle.nextResetAt);
  const { items, total } = await mergedPage(query, project, services, { uncharged, cycle });
  return { runs: items.map((item) => ("organization_id" in item ? runOfRow(item) : item)), total, cycle };
}

/** What a page needs of a run that the ledger may not have. */
export interface ListedRun {
  id: string;
  scheduledAt: Date;
  status: PendingJobRun["status"];
}

/** One page of the ledger's runs of a cycle with those in their places that it does not have. @throws Failure 503 */
export async function mergedPage<T extends ListedRun>(
  { page, limit, status }: { page: number; limit: number; status?: ListedRun["status"] | undefined },
  { organizationId, id: projectId }: ApiProject,
  { ledger }: Pick<Services, "ledger">,
  { uncharged, cycle }: { uncharged: readonly T[]; cycle: RunPage["cycle"] },
): Promise<{ items: (T | JobRunRow)[]; total: number }> {
  const byId = new Map(uncharged.map((run) => [run.id, run]));
  const { total, items } = await withLedgerErrors(() =>
    listJobRuns(ledger, {
      organizationId,
      projectId,
      from: cycle.startedAt,
      to: cycle.nextResetAt,
      ...(status === undefined ? {} : { status }),
      pending: [...byId.values()].map((run) => ({
        id: run.id,
        scheduled_at: run.scheduledAt,
        status: run.status,
      })),
      offset: Math.min((page - 1) * limit, FURTHEST),
      limit,
    }),
  );
  return { items: items.flatMap((item) => ("pending" in item ? (byId.get(item.id) ?? []) : item)), total };
}

export interface RunTotals {
  /** BRL cents, a decimal. */
  totalAmount: string;
  executedRuns: number;
  billedMinutes: number;
  cycle: { startedAt: Date; nextResetAt: Date };
}

/** What the runs that started in the current billing cycle and have ended cost, as the ledger has it. @throws Failure 503 */
export async function sumRuns(
  { organizationId, id: projectId }: ApiProject,
  { ledger, now }: Pick<Services, "ledger" | "now">,
): Promise<RunTotals> {
  const cycle = billingCycle(now());
  const { startedAt: from, nextResetAt: to } = cycle;
  const sums = await withLedgerErrors(() => sumJobRuns(ledger, { organizationId, projectId, from, to }));
  return {
    totalAmount: sums.total_amount,
    executedRuns: sums.executed_runs,
    billedMinutes: sums.billed_minutes,
    cycle,
  };
}
