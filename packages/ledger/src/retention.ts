import { billingCycle } from "@slipway/crds";
import { type RawBuilder, sql, type Transaction } from "kysely";
import { dropUnlessAudited } from "./billing-audit/lock.ts";
import type { Ledger } from "./connect.ts";
import { monthOf, type PartitionedTable, partitionName } from "./partitions.ts";
import type { LedgerSchema } from "./schema.ts";
import { lockCharges } from "./settlements.ts";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** How long runs, and settled charges, are kept. */
export const RETIRED_AFTER_DAYS = 90;
const KEPT_MS = RETIRED_AFTER_DAYS * DAY_MS;
/** How long a log is kept after the billing cycle in which its run started. */
const LOGS_KEPT_MS = DAY_MS;
/** Most rows of one step where the table has no partitions. */
const STEP_ROWS = 10_000;

/** What one call removed. Rows are those that went one by one; a dropped partition's are not counted. */
export interface Retired {
  partitions: string[];
  runs: number;
  charges: number;
  storageHours: number;
  /** Partitions of logs that were emptied, but for the logs of runs that started in the next month. */
  logPartitions: number;
}

/**
 * Removes what need not be kept any more: runs, hours of storage and settled charges older than 90 days, and logs one day
 * after the end of their cycle. Whole partitions are dropped; in the month that the limit lies in, an hour's rows go at a
 * time. While an audit of billing runs, partitions of what it reads stay. What is not settled stays, or not on its invoice where there are any, and so do settlements. From then on the ledger refuses what is older.
 * Interrupted, it continues with the next call.
 */
export async function retireJobRuns(ledger: Ledger, now: Date): Promise<Retired> {
  const before = new Date(now.getTime() - KEPT_MS);
  const retired: Retired = { partitions: [], runs: 0, charges: 0, storageHours: 0, logPartitions: 0 };
  await refuseOlder(ledger, before);
  await retireLogs(ledger, billingCycle(new Date(now.getTime() - LOGS_KEPT_MS)).startedAt, retired);
  retired.runs = await retireTable(ledger, "job_runs", before, undefined, retired);
  const settled = await lastSettled(ledger);
  if (settled === undefined) {
    return retired;
  }
  retired.charges = await retireTable(ledger, "charges", before, settled, retired);
  retired.storageHours = await retireStorageHours(ledger, before);
  return retired;
}

/** Nothing that is due before this is written from now on: it could be a repeat of what is about to go. */
async function refuseOlder(ledger: Ledger, before: Date): Promise<void> {
  await ledger.transaction().execute(async (transaction) => {
    await lockCharges(transaction);
    await sql`
      insert into retirements (due_before) values (${before})
      on conflict (one) do update set due_before = greatest(retirements.due_before, excluded.due_before)`.execute(
      transaction,
    );
  });
}

/** The last of the cycles that are settled for everybody, as a date. They are settled in order. */
async function lastSettled(ledger: Ledger): Promise<string | undefined> {
  const { rows } = await sql<{ cycle: string | null }>`
    select max(cycle_start)::text as cycle from billing_cycles where settled_at is not null`.execute(ledger);
  return rows[0]?.cycle ?? undefined;
}

/**
 * Drops the months of the audit log that ended before a moment.
 * @returns their partitions
 */
export async function retireAuditLog(ledger: Ledger, before: Date): Promise<string[]> {
  const old = (await monthsOf(ledger, "audit_log")).filter((month) => monthOf(month, 1) <= before);
  const names = old.map((month) => partitionName("audit_log", month));
  for (const name of names) {
    await drop(ledger, name);
  }
  return names;
}

const ageOf = { job_runs: "scheduled_minute", charges: "due_at" } as const;

/** @internal Whether charges of an organization's settlement may be deleted: it is one up to a cycle, and they are on its invoice where its cycle is to have them and not all are issued. */
export const mayBeRetired = ({
  organizationId,
  cycle,
  settled,
}: Readonly<
  Record<"organizationId" | "cycle" | "settled", RawBuilder<unknown>>
>) => sql`(${cycle} <= ${settled} and not exists (
  select from invoicing f
  where ${cycle} >= f.first_cycle
    and not exists (select from invoice_cycles where cycle_start = ${cycle})
    and not exists (select from invoices i where i.organization_id = ${organizationId} and i.cycle_start = ${cycle})))`;

/** @returns how many rows went one by one. `settled`: only charges that are in a settlement up to this cycle, and for which no invoice is due */
async function retireTable(
  ledger: Ledger,
  table: keyof typeof ageOf,
  before: Date,
  settled: string | undefined,
  retired: Retired,
): Promise<number> {
  const age = sql.ref(ageOf[table]);
  const may =
    settled === undefined
      ? sql`true`
      : mayBeRetired({
          organizationId: sql`r.organization_id`,
          cycle: sql`r.settle_cycle`,
          settled: sql`${settled}::date`,
        });
  let removed = 0;
  for (const month of await monthsOf(ledger, table)) {
    if (month >= before) {
      continue;
    }
    const name = partitionName(table, month);
    const end = monthOf(month, 1);
    if (end <= before && !(await exists(ledger, name, sql`not (${may})`))) {
      // What an audit reads goes with the next call.
      if (await dropUnlessAudited(ledger, name)) {
        retired.partitions.push(name);
      }
      continue;
    }
    const limit = Math.min(end.getTime(), before.getTime());
    for (let from = month.getTime(); from < limit; from += HOUR_MS) {
      const to = new Date(Math.min(from + HOUR_MS, limit));
      removed += await remove(
        ledger,
        before,
        sql`delete from ${sql.table(name)} r where ${age} >= ${new Date(from)} and ${age} < ${to} and ${may}`,
      );
    }
  }
  return removed;
}

