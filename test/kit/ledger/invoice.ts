import type { Ledger } from "@slipway/ledger";
import { sql } from "kysely";

export interface InvoicedLine {
  projectId: string;
  plan: string;
  /** Instance hours, each charged once. */
  hours: number;
  /** BRL cents, exact. */
  price: string;
}

/**
 * Issues an invoice of such lines with a tax of 2.9 %, of an organization without charges in the last cycle that the platform has settled, also
 * where that issues none. Each hour is a charge of a plan, as the metering records them. It takes the next number, and stays.
 * @returns its number
 * @throws while no cycle is settled
 */
export async function insertInvoice(
  ledger: Ledger,
  { organizationId, name, lines }: { organizationId: string; name: string; lines: readonly InvoicedLine[] },
): Promise<string> {
  return ledger.transaction().execute(async (transaction) => {
    const cycle = await lastCycle(transaction);
    await sql`
      with given as (
        select row_number() over () as line, l.* from json_to_recordset(${JSON.stringify(lines)}::json)
          as l ("projectId" text, plan text, hours integer, price numeric)
      ), facts as (
        select *, ${organizationId} || '/' || "projectId" as uid, ${cycle}::timestamp at time zone 'UTC' + hour * interval '1 hour' as at
        from given, generate_series(1, hours) hour
      ), charged as (
        insert into plan_charges (organization_id, project_id, project_uid, key, kind, starts_at, ends_at, final_at, cycle_start, plan,
          instance, price, amount)
        select ${organizationId}, "projectId", uid, uid || '/instance_hour/' || hour || '/' || line, 'instance_hour', at,
          at + interval '1 hour', at + interval '1 hour', ${cycle}::date, plan, line, price, price from facts
        returning key, starts_at, instance, amount
      ), listed as (
        insert into invoice_charges (organization_id, charge_key, cycle_start, line, at, quantity, amount)
        select ${organizationId}, key, ${cycle}::date, instance, starts_at, 1, amount from charged
      )
      insert into invoice_lines (organization_id, cycle_start, line, project_id, kind, plan, quantity, unit_price, amount, charge_count)
      select ${organizationId}, ${cycle}::date, line, "projectId", 'instance_hour', plan, hours, price, hours * price, hours from given`.execute(
      transaction,
    );
    const { rows } = await sql<{ number: string }>`
      insert into document_numbers as d (series, year, last) values ('invoice', extract(year from now() at time zone 'UTC'), 1)
      on conflict (series, year) do update set last = d.last + 1
      returning document_number(series, year, last) as number`.execute(transaction);
    const number = rows[0]?.number ?? "";
    await sql`
      insert into invoices (organization_id, cycle_start, number, organization_name, issuer, country, currency, due_at, line_count,
        charge_count, carry_in, subtotal, net_cents, carry_out, taxes, tax_cents, total_cents)
      select ${organizationId}, ${cycle}::date, ${number}, ${name}, ${"Example Hosting\n1 Example Street"}, 'BR', 'brl',
        now() + interval '14 days', lines, charges, 0, subtotal, trunc(subtotal), subtotal - trunc(subtotal),
        jsonb_build_array(jsonb_build_object('name', 'ISS', 'rate', '2.9', 'cents', tax::text)), tax, trunc(subtotal) + tax
      from (select count(*) as lines, sum(charge_count) as charges, sum(amount) as subtotal from invoice_lines
          where organization_id = ${organizationId} and cycle_start = ${cycle}::date) l,
        lateral (select round(trunc(subtotal) * 0.029)::bigint as tax) t`.execute(transaction);
    return number;
  });
}

/** The last cycle that is settled. None is closed here: the platform excludes charges that are being recorded while it does. */
async function lastCycle(ledger: Ledger): Promise<string> {
  const { rows } = await sql<{ cycle: string | null }>`
    select max(cycle_start)::text as cycle from billing_cycles where settled_at is not null`.execute(ledger);
  const cycle = rows[0]?.cycle ?? undefined;
  if (cycle === undefined) {
    throw new Error("no billing cycle is settled yet");
  }
  return cycle;
}
