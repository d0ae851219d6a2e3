import { type RawBuilder, sql, type Transaction } from "kysely";
import type { Ledger } from "./connect.ts";
import type { LedgerSchema } from "./schema.ts";

/** Which cycles have invoices, and of whom: a cycle's are issued a day after its end, once it is settled. */

/** Hours between the end of a cycle and its invoices: what an outage delayed is recorded by then. */
const REST_HOURS = 24;

/**
 * Begins to issue invoices, where that has not begun: the first ones are of the cycle that a moment lies in.
 * @param at the ledger's time unless given
 */
export async function beginInvoicing(ledger: Ledger, at?: Date): Promise<void> {
  await sql`
    insert into invoicing (first_cycle) values (billing_cycle(coalesce(${at ?? null}::timestamptz, now())))
    on conflict do nothing`.execute(ledger);
}

/**
 * First days of the cycles whose invoices are to be issued, the oldest first.
 * @param restHours from the end of a cycle on
 */
export async function cyclesToInvoice(ledger: Ledger, restHours = REST_HOURS): Promise<string[]> {
  const { rows } = await sql<{ cycle: string }>`
    select b.cycle_start::text as cycle from billing_cycles b join invoicing f on b.cycle_start >= f.first_cycle
    where b.settled_at is not null
      and ((b.cycle_start + interval '1 month') at time zone 'UTC') + make_interval(hours => ${restHours}) <= now()
      and not exists (select from invoice_cycles i where i.cycle_start = b.cycle_start)
    order by b.cycle_start`.execute(ledger);
  return rows.map(({ cycle }) => cycle);
}

/**
 * When the invoices are due of the oldest cycle that has not all of them, which may be the current one. Undefined where there are to be none.
 */
export async function nextInvoicesDue(ledger: Ledger, restHours = REST_HOURS): Promise<Date | undefined> {
  const { rows } = await sql<{ due: Date | null }>`
    select ((min(n.cycle_start) + interval '1 month') at time zone 'UTC') + make_interval(hours => ${restHours}) as due
    from invoicing f cross join lateral (
      select cycle_start from billing_cycles where cycle_start >= f.first_cycle
      union all
      select greatest(f.first_cycle, (max(cycle_start) + interval '1 month')::date) from billing_cycles) n
    where not exists (select from invoice_cycles i where i.cycle_start = n.cycle_start)`.execute(ledger);
  return rows[0]?.due ?? undefined;
}

/** How much longer than a transaction, and than clocks of the ledger's servers differ: what an invoice did not see was recorded after that before it. */
const OVERLAP_HOURS = 1;

/**
 * Charges of plans that an organization's invoice of a cycle has: of the cycles since its last invoice, and of those before what was recorded since. So
 * history is not read again: of cycles before, the index of what came late is used, since no other one has `cycle_start + 0`, of whose range the
 * planner would expect few rows. A fact from before the first cycle with invoices, and what belongs to it, is on none.
 *
 * @param organizationId of a row, or a value
 */
export const planChargesToInvoice = (organizationId: RawBuilder<unknown>, cycle: string) => sql`(
  select p.* from invoicing f
    left join lateral (select cycle_start, issued_at from invoices
      where organization_id = ${organizationId} order by cycle_start desc limit 1) last on true
    cross join lateral (
      select * from plan_charges
      where organization_id = ${organizationId} and cycle_start > coalesce(last.cycle_start, '-infinity')
        and cycle_start between f.first_cycle and ${cycle}::date
      union all
      select * from plan_charges
      where organization_id = ${organizationId} and recorded_at >= last.issued_at - make_interval(hours => ${OVERLAP_HOURS})
        and recorded_at at time zone 'UTC' >= cycle_start + interval '1 month'
        and cycle_start + 0 between f.first_cycle and last.cycle_start) p
  where cycle_of_fact(coalesce(p.adjusts, p.key), p.starts_at) >= f.first_cycle
    and not exists (select from invoice_charges i where i.organization_id = p.organization_id and i.charge_key = p.key))`;

/**
 * Organizations that have a charge for the invoices of a cycle, and no invoice of it. Jumps from one to the next, and reads charges of plans of
 * those alone that have no invoice of it.
 */
export async function organizationsToInvoice(ledger: Ledger, cycle: string): Promise<string[]> {
  const { rows } = await sql<{ organization_id: string }>`
    with recursive charged as (
      select min(organization_id) as id from charges where settle_cycle = ${cycle}::date
      union all
      select (select min(c.organization_id) from charges c
        where c.settle_cycle = ${cycle}::date and c.organization_id > charged.id)
      from charged where charged.id is not null
    ), planned as (
      select min(organization_id) as id from plan_charges
      union all
      select (select min(p.organization_id) from plan_charges p where p.organization_id > planned.id)
      from planned where planned.id is not null
    ), known as (
      select id from charged union select id from planned
    ), waiting as materialized (
      select id from known where id is not null and not exists (
        select from invoices i where i.organization_id = known.id and i.cycle_start = ${cycle}::date)
    )
    select id as organization_id from waiting
    where id in (select id from charged) or exists (select from ${planChargesToInvoice(sql`waiting.id`, cycle)} p)
    order by id`.execute(ledger);
  return rows.map(({ organization_id }) => organization_id);
}

/** A cycle's invoices are issued: what is charged from now on is for the next one's. */
export async function completeInvoiceCycle(ledger: Ledger, cycle: string): Promise<void> {
  await ledger
    .transaction()
    .setIsolationLevel("read committed")
    .execute(async (transaction) => {
      await lockInvoices(transaction);
      await sql`insert into invoice_cycles (cycle_start) values (${cycle}::date) on conflict do nothing`.execute(
        transaction,
      );
    });
}

/** One invoice is issued at a time, by any process. */
export async function lockInvoices(transaction: Transaction<LedgerSchema>): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended('invoices', 0))`.execute(transaction);
}
