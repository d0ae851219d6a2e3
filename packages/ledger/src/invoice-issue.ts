import { CURRENCY, type TaxTable, taxLines, taxRatesOf } from "@slipway/crds";
import { sql, type Transaction } from "kysely";
import type { Ledger } from "./connect.ts";
import { lockInvoices, planChargesToInvoice } from "./invoice-cycles.ts";
import { nextNumber } from "./invoice-numbers.ts";
import type { LedgerSchema } from "./schema.ts";

/** What is written on every invoice. */
export interface InvoiceTerms {
  /** Who issues it, as text of several lines. */
  issuer: string;
  /** Days until it is overdue. */
  dueDays: number;
  taxes: TaxTable;
}

interface InvoiceKey {
  organizationId: string;
  /** First day of the cycle. */
  cycle: string;
}

interface Sums {
  lines: number;
  charges: number;
  subtotal: string;
  carry_in: string;
  net_cents: string;
  carry_out: string;
  organization_name: string;
  country: string | null;
}

/**
 * Issues the invoice of an organization for a settled cycle: of all its charges that are on none, in one transaction with its number. There is
 * none without a charge.
 *
 * @returns its number; undefined when it is there already, has nothing to charge, or the cycle's invoices are complete
 * @throws when the database is away or the answer was lost: it is issued then, or nothing is
 */
export async function issueInvoice(
  ledger: Ledger,
  key: InvoiceKey,
  terms: InvoiceTerms,
): Promise<string | undefined> {
  return ledger
    .transaction()
    .setIsolationLevel("read committed")
    .execute(async (transaction) => {
      await lockInvoices(transaction);
      if (await isPast(transaction, key)) {
        return undefined;
      }
      await takeCharges(transaction, key);
      const sums = await sumsOf(transaction, key);
      return sums && write(transaction, key, { terms, sums });
    });
}

/** Whether the invoice is there, or nothing may be added to the cycle any more. */
async function isPast(
  transaction: Transaction<LedgerSchema>,
  { organizationId, cycle }: InvoiceKey,
): Promise<boolean> {
  const { rows } = await sql<{ past: boolean }>`
    select exists (select from invoice_cycles where cycle_start = ${cycle}::date)
      or exists (select from invoices where organization_id = ${organizationId} and cycle_start >= ${cycle}::date)
      or not exists (select from billing_cycles b join invoicing f on b.cycle_start >= f.first_cycle
        where b.cycle_start = ${cycle}::date and b.settled_at is not null) as past`.execute(transaction);
  return rows[0]?.past ?? true;
}

/**
 * Puts each charge on a line of the invoice that is on no other: a line for each project, kind, plan and price. A credit is a negative amount here.
 * What a late change made a fact cost more or less is on lines of its own, unless it is all that the fact costs.
 * What belongs to a fact from before the first cycle, as the credit of its term, is on none, as the fact itself.
 */
async function takeCharges(
  transaction: Transaction<LedgerSchema>,
  { organizationId, cycle }: InvoiceKey,
): Promise<void> {
  await sql`
    with taken as (
      select 'job_run/' || c.project_id || '/' || c.key as charge_key, c.project_id, c.kind, r.plan,
        coalesce(r.started_at, c.due_at) as at, coalesce(r.billed_minutes, 1)::numeric as quantity,
        coalesce(r.price_per_minute, c.amount) as unit_price, c.amount, false as adjusts
      from charges c left join job_runs r
        on (r.organization_id, r.project_id, r.id, r.scheduled_minute) = (c.organization_id, c.project_id, c.key, c.due_at)
      where c.settle_cycle = ${cycle}::date and c.organization_id = ${organizationId} and c.kind = 'job_run' and c.amount > 0
      union all
      select 'storage/' || c.project_id || '/' || c.key, c.project_id, c.kind, null, c.due_at, coalesce(h.gb, 1),
        coalesce(h.price_per_gb_hour, c.amount), c.amount, false
      from charges c left join storage_hours h
        on (h.organization_id, h.project_uid, h.hour_index)
          = (c.organization_id, split_part(c.key, '/', 1), split_part(c.key, '/', 2)::integer)
      where c.settle_cycle = ${cycle}::date and c.organization_id = ${organizationId} and c.kind = 'storage' and c.amount > 0
      union all
      select p.key, p.project_id, p.kind, p.plan, p.starts_at,
        case when whole then coalesce(p.quantity, p.gb, 1) else 1 end,
        case when p.kind = 'credit' then -p.amount when whole then p.price else p.amount end,
        case p.kind when 'credit' then -p.amount else p.amount end,
        not whole
      from ${planChargesToInvoice(sql`${organizationId}::text`, cycle)} p
        cross join lateral (select p.adjusts is null
          or split_part(p.adjusts, '/', 2) = p.kind and p.kind <> 'credit' and p.amount = p.price * coalesce(p.gb, 1) as whole) w
    ), numbered as (
      select *, dense_rank() over (order by project_id, kind, plan nulls first, unit_price, adjusts) as line from taken
    ), listed as (
      insert into invoice_charges (organization_id, charge_key, cycle_start, line, at, quantity, amount)
      select ${organizationId}, charge_key, ${cycle}::date, line, at, quantity, amount from numbered
    )
    insert into invoice_lines (organization_id, cycle_start, line, project_id, kind, plan, quantity, unit_price, amount, charge_count, adjusts)
    select ${organizationId}, ${cycle}::date, line, project_id, kind, plan, sum(quantity), unit_price, sum(amount), count(*), adjusts
    from numbered group by line, project_id, kind, plan, unit_price, adjusts`.execute(transaction);
}

