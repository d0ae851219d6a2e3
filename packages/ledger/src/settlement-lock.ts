import { type RawBuilder, sql, type Transaction } from "kysely";
import type { LedgerSchema } from "./schema.ts";

/*
 * A charge belongs to the settlement of its own cycle, or, when that is closed, to the next one that is open: decided as
 * it is written. Writers share a lock that closing a cycle takes alone, so no charge slips into a closed cycle.
 */

const LOCK = "billing cycles";

/** No cycle is closed before this transaction ends. Comes before the statement that writes: that must see what is closed. */
export async function keepCyclesOpen(transaction: Transaction<LedgerSchema>): Promise<void> {
  await sql`select pg_advisory_xact_lock_shared(hashtextextended(${LOCK}, 0))`.execute(transaction);
}

/** Waits for those who write charges, and keeps them out until this transaction ends: milliseconds, please. */
export async function lockCharges(transaction: Transaction<LedgerSchema>): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${LOCK}, 0))`.execute(transaction);
}

/** The cycle in whose settlement a charge of the given cycle stands, as a date. Cycles are closed in order. */
export function openCycle(cycle: RawBuilder<unknown>): RawBuilder<string> {
  return sql`greatest(${cycle}, (select (max(cycle_start) + interval '1 month')::date from billing_cycles))`;
}
