import type { TaxLine } from "@slipway/crds";
import { type RawBuilder, sql } from "kysely";
import type { Ledger } from "./connect.ts";

/** What clients and administrators read of invoices. Amounts of lines are exact decimals of cents; what is to be paid are whole cents. */

export type InvoiceState = "open" | "paid" | "overdue";

/** An invoice without its lines. */
export interface Invoice {
  number: string;
  organizationId: string;
  organizationName: string;
  issuer: string;
  country: string | undefined;
  currency: string;
  cycleStart: Date;
  issuedAt: Date;
  dueAt: Date;
  /** When its organization is blocked for it, as was notified of; undefined before that, and once it is paid or waived. */
  blocksAt: Date | undefined;
  lineCount: number;
  chargeCount: number;
  carryIn: string;
  subtotal: string;
  carryOut: string;
  netCents: bigint;
  taxes: TaxLine[];
  taxCents: bigint;
  totalCents: bigint;
  /** Payments but those that were reversed. */
  paidCents: bigint;
  /** Sum of its credit notes. */
  creditedCents: bigint;
  state: InvoiceState;
}

export interface InvoiceLine {
  line: number;
  projectId: string;
  kind: string;
  plan: string | undefined;
  quantity: string;
  unitPrice: string;
  amount: string;
  chargeCount: number;
  /** What late changes made facts cost more or less: the quantity is how many, and the price what each. */
  adjusts: boolean;
}

/** A fact that was charged: a run, an hour, a term, or credit; or what a late change made of one. */
export interface InvoiceCharge {
  key: string;
  /** Whether it was charged for a late change. */
  adjusts: boolean;
  line: number;
  at: Date;
  quantity: string;
  amount: string;
}

export interface Page {
  limit: number;
  offset: number;
}

interface Row {
  number: string;
  organization_id: string;
  organization_name: string;
  issuer: string;
  country: string | null;
  currency: string;
  cycle_start: Date;
  issued_at: Date;
  due_at: Date;
  blocks_at: Date | null;
  line_count: number;
  charge_count: number;
  carry_in: string;
  subtotal: string;
  carry_out: string;
  net_cents: string;
  taxes: StoredTax[];
  tax_cents: string;
  total_cents: string;
  paid_cents: string;
  credited_cents: string;
  state: InvoiceState;
}

/** As {@link TaxLine} in JSON. */
export interface StoredTax {
  name: string;
  rate: string;
  cents: string;
}

export const taxLineOf = ({ name, rate, cents }: StoredTax): TaxLine => ({
  name,
  rate,
  cents: BigInt(cents),
});

/** Some invoices with their state, the newest first: what was paid and credited by now decides it, and the ledger's time. */
const select = (which: RawBuilder<unknown>) => sql<Row>`
  select i.number, i.organization_id, i.organization_name, i.issuer, i.country, i.currency,
    i.cycle_start::timestamp at time zone 'UTC' as cycle_start, i.issued_at, i.due_at, i.line_count, i.charge_count,
    trim_scale(i.carry_in)::text as carry_in, trim_scale(i.subtotal)::text as subtotal, trim_scale(i.carry_out)::text as carry_out,
    i.net_cents, i.taxes, i.tax_cents, i.total_cents, p.cents as paid_cents, n.cents as credited_cents,
    case when p.cents + n.cents >= i.total_cents then 'paid' when now() > i.due_at then 'overdue' else 'open' end as state,
    case when p.cents + n.cents < i.total_cents and not exists (select from overdue_waivers w where w.invoice_number = i.number)
      then (select max(o.blocks_at) from overdue_notices o where o.invoice_number = i.number and o.notice like '%/' || p.reversals)
      end as blocks_at
  from (select * from invoices ${which}) i
    cross join lateral (select coalesce(sum(case kind when 'payment' then amount_cents else -amount_cents end), 0) as cents,
        count(*) filter (where kind = 'reversal') as reversals
      from invoice_payments where invoice_number = i.number) p
    cross join lateral (select coalesce(sum(total_cents), 0) as cents from credit_notes where invoice_number = i.number) n
  order by i.cycle_start desc, i.organization_id`;

