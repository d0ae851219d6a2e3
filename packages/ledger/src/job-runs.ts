import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import { runEvent } from "./event-data.ts";
import {
  differences,
  type JobRunKey,
  type JobRunRow,
  jobRunColumns,
  scheduledMinute,
} from "./job-run-rows.ts";
import { withPartitions } from "./partitions.ts";
import { recordInParts } from "./refused-rows.ts";
import { keepCyclesOpen, openCycle } from "./settlements.ts";
import { recordOwnEvents } from "./webhook-events.ts";

/** What became of one row. `row` is the ledger's row; for a rejected one, what was given. */
export interface RecordedJobRun {
  id: string;
  organization_id: string;
  /**
   * `already`: an equal one stood there. `differs`: one stood there that differs in a billing field; it stays.
   * `refused`: it breaks a rule of the ledger, or is older than what the ledger still knows; **nothing is charged**.
   */
  outcome: "recorded" | "already" | "differs" | "refused";
  row: JobRunRow;
  /** For `differs`, which fields; for `refused`, the rule. */
  reason?: string;
}

/** Longest batch of one transaction. */
const MAX_BATCH = 1_000;

/**
 * Writes runs with their charges, in one transaction of at most 1,000, and reads them back after its commit. What stands
 * there already is left alone, so a batch whose answer was lost is simply sent again. A row that the ledger refuses
 * does not hold up the others.
 *
 * @returns an outcome for every row, in their order
 * @throws when the database is away, or the answer got lost: any of the rows may be recorded by then
 */
export async function recordJobRuns(ledger: Ledger, rows: readonly JobRunRow[]): Promise<RecordedJobRun[]> {
  const results: RecordedJobRun[] = [];
  for (let start = 0; start < rows.length; start += MAX_BATCH) {
    results.push(...(await recordBatch(ledger, rows.slice(start, start + MAX_BATCH))));
  }
  return results;
}

async function recordBatch(ledger: Ledger, rows: readonly JobRunRow[]): Promise<RecordedJobRun[]> {
  const results = await recordInParts(rows, {
    record: async (part) => {
      const scheduled = part.map((row) => row.scheduled_at);
      const inserted = await withPartitions(ledger, scheduled, () => insert(ledger, part));
      return compare(ledger, part, inserted);
    },
    refused: (row, { constraint, message }) => [refused(row, constraint ?? message)],
  });
  return results.flat();
}

/** Keys of the runs that this call inserted. */
async function insert(ledger: Ledger, rows: readonly JobRunRow[]): Promise<Set<string>> {
  const inserted = await ledger
    .transaction()
    .setIsolationLevel("read committed")
    .execute(async (transaction) => {
      await keepCyclesOpen(transaction);
      // In the order of the keys, so that two batches with the same runs wait for one another and never in a circle.
      const result = await sql<JobRunRow>`
        with given as (
          select g.*, to_timestamp(floor(extract(epoch from g.scheduled_at) / 60)::bigint * 60) as minute
          from json_populate_recordset(null::job_runs, ${JSON.stringify(rows)}) g
        ), inserted as (
          insert into job_runs (organization_id, project_id, project_uid, id, trigger, scheduled_minute, scheduled_at,
            started_at, finished_at, billed_until, cycle_start, status, billed_minutes, plan, price_per_minute, amount,
            metrics)
          select organization_id, project_id, project_uid, id, trigger, minute, scheduled_at,
            started_at, finished_at, billed_until, billing_cycle(started_at), status, billed_minutes, plan,
            price_per_minute, amount, metrics
          from given
          where minute >= coalesce((select due_before from retirements), '-infinity')
          order by organization_id, project_id, id
          on conflict do nothing
          returning *
        ), charged as (
          insert into charges (organization_id, kind, project_id, key, due_at, cycle_start, settle_cycle, amount)
          select organization_id, 'job_run', project_id, id, scheduled_minute, cycle_start,
            ${openCycle(sql`cycle_start`)}, amount
          from inserted
          order by organization_id, project_id, id
        )
        select organization_id, project_id, id from inserted`.execute(transaction);
      const keys = new Set(result.rows.map(keyOf));
      const own = rows.filter((row) => keys.has(keyOf(row))).map(runEvent);
      await recordOwnEvents(
        transaction,
        own.filter((event) => event !== undefined),
      );
      return keys;
    });
  return inserted;
}

/** Reads the rows back and compares them with what was given. */
async function compare(
  ledger: Ledger,
  rows: readonly JobRunRow[],
  inserted: Set<string>,
): Promise<RecordedJobRun[]> {
  const keys = rows.map((row) => ({
    organization_id: row.organization_id,
    project_id: row.project_id,
    id: row.id,
    scheduled_at: row.scheduled_at,
  }));
  const found = await sql<JobRunRow & { charged: boolean }>`
    select ${jobRunColumns}, c.amount is not distinct from r.amount as charged
    from json_populate_recordset(null::job_runs, ${JSON.stringify(keys)}) g
    join job_runs r on (r.organization_id, r.project_id, r.id) = (g.organization_id, g.project_id, g.id)
      and r.scheduled_minute = to_timestamp(floor(extract(epoch from g.scheduled_at) / 60)::bigint * 60)
    left join charges c on (c.organization_id, c.kind, c.project_id, c.key, c.due_at)
      = (r.organization_id, 'job_run', r.project_id, r.id, r.scheduled_minute)`.execute(ledger);
  const stored = new Map(found.rows.map(({ charged, ...row }) => [keyOf(row), { row, charged }]));
  return rows.map((given) => {
    const there = stored.get(keyOf(given));
    if (there === undefined) {
      return refused(given, "older than what the ledger still knows");
    }
    const { id, organization_id } = given;
    const { row, charged } = there;
    const reason = [...differences(given, row), ...(charged ? [] : ["charge"])].join(", ");
    if (reason !== "") {
      return { id, organization_id, outcome: "differs", row, reason };
    }
    // The first of equal rows in one batch is the one that was recorded.
    return { id, organization_id, outcome: inserted.delete(keyOf(given)) ? "recorded" : "already", row };
  });
}

/** One run, of whatever cycle; undefined when the ledger does not know it. */
export async function findJobRun(ledger: Ledger, key: JobRunKey): Promise<JobRunRow | undefined> {
  const minute = scheduledMinute(key);
  if (minute === undefined) {
    return undefined;
  }
  const { rows } = await sql<JobRunRow>`
    select ${jobRunColumns} from job_runs r
    where r.organization_id = ${key.organizationId} and r.project_id = ${key.projectId}
      and r.id = ${key.id} and r.scheduled_minute = ${minute}`.execute(ledger);
  return rows[0];
}

function keyOf({ organization_id, project_id, id }: JobRunRow): string {
  return `${organization_id}/${project_id}/${id}`;
}

function refused(row: JobRunRow, reason: string): RecordedJobRun {
  return { id: row.id, organization_id: row.organization_id, outcome: "refused", row, reason };
}
