import { CURRENCY } from "@slipway/crds";
import type { CreditNote, Invoice, InvoiceCharge, InvoiceLine, InvoicePayment } from "@slipway/ledger";
import { openCents } from "@slipway/ledger";
import { z } from "zod";

/** Invoices as `/v1` shows them. Amounts are BRL cents, exact: a JSON number with all its digits. */

export const INVOICE_ID = /^[0-9]{4}-[0-9]{6,9}$/;

const cents = z.int().describe("BRL cents.");
const exact = z.number().describe("BRL cents, exact; it may be a fraction.");
const moment = z.string();

const tax = z.object({ name: z.string(), rate: z.string().describe("Percent."), amount: cents });

export const invoiceItemSchema = z.object({
  id: z.string().regex(INVOICE_ID).describe("Its number. Numbers of a year have no gaps."),
  status: z.enum(["open", "paid", "overdue"]),
  currency: z.literal(CURRENCY),
  cycle_started_at: moment.describe(
    "The billing cycle whose charges it has, and those of earlier ones that came late.",
  ),
  issued_at: moment,
  due_at: moment,
  blocks_at: moment
    .optional()
    .describe("When the organization is blocked for it unless it is paid, as it was notified of."),
  net_amount: cents,
  tax_amount: cents,
  total_amount: cents,
  paid_amount: cents.describe("What was paid, without what was given back."),
  credited_amount: cents.describe("Sum of its credit notes."),
  open_amount: cents.describe("What is still to be paid."),
});

const line = z.object({
  line: z.int().min(1),
  project_id: z.string(),
  kind: z.enum(["job_run", "storage", "instance_hour", "storage_hour", "build_minute", "term", "credit"]),
  plan: z.string().optional(),
  unit: z.enum(["minute", "gb_hour", "instance_hour", "term", "credit"]),
  quantity: z.number(),
  unit_amount: exact,
  amount: exact.describe("The quantity times the price of a unit."),
  charges: z.int().min(1).describe("How many charges it sums up."),
  adjusts: z
    .literal(true)
    .optional()
    .describe(
      "What late changes made facts cost more or less: the quantity is how many of them, and the price of a unit what each costs.",
    ),
});

const creditNote = z.object({
  id: z.string().describe("Its number, of a series of its own."),
  reason: z.string(),
  issued_at: moment,
  net_amount: cents,
  taxes: z.array(tax),
  tax_amount: cents,
  total_amount: cents,
});

const payment = z.object({
  kind: z.enum(["payment", "reversal"]),
  reference: z.string(),
  amount: cents,
  paid_at: moment,
});

export const invoiceSchema = invoiceItemSchema.extend({
  issuer: z.string(),
  organization: z.object({ id: z.string(), name: z.string(), country: z.string().optional() }),
  carried_in: exact.describe(
    "What the invoice before left: a fraction of a cent, or credit as a negative amount.",
  ),
  subtotal: exact.describe("Sum of its lines."),
  carried_out: exact.describe("What it leaves for the next one."),
  taxes: z.array(tax),
  credit_notes: z.array(creditNote),
  payments: z.array(payment),
  lines: z.array(line).describe("One page of them."),
});

export const chargeSchema = z.object({
  key: z
    .string()
    .describe(
      "Names the run, the hour, the term or the credit, or what a late change made of it: it is on no other invoice.",
    ),
  adjusts: z.literal(true).optional().describe("It was charged for a late change."),
  line: z.int().min(1),
  at: moment,
  quantity: z.number(),
  amount: exact,
});

export const units: Readonly<Record<string, z.output<typeof line>["unit"]>> = {
  job_run: "minute",
  storage: "gb_hour",
  instance_hour: "instance_hour",
  storage_hour: "gb_hour",
  build_minute: "minute",
  term: "term",
  credit: "credit",
};

/** Decimals of the ledger, which are plain: `-2.5`. */
const exactNumber = (text: string): unknown => JSON.rawJSON(text);
const centsNumber = (amount: bigint): unknown => JSON.rawJSON(String(amount));

const taxView = ({ name, rate, cents: amount }: Invoice["taxes"][number]) => ({
  name,
  rate,
  amount: centsNumber(amount),
});

export function invoiceItem(invoice: Invoice) {
  return {
    id: invoice.number,
    status: invoice.state,
    currency: invoice.currency,
    cycle_started_at: invoice.cycleStart.toISOString(),
    issued_at: invoice.issuedAt.toISOString(),
    due_at: invoice.dueAt.toISOString(),
    ...(invoice.blocksAt === undefined ? {} : { blocks_at: invoice.blocksAt.toISOString() }),
    net_amount: centsNumber(invoice.netCents),
    tax_amount: centsNumber(invoice.taxCents),
    total_amount: centsNumber(invoice.totalCents),
    paid_amount: centsNumber(invoice.paidCents),
    credited_amount: centsNumber(invoice.creditedCents),
    open_amount: centsNumber(openCents(invoice)),
  };
}

/** An invoice with what belongs to it, and a page of its lines. */
export interface WholeInvoice {
  invoice: Invoice;
  lines: readonly InvoiceLine[];
  notes: readonly CreditNote[];
  payments: readonly InvoicePayment[];
}

export function invoiceView({ invoice, lines, notes, payments }: WholeInvoice) {
  const { organizationId: id, organizationName: name, country } = invoice;
  return {
    ...invoiceItem(invoice),
    issuer: invoice.issuer,
    organization: { id, name, ...(country === undefined ? {} : { country }) },
    carried_in: exactNumber(invoice.carryIn),
    subtotal: exactNumber(invoice.subtotal),
    carried_out: exactNumber(invoice.carryOut),
    taxes: invoice.taxes.map(taxView),
    credit_notes: notes.map(creditNoteView),
    payments: payments.map(({ kind, reference, amountCents, paidAt }) => ({
      kind,
      reference,
      amount: centsNumber(amountCents),
      paid_at: paidAt.toISOString(),
    })),
    lines: lines.map(lineView),
  };
}

const creditNoteView = (note: CreditNote) => ({
  id: note.number,
  reason: note.reason,
  issued_at: note.issuedAt.toISOString(),
  net_amount: centsNumber(note.netCents),
  taxes: note.taxes.map(taxView),
  tax_amount: centsNumber(note.taxCents),
  total_amount: centsNumber(note.totalCents),
});

const adjusting = (adjusts: boolean) => (adjusts ? { adjusts: true as const } : {});

const lineView = ({ plan, ...one }: InvoiceLine) => ({
  line: one.line,
  project_id: one.projectId,
  kind: one.kind,
  ...(plan === undefined ? {} : { plan }),
  unit: units[one.kind],
  quantity: exactNumber(one.quantity),
  unit_amount: exactNumber(one.unitPrice),
  amount: exactNumber(one.amount),
  charges: one.chargeCount,
  ...adjusting(one.adjusts),
});

export const chargeView = ({ key, adjusts, line: number, at, quantity, amount }: InvoiceCharge) => ({
  key,
  ...adjusting(adjusts),
  line: number,
  at: at.toISOString(),
  quantity: exactNumber(quantity),
  amount: exactNumber(amount),
});