/** The last hour of every project stays: the next charge continues after it. */
async function retireStorageHours(ledger: Ledger, before: Date): Promise<number> {
  let removed = 0;
  for (let step = STEP_ROWS; step === STEP_ROWS; removed += step) {
    step = await remove(
      ledger,
      before,
      sql`
        delete from storage_hours where ctid = any (array(
          select h.ctid from storage_hours h
          where h.hour_started_at < ${before} and exists (
            select from storage_hours later where later.organization_id = h.organization_id
              and later.project_uid = h.project_uid and later.hour_index > h.hour_index)
          limit ${STEP_ROWS}))`,
    );
  }
  return removed;
}

/**
 * Removes events of refunds for which no payment was reported before a moment.
 * @returns how many
 */
export async function retireUnmatchedPayments(ledger: Ledger, before: Date): Promise<number> {
  let removed = 0;
  for (let step = STEP_ROWS; step === STEP_ROWS; removed += step) {
    step = await remove(
      ledger,
      before,
      sql`
        delete from payment_events where ctid = any (array(
          select ctid from payment_events where outcome = 'unmatched' and recorded_at < ${before} limit ${STEP_ROWS}))`,
    );
  }
  return removed;
}

/** Deletes from an append-only table, which allows it in a transaction that says up to when. */
async function remove(ledger: Ledger, before: Date, statement: ReturnType<typeof sql>): Promise<number> {
  return ledger.transaction().execute(async (transaction) => {
    await sql`select set_config('slipway.retire_before', ${before.toISOString()}, true)`.execute(transaction);
    const { numAffectedRows = 0n } = await statement.execute(transaction);
    return Number(numAffectedRows);
  });
}

/** Removes the logs of runs that started before the cycle. A log whose run is not known goes by its scheduled minute. */
async function retireLogs(ledger: Ledger, cycle: Date, retired: Retired): Promise<void> {
  for (const month of await monthsOf(ledger, "job_run_logs")) {
    if (month >= cycle) {
      continue;
    }
    const name = partitionName("job_run_logs", month);
    // Runs of this month's schedule that started in a cycle whose logs are kept: the last minute's, as a rule.
    const stay = sql`
      from ${sql.table(name)} l join job_runs r
        using (organization_id, project_id, id, scheduled_minute)
      where r.started_at >= ${cycle} and r.scheduled_minute >= ${month} and r.scheduled_minute < ${monthOf(month, 1)}`;
    const { rows } = await sql<{ all: string; staying: string }>`
      select (select count(*) from ${sql.table(name)}) as all, (select count(*) ${stay}) as staying`.execute(
      ledger,
    );
    const { all, staying } = rows[0] ?? { all: "0", staying: "0" };
    if (staying === "0") {
      await drop(ledger, name);
      retired.partitions.push(name);
    } else if (all !== staying) {
      await ledger.transaction().execute((transaction) => keepOnly(transaction, name, stay));
      retired.logPartitions += 1;
    }
  }
}

/** Empties a partition but for some rows, at the cost of those that stay. */
async function keepOnly(
  transaction: Transaction<LedgerSchema>,
  name: string,
  stay: ReturnType<typeof sql>,
): Promise<void> {
  await sql`lock table ${sql.table(name)} in access exclusive mode`.execute(transaction);
  await sql`create temporary table staying_logs on commit drop as select l.* ${stay}`.execute(transaction);
  await sql`truncate ${sql.table(name)}`.execute(transaction);
  await sql`insert into ${sql.table(name)} select * from staying_logs`.execute(transaction);
}

/** Months of which a table has a partition, oldest first. */
async function monthsOf(ledger: Ledger, table: PartitionedTable): Promise<Date[]> {
  const { rows } = await sql<{ name: string }>`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = ${table}::regclass order by c.relname`.execute(ledger);
  return rows.map(({ name }) => new Date(`${name.slice(-7).replace("_", "-")}-01T00:00:00Z`));
}

async function exists(ledger: Ledger, table: string, condition: ReturnType<typeof sql>): Promise<boolean> {
  const { rows } = await sql<{ found: boolean }>`
    select exists (select from ${sql.table(table)} r where ${condition}) as found`.execute(ledger);
  return rows[0]?.found ?? false;
}

async function drop(ledger: Ledger, table: string): Promise<void> {
  await sql`drop table if exists ${sql.table(table)}`.execute(ledger);
}
