import { billingCycle } from "@slipway/crds";
import { type RawBuilder, sql, type Transaction } from "kysely";
import type { Ledger } from "./connect.ts";
import type { LedgerSchema } from "./schema.ts";

/** What an organization was charged for a billing cycle. `total` = `carry_in` + its charges = `charged_cents` + `carry_out`. */
export interface Settlement {
  organization_id: string;
  cycle_start: Date;
  /** BRL cents, exact: the fraction that the cycle before left. */
  carry_in: string;
  /** BRL cents, exact. */
  total: string;
  /** The whole cents of it. */
  charged_cents: bigint;
  /** The rest: less than a cent. */
  carry_out: string;
  settled_at: Date;
}

/** How long a cycle rests before it is settled: its last runs have ended and are charged by then. */
const REST_MS = 2 * 3_600_000;

/** Whether a cycle may be settled: two hours after its end. */
export function maySettle(cycleStart: Date, now: Date): boolean {
  return now.getTime() >= billingCycle(cycleStart).nextResetAt.getTime() + REST_MS;
}

/** Start of the newest cycle that may be settled. */
export function newestSettleableCycle(now: Date): Date {
  const { startedAt } = billingCycle(new Date(now.getTime() - REST_MS));
  return billingCycle(new Date(startedAt.getTime() - 1)).startedAt;
}

/**
 * Settles a cycle for every organization, and before it all that are not settled yet: in order, since each begins with
 * the fraction that the one before left. A settled cycle stays as it is; a charge that comes later is in the next one.
 * Closing a cycle keeps out charges for an instant only; the sums are made afterwards, an organization at a time. An
 * interrupted settlement continues where it was.
 *
 * @returns how many settlements this call made
 * @throws RangeError when it is not the start of a cycle, or the cycle has not ended by the database's clock
 */
export async function settleCycle(ledger: Ledger, cycleStart: Date): Promise<number> {
  if (billingCycle(cycleStart).startedAt.getTime() !== cycleStart.getTime()) {
    throw new RangeError("not the start of a billing cycle");
  }
  await closeCycles(ledger, dayOf(cycleStart));
  const { rows } = await sql<{ cycle: string }>`
    select cycle_start::text as cycle from billing_cycles
    where settled_at is null and cycle_start <= ${dayOf(cycleStart)}::date order by cycle_start`.execute(
    ledger,
  );
  let made = 0;
  for (const { cycle } of rows) {
    made += await settleClosed(ledger, cycle);
  }
  return made;
}

/** Closes a cycle and all before it, back to the last closed one or the first charge. Does nothing for a closed one. */
async function closeCycles(ledger: Ledger, cycle: string): Promise<void> {
  await ledger
    .transaction()
    .setIsolationLevel("read committed")
    .execute(async (transaction) => {
      const { rows } = await sql<{ ended: boolean; closed: boolean }>`
        select ((${cycle}::date + interval '1 month') at time zone 'UTC') <= now() as ended,
          exists (select from billing_cycles where cycle_start = ${cycle}::date) as closed`.execute(
        transaction,
      );
      if (rows[0]?.closed) {
        return;
      }
      if (!rows[0]?.ended) {
        throw new RangeError("the billing cycle has not ended");
      }
      await lockCharges(transaction);
      await sql`
        insert into billing_cycles (cycle_start)
        select month::date from generate_series(
          least(${cycle}::date, coalesce(
            (select max(cycle_start) + interval '1 month' from billing_cycles),
            (select min(settle_cycle) from charges))),
          ${cycle}::date, interval '1 month') month
        on conflict do nothing`.execute(transaction);
    });
}

/** Settles a closed cycle whose predecessors are settled: nothing can be added to its charges any more. */
async function settleClosed(ledger: Ledger, cycle: string): Promise<number> {
  let made = 0;
  for (const organization of await organizationsOf(ledger, cycle)) {
    const { numAffectedRows = 0n } = await sql`
      with carried as (
        select coalesce((select carry_out from settlements
          where organization_id = ${organization} and cycle_start < ${cycle}::date
          order by cycle_start desc limit 1), 0) as amount
      ), summed as (
        select carried.amount as carry_in, carried.amount + coalesce((select sum(amount) from charges
          where settle_cycle = ${cycle}::date and organization_id = ${organization}), 0) as total
        from carried
      )
      insert into settlements (organization_id, cycle_start, carry_in, total, charged_cents, carry_out)
      select ${organization}, ${cycle}::date, carry_in, total, trunc(total)::bigint, total - trunc(total) from summed
      on conflict do nothing`.execute(ledger);
    made += Number(numAffectedRows);
  }
  await sql`
    update billing_cycles set settled_at = now()
    where cycle_start = ${cycle}::date and settled_at is null`.execute(ledger);
  return made;
}

/** Organizations with a charge in the cycle, or with a settlement that carries into it. Jumps from one to the next. */
async function organizationsOf(ledger: Ledger, cycle: string): Promise<string[]> {
  const { rows } = await sql<{ organization_id: string }>`
    with recursive charged as (
      select min(organization_id) as organization_id from charges where settle_cycle = ${cycle}::date
      union all
      select (select min(c.organization_id) from charges c
        where c.settle_cycle = ${cycle}::date and c.organization_id > charged.organization_id)
      from charged where charged.organization_id is not null
    )
    select organization_id from charged where organization_id is not null
    union
    select organization_id from settlements where cycle_start < ${cycle}::date
    order by organization_id`.execute(ledger);
  return rows.map((row) => row.organization_id);
}

/** An organization's settlements, newest first. */
export async function listSettlements(
  ledger: Ledger,
  { organizationId, limit = 100 }: { organizationId: string; limit?: number },
): Promise<Settlement[]> {
  const { rows } = await sql<Omit<Settlement, "charged_cents"> & { charged_cents: string }>`
    select organization_id, cycle_start::timestamp at time zone 'UTC' as cycle_start, trim_scale(carry_in)::text as carry_in,
      trim_scale(total)::text as total, charged_cents, trim_scale(carry_out)::text as carry_out, settled_at
    from settlements where organization_id = ${organizationId}
    order by settlements.cycle_start desc limit ${limit}`.execute(ledger);
  return rows.map((row) => ({ ...row, charged_cents: BigInt(row.charged_cents) }));
}

/** A cycle's name in the database: its first day. */
function dayOf(cycleStart: Date): string {
  return cycleStart.toISOString().slice(0, 10);
}

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

/** The cycle in whose settlement a charge of the given cycle is, as a date. Cycles are closed in order. */
export function openCycle(cycle: RawBuilder<unknown>): RawBuilder<string> {
  return sql`greatest(${cycle}, (select (max(cycle_start) + interval '1 month')::date from billing_cycles))`;
}
