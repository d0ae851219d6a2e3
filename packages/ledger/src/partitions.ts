import { sql } from "kysely";
import pg from "pg";
import type { Ledger } from "./connect.ts";

/** Tables with a partition for each month in UTC. */
export const partitionedTables = ["job_runs", "job_run_logs", "charges", "audit_log"] as const;
export type PartitionedTable = (typeof partitionedTables)[number];

/** The first moment of the month that lies `offset` months after the moment's. */
export function monthOf(at: Date, offset = 0): Date {
  return new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + offset, 1));
}

/** `job_runs_2026_01` */
export function partitionName(table: PartitionedTable, month: Date): string {
  return `${table}_${month.toISOString().slice(0, 7).replace("-", "_")}`;
}

/**
 * Makes the partitions of this month and the next. A writer of a row for another month makes its partition then
 * ({@link withPartitions}). There is no default partition: it could never be dropped for its age, and every new month would
 * have to scan it, and fail once it holds a row of that month.
 */
export async function ensurePartitions(ledger: Ledger, now: Date): Promise<void> {
  await ensureMonth(ledger, now);
  await ensureMonth(ledger, monthOf(now, 1));
}

/** Makes the partitions of the month that a moment lies in, unless they exist. Safe to call from several processes. */
async function ensureMonth(ledger: Ledger, at: Date): Promise<void> {
  for (const table of partitionedTables) {
    await ensurePartition(ledger, table, monthOf(at));
  }
}

async function ensurePartition(ledger: Ledger, table: PartitionedTable, month: Date): Promise<void> {
  const name = partitionName(table, month);
  if (await exists(ledger, table, name)) {
    return;
  }
  const committed = ledger.transaction().setIsolationLevel("read committed");
  await committed.execute(async (transaction) => {
    await sql`select pg_advisory_xact_lock(hashtextextended(${`partition ${name}`}, 0))`.execute(transaction);
    if (await exists(transaction, table, name)) {
      return;
    }
    // Made aside and attached: unlike CREATE ... PARTITION OF, that waits for no reader or writer of the others.
    const [parent, partition] = [sql.table(table), sql.table(name)];
    const bounds = [month, monthOf(month, 1)].map((bound) => sql.lit(bound.toISOString()));
    await sql`create table ${partition} (like ${parent} including all)`.execute(transaction);
    await sql`alter table ${parent} attach partition ${partition} for values from (${bounds[0]}) to (${bounds[1]})`.execute(
      transaction,
    );
  });
}

/** Asks the tables: `to_regclass` may answer from what this connection remembers. */
async function exists(ledger: Ledger, table: PartitionedTable, name: string): Promise<boolean> {
  const { rows } = await sql<{ found: boolean }>`
    select exists (select from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = ${table}::regclass and c.relname = ${name}) as found`.execute(ledger);
  return rows[0]?.found ?? false;
}

/**
 * Runs what writes rows of the given moments; when a partition is missing for one of them, makes it and runs that again.
 * Nothing is queried as long as all exist.
 */
export async function withPartitions<T>(
  ledger: Ledger,
  moments: readonly Date[],
  write: () => Promise<T>,
): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!lacksPartition(error)) {
      throw error;
    }
    const months = new Set(moments.map((moment) => monthOf(moment).getTime()));
    for (const month of months) {
      await ensureMonth(ledger, new Date(month));
    }
    return write();
  }
}

/** "No partition of relation found for row" has the code of a broken check, but no check's name. */
function lacksPartition(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === "23514" && error.constraint === undefined;
}