function invoiceOf(row: Row): Invoice {
  return {
    number: row.number,
    organizationId: row.organization_id,
    organizationName: row.organization_name,
    issuer: row.issuer,
    country: row.country ?? undefined,
    currency: row.currency,
    cycleStart: row.cycle_start,
    issuedAt: row.issued_at,
    dueAt: row.due_at,
    blocksAt: row.blocks_at ?? undefined,
    lineCount: row.line_count,
    chargeCount: row.charge_count,
    carryIn: row.carry_in,
    subtotal: row.subtotal,
    carryOut: row.carry_out,
    netCents: BigInt(row.net_cents),
    taxes: row.taxes.map(taxLineOf),
    taxCents: BigInt(row.tax_cents),
    totalCents: BigInt(row.total_cents),
    paidCents: BigInt(row.paid_cents),
    creditedCents: BigInt(row.credited_cents),
    state: row.state,
  };
}

/** Invoices of an organization, or of all, the newest first, and how many there are. */
export async function listInvoices(
  ledger: Ledger,
  { organizationId, limit, offset }: Page & { organizationId?: string | undefined },
): Promise<{ invoices: Invoice[]; total: number }> {
  const own = organizationId === undefined ? sql`true` : sql`organization_id = ${organizationId}`;
  const { rows } = await select(
    sql`where ${own} order by cycle_start desc, organization_id limit ${limit} offset ${offset}`,
  ).execute(ledger);
  const { rows: counted } = await sql<{ total: number }>`
    select count(*)::int as total from invoices where ${own}`.execute(ledger);
  return { invoices: rows.map(invoiceOf), total: counted[0]?.total ?? 0 };
}

/** An invoice by its number, of an organization where one is given; undefined when there is none. */
export async function findInvoice(
  ledger: Ledger,
  number: string,
  organizationId?: string,
): Promise<Invoice | undefined> {
  const own = organizationId === undefined ? sql`true` : sql`organization_id = ${organizationId}`;
  const { rows } = await select(sql`where number = ${number} and ${own}`).execute(ledger);
  return rows[0] && invoiceOf(rows[0]);
}

/** Names an invoice by what its rows are ordered by. */
export type InvoiceRef = Pick<Invoice, "organizationId" | "cycleStart">;

const dayOf = ({ cycleStart }: InvoiceRef): string => cycleStart.toISOString().slice(0, 10);

/** Lines of an invoice after a line, in their order. */
export async function listInvoiceLines(
  ledger: Ledger,
  invoice: InvoiceRef,
  { after, limit }: { after: number; limit: number },
): Promise<InvoiceLine[]> {
  const { rows } = await sql<{
    line: number;
    project_id: string;
    kind: string;
    plan: string | null;
    quantity: string;
    unit_price: string;
    amount: string;
    charge_count: number;
    adjusts: boolean;
  }>`
    select line, project_id, kind, plan, trim_scale(quantity)::text as quantity, trim_scale(unit_price)::text as unit_price,
      trim_scale(amount)::text as amount, charge_count, adjusts
    from invoice_lines
    where organization_id = ${invoice.organizationId} and cycle_start = ${dayOf(invoice)}::date and line > ${after}
    order by line limit ${limit}`.execute(ledger);
  return rows.map((row) => ({
    line: row.line,
    projectId: row.project_id,
    kind: row.kind,
    plan: row.plan ?? undefined,
    quantity: row.quantity,
    unitPrice: row.unit_price,
    amount: row.amount,
    chargeCount: row.charge_count,
    adjusts: row.adjusts,
  }));
}

/** What a line's amount, or every line's, is made of. */
export async function listInvoiceCharges(
  ledger: Ledger,
  invoice: InvoiceRef,
  { line, limit, offset }: Page & { line?: number | undefined },
): Promise<{ charges: InvoiceCharge[]; total: number }> {
  const which = sql`organization_id = ${invoice.organizationId} and cycle_start = ${dayOf(invoice)}::date
    and ${line === undefined ? sql`true` : sql`line = ${line}`}`;
  const { rows } = await sql<Omit<InvoiceCharge, "key"> & { charge_key: string }>`
    select charge_key, line, at, trim_scale(quantity)::text as quantity, trim_scale(amount)::text as amount,
      charge_key ~ '^[^/]+/(instance_hour|storage_hour|term|credit)/late/' as adjusts
    from invoice_charges where ${which}
    order by line, at, charge_key limit ${limit} offset ${offset}`.execute(ledger);
  const { rows: counted } = await sql<{ total: string }>`
    select coalesce(sum(charge_count), 0) as total from invoice_lines where ${which}`.execute(ledger);
  return {
    charges: rows.map(({ charge_key: key, ...charge }) => ({ key, ...charge })),
    total: Number(counted[0]?.total ?? 0),
  };
}
