import { billingCycle } from "@slipway/crds";
import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import { type JobRunRow, jobRunColumns, type TerminalJobRunStatus } from "./job-run-rows.ts";

/** A project's runs of one billing cycle: `[from, to)` of `billingCycle`, by the time at which they started. */
export interface JobRunCycleQuery {
  organizationId: string;
  projectId: string;
  from: Date;
  to: Date;
}

/** A run that the caller knows from the cluster and of this cycle; the ledger may not have it yet. */
export interface PendingJobRun {
  id: string;
  scheduled_at: Date;
  /** `pending`: its container has not started, which only the caller knows. */
  status: "pending" | "running" | TerminalJobRunStatus;
}

export interface JobRunListQuery extends JobRunCycleQuery {
  status?: PendingJobRun["status"];
  /** Merged into the list as long as the ledger has no run of the id, of whatever cycle. */
  pending?: readonly PendingJobRun[];
  offset: number;
  limit: number;
}

/** An entry of the list: the ledger's row, or the id of a run that only the caller knows. */
export type JobRunListItem = JobRunRow | { id: string; pending: true };

export interface JobRunList {
  /** All that match, on whatever page. */
  total: number;
  items: JobRunListItem[];
}

/**
 * One page of a cycle's runs, the newest scheduled first, with the pending ones in their places. One statement, so total
 * and page are of one moment.
 *
 * @throws RangeError when `from` and `to` are not those of a billing cycle
 */
export async function listJobRuns(ledger: Ledger, query: JobRunListQuery): Promise<JobRunList> {
  const { organizationId, projectId, status, pending = [], offset, limit } = query;
  const cycle = cycleOf(query);
  const known = sql`r.organization_id = ${organizationId} and r.project_id = ${projectId}`;
  const wanted = status === undefined ? sql`true` : sql`r.status = ${status}`;
  // Of the ledger's runs, `offset - waiting` are on earlier pages: they are skipped in the index, and not sorted.
  const { rows } = await sql<ListedRow>`
    with waiting as (
      select p.id collate "C" as id, p.scheduled_at
      from json_to_recordset(${JSON.stringify(pending)}) p(id text, scheduled_at timestamptz, status text)
      where (${status ?? null}::text is null or p.status = ${status ?? null})
        and not exists (
          select from job_runs r where ${known} and r.id = p.id
            and r.scheduled_minute = to_timestamp(floor(extract(epoch from p.scheduled_at) / 60)::bigint * 60))
    ), counted as (
      select (select count(*) from job_runs r where ${known} and r.cycle_start = ${cycle}::date and ${wanted}) as runs,
        (select count(*) from waiting) as waiting
    ), page as (
      select * from (
        (select r.id, r.scheduled_at, r.scheduled_minute from job_runs r
          where ${known} and r.cycle_start = ${cycle}::date and ${wanted}
          order by r.scheduled_at desc, r.id desc
          offset greatest(0, ${offset}::int - (select waiting from counted))
          limit ${limit}::int + (select waiting from counted))
        union all
        select id, scheduled_at, null from waiting
      ) merged
      order by scheduled_at desc, id desc offset least(${offset}::int, (select waiting from counted)) limit ${limit}
    )
    select (counted.runs + counted.waiting)::int as total, page.id as listed_id,
      page.scheduled_minute is not null as stored, ${jobRunColumns}
    from counted
      left join page on true
      left join job_runs r on ${known} and r.id = page.id and r.scheduled_minute = page.scheduled_minute
    order by page.scheduled_at desc, page.id desc`.execute(ledger);
  return { total: rows[0]?.total ?? 0, items: rows.flatMap(itemOf) };
}

/** `listed_id` is null in the one row of an empty page. */
type ListedRow = JobRunRow & { total: number; listed_id: string | null; stored: boolean };

function itemOf({ total: _, listed_id, stored, ...row }: ListedRow): JobRunListItem[] {
  if (listed_id === null) {
    return [];
  }
  return [stored ? row : { id: listed_id, pending: true }];
}

export interface JobRunSums {
  /** BRL cents, exact. */
  total_amount: string;
  executed_runs: number;
  billed_minutes: number;
}

/**
 * What a cycle's terminal runs cost together.
 * @throws RangeError when `from` and `to` are not those of a billing cycle
 */
export async function sumJobRuns(ledger: Ledger, query: JobRunCycleQuery): Promise<JobRunSums> {
  const { rows } = await sql<JobRunSums>`
    select trim_scale(coalesce(sum(amount), 0))::text as total_amount, count(*)::int as executed_runs,
      coalesce(sum(billed_minutes), 0)::int as billed_minutes
    from job_runs
    where organization_id = ${query.organizationId} and project_id = ${query.projectId}
      and cycle_start = ${cycleOf(query)}::date`.execute(ledger);
  const [sums] = rows;
  if (sums === undefined) {
    throw new Error("an aggregate without a row");
  }
  return sums;
}

/** A cycle's name in the database: its first day. */
function cycleOf({ from, to }: JobRunCycleQuery): string {
  const { startedAt, nextResetAt } = billingCycle(from);
  if (startedAt.getTime() !== from.getTime() || nextResetAt.getTime() !== to.getTime()) {
    throw new RangeError("not a billing cycle");
  }
  return from.toISOString().slice(0, 10);
}