/**
 * What the lines sum up to, and the whole cents of it: with the rest that the invoice before left, or at first the settlement before. Credit
 * that is more than all is left for the next one. Undefined without lines.
 */
async function sumsOf(
  transaction: Transaction<LedgerSchema>,
  { organizationId, cycle }: InvoiceKey,
): Promise<Sums | undefined> {
  const { rows } = await sql<Sums>`
    with carried as (
      select coalesce(
        (select carry_out from invoices where organization_id = ${organizationId} and cycle_start < ${cycle}::date
          order by cycle_start desc limit 1),
        (select carry_in from settlements where organization_id = ${organizationId} and cycle_start = ${cycle}::date),
        0) as carry_in
    ), lines as (
      select count(*)::int as lines, sum(charge_count)::int as charges, sum(amount) as subtotal from invoice_lines
      where organization_id = ${organizationId} and cycle_start = ${cycle}::date
    ), net as (
      select *, greatest(0, trunc(carry_in + subtotal)) as net_cents from carried, lines
    )
    select lines, charges, subtotal::text, carry_in::text, net_cents::text, (carry_in + subtotal - net_cents)::text as carry_out,
      coalesce(o.name, '') as organization_name, c.country
    from net left join organizations o on o.id = ${organizationId}
      left join organization_countries c on c.organization_id = ${organizationId}
    where lines > 0`.execute(transaction);
  return rows[0];
}

async function write(
  transaction: Transaction<LedgerSchema>,
  { organizationId, cycle }: InvoiceKey,
  { terms, sums }: { terms: InvoiceTerms; sums: Sums },
): Promise<string> {
  const net = BigInt(sums.net_cents);
  const taxes = taxLines(net, taxRatesOf(terms.taxes, sums.country ?? undefined));
  const taxCents = taxes.reduce((sum, { cents }) => sum + cents, 0n);
  const number = await nextNumber(transaction, "invoice");
  await sql`
    insert into invoices (organization_id, cycle_start, number, organization_name, issuer, country, currency, due_at, line_count,
      charge_count, carry_in, subtotal, net_cents, carry_out, taxes, tax_cents, total_cents)
    values (${organizationId}, ${cycle}::date, ${number}, ${sums.organization_name}, ${terms.issuer}, ${sums.country}, ${CURRENCY},
      now() + make_interval(days => ${terms.dueDays}), ${sums.lines}, ${sums.charges}, ${sums.carry_in}, ${sums.subtotal},
      ${sums.net_cents}, ${sums.carry_out}, ${taxesJson(taxes)}::jsonb, ${String(taxCents)}, ${String(net + taxCents)})`.execute(
    transaction,
  );
  return number;
}

/** Taxes as the ledger keeps them: cents in decimal, for JSON's numbers are not exact. */
export const taxesJson = (taxes: readonly { name: string; rate: string; cents: bigint }[]): string =>
  JSON.stringify(taxes.map(({ name, rate, cents }) => ({ name, rate, cents: String(cents) })));
