import { equalDecimal, parseDecimal } from "@slipway/crds";
import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import { withPartitions } from "./partitions.ts";
import { keepCyclesOpen, openCycle } from "./settlements.ts";

/** An hour of a project's persistent storage. Money is BRL cents, a plain decimal. */
export interface StorageHour {
  organization_id: string;
  project_id: string;
  project_uid: string;
  /** Which hour of the project's; with `project_uid` it names the charge. Counted by the caller, from 0 up. */
  hour_index: number;
  /** When the hour began; it lies in the cycle that is charged. */
  from: Date;
  gb: number;
  price_per_gb_hour: string;
  /** Exactly `gb` times `price_per_gb_hour`. */
  amount: string;
}

export interface RecordedStorageHour {
  project_uid: string;
  hour_index: number;
  /** As of a run: see {@link RecordedJobRun}. A `refused` hour is older than what the ledger still knows. */
  outcome: "recorded" | "already" | "differs" | "refused";
}

/** Most hours of one transaction. */
const MAX_BATCH = 1_000;

/**
 * Writes hours of storage with their charges. Existing rows stay unchanged, so a batch whose answer was lost
 * is simply sent again.
 *
 * @returns an outcome for every row, in their order
 * @throws when the database is away or the answer got lost, or when a row breaks a rule of the ledger: nothing of its batch of
 *   1,000 is recorded then
 */
export async function recordStorageCharges(
  ledger: Ledger,
  rows: readonly StorageHour[],
): Promise<RecordedStorageHour[]> {
  const results: RecordedStorageHour[] = [];
  for (let start = 0; start < rows.length; start += MAX_BATCH) {
    const batch = rows.slice(start, start + MAX_BATCH);
    const hours = batch.map(({ from }) => from);
    const inserted = await withPartitions(ledger, hours, () => insert(ledger, batch));
    results.push(...(await compare(ledger, batch, inserted)));
  }
  return results;
}

/** Keys of the hours that this call inserted. */
async function insert(ledger: Ledger, rows: readonly StorageHour[]): Promise<Set<string>> {
  const hours = rows.map(({ from, ...row }) => ({ ...row, hour_started_at: from }));
  const inserted = await ledger
    .transaction()
    .setIsolationLevel("read committed")
    .execute(async (transaction) => {
      await keepCyclesOpen(transaction);
      return sql<Named>`
        with inserted as (
          insert into storage_hours (organization_id, project_id, project_uid, hour_index, hour_started_at, gb,
            price_per_gb_hour, amount)
          select organization_id, project_id, project_uid, hour_index, hour_started_at, gb, price_per_gb_hour, amount
          from json_populate_recordset(null::storage_hours, ${JSON.stringify(hours)})
          where hour_started_at >= coalesce((select due_before from retirements), '-infinity')
          order by organization_id, project_uid, hour_index
          on conflict do nothing
          returning *
        ), charged as (
          insert into charges (organization_id, kind, project_id, key, due_at, cycle_start, settle_cycle, amount)
          select organization_id, 'storage', project_id, project_uid || '/' || hour_index, hour_started_at,
            billing_cycle(hour_started_at), ${openCycle(sql`billing_cycle(hour_started_at)`)}, amount
          from inserted
        )
        select organization_id, project_uid, hour_index from inserted`.execute(transaction);
    });
  return new Set(inserted.rows.map(keyOf));
}

async function compare(
  ledger: Ledger,
  rows: readonly StorageHour[],
  inserted: Set<string>,
): Promise<RecordedStorageHour[]> {
  const keys = rows.map(({ organization_id, project_uid, hour_index }) => ({
    organization_id,
    project_uid,
    hour_index,
  }));
  const found = await sql<StorageHour>`
    select h.organization_id, h.project_id, h.project_uid, h.hour_index, h.hour_started_at as "from", h.gb::float8 as gb,
      h.price_per_gb_hour::text as price_per_gb_hour, h.amount::text as amount
    from json_populate_recordset(null::storage_hours, ${JSON.stringify(keys)}) g
    join storage_hours h using (organization_id, project_uid, hour_index)`.execute(ledger);
  const stored = new Map(found.rows.map((row) => [keyOf(row), row]));
  return rows.map((given) => {
    const { project_uid, hour_index } = given;
    const there = stored.get(keyOf(given));
    if (there === undefined) {
      return { project_uid, hour_index, outcome: "refused" };
    }
    if (!equal(there, given)) {
      return { project_uid, hour_index, outcome: "differs" };
    }
    return { project_uid, hour_index, outcome: inserted.delete(keyOf(given)) ? "recorded" : "already" };
  });
}

/** The last hour of a project's storage that is charged; undefined when there is none. */
export async function lastStorageHour(
  ledger: Ledger,
  { organizationId, projectUid }: { organizationId: string; projectUid: string },
): Promise<number | undefined> {
  const { rows } = await sql<{ last: number | null }>`
    select max(hour_index) as last from storage_hours
    where organization_id = ${organizationId} and project_uid = ${projectUid}`.execute(ledger);
  return rows[0]?.last ?? undefined;
}

type Named = Pick<StorageHour, "organization_id" | "project_uid" | "hour_index">;

function keyOf({ organization_id, project_uid, hour_index }: Named): string {
  return `${organization_id}/${project_uid}/${hour_index}`;
}

function equal(a: StorageHour, b: StorageHour): boolean {
  return (
    a.project_id === b.project_id &&
    a.from.getTime() === b.from.getTime() &&
    a.gb === b.gb &&
    equalDecimal(parseDecimal(a.price_per_gb_hour), parseDecimal(b.price_per_gb_hour)) &&
    equalDecimal(parseDecimal(a.amount), parseDecimal(b.amount))
  );
}
