import {
  findInvoice,
  type InvoiceOutcome,
  issueCreditNote,
  type Ledger,
  listCreditNotes,
  listInvoiceLines,
  listInvoicePayments,
  listInvoices,
  listPaymentEvents,
  payInvoice,
  reversePayment,
  setOrganizationCountry,
} from "@slipway/ledger";
import { INVOICE_ID, invoiceItem, invoiceView } from "../../invoices/view.ts";
import { type AdminContext, AdminError } from "../context.ts";
import { requireOrganization } from "../credentials.ts";

/** Most invoices of one page, and most lines that are shown. */
const PAGE = 100;
const MAX_LINES = 10_000;
const MAX_CENTS = 10n ** 15n;
/** Nothing was invoiced before; an earlier time is a slip. */
const EARLIEST_PAYMENT = Date.UTC(2020, 0);

/** Pages begin at 1; of one organization, or of all. */
export async function listAllInvoices(
  { ledger }: AdminContext,
  { organization, page: text = "1" }: { organization?: string; page?: string },
): Promise<object> {
  const page = pageOf(text);
  const which = { organizationId: organization, limit: PAGE, offset: (page - 1) * PAGE };
  const { invoices, total } = await listInvoices(ledger, which);
  const items = invoices.map((invoice) => ({
    ...invoiceItem(invoice),
    organization_id: invoice.organizationId,
  }));
  return { invoices: items, pagination: pagination(page, PAGE, total) };
}

export function pageOf(text: string): number {
  if (!/^[1-9][0-9]{0,3}$/.test(text)) {
    throw new AdminError(`the page must be a whole number from 1 on, not ${text}`);
  }
  return Number(text);
}

const pagination = (page: number, limit: number, total: number) => ({
  page,
  limit,
  total,
  pages: Math.ceil(total / limit),
});

/** Reported payments, the newest first: of an invoice, or those alone that changed nothing. */
export async function listEvents(
  { ledger }: AdminContext,
  { invoice, refused = false, page: text = "1" }: { invoice?: string; refused?: boolean; page?: string },
): Promise<object> {
  const page = pageOf(text);
  const which = { invoice, refused, limit: PAGE, offset: (page - 1) * PAGE };
  const { events, hasMore } = await listPaymentEvents(ledger, which);
  const items = events.map((event) => ({
    recorded_at: event.recordedAt.toISOString(),
    ...{ provider: event.provider, event_id: event.eventId, event_type: event.eventType },
    ...{ invoice_id: event.invoice ?? null, reference: event.reference },
    ...{ currency: event.currency, amount: event.amount, outcome: event.outcome },
  }));
  return { events: items, page, has_more: hasMore };
}

/** An invoice as `/v1` shows it, with a page of its lines, whose organization it is of. */
export async function showInvoice(
  { ledger }: AdminContext,
  { invoice: number, page: text = "1" }: { invoice: string; page?: string },
): Promise<object> {
  const page = pageOf(text);
  const invoice = await requireInvoice(ledger, number);
  const [lines, notes, payments] = [
    await listInvoiceLines(ledger, invoice, { after: (page - 1) * MAX_LINES, limit: MAX_LINES }),
    await listCreditNotes(ledger, number),
    await listInvoicePayments(ledger, number),
  ];
  return {
    organization_id: invoice.organizationId,
    ...invoiceView({ invoice, lines, notes, payments }),
    pagination: pagination(page, MAX_LINES, invoice.lineCount),
  };
}

export interface PayOptions {
  invoice: string;
  reference: string;
  amount?: string;
  paidAt?: string;
  reverse?: boolean;
}

/** Records a payment, or its reversal. The same one again changes nothing. */
export async function pay({ ledger }: AdminContext, options: PayOptions): Promise<object> {
  const { invoice: number, reference, amount, paidAt: time, reverse = false } = options;
  await requireInvoice(ledger, number);
  if (reverse && amount !== undefined) {
    throw new AdminError("a payment is reversed whole: leave out --amount");
  }
  const payment = { number, reference: named(reference), paidAt: momentOf(time) };
  const outcome = reverse
    ? await reversePayment(ledger, payment)
    : await payInvoice(ledger, { ...payment, amountCents: centsOf(amount) });
  refuse(
    outcome,
    reverse ? `invoice ${number} has no payment ${reference}` : `there is no invoice ${number}`,
  );
  const invoice = await requireInvoice(ledger, number);
  return {
    organization_id: invoice.organizationId,
    ...invoiceItem(invoice),
    recorded: outcome === "recorded",
  };
}

export interface CreditOptions {
  invoice: string;
  reference: string;
  reason: string;
  amount?: string;
}

/** Issues a credit note. The same one again changes nothing. */
export async function credit({ ledger }: AdminContext, options: CreditOptions): Promise<object> {
  const { invoice: number, reference, reason, amount } = options;
  await requireInvoice(ledger, number);
  if (reason.length < 1 || reason.length > 500) {
    throw new AdminError("a reason has 1 to 500 characters");
  }
  const wanted = { number, reference: named(reference), reason, netCents: centsOf(amount) };
  const answer = await issueCreditNote(ledger, wanted);
  const outcome = answer === "unknown" ? answer : answer.outcome;
  refuse(outcome, `there is no invoice ${number}`);
  const invoice = await requireInvoice(ledger, number);
  return {
    organization_id: invoice.organizationId,
    credit_note_id: answer === "unknown" ? null : (answer.note?.number ?? null),
    ...invoiceItem(invoice),
    recorded: outcome === "recorded",
  };
}

/** By which the organization's next invoices are taxed. */
export async function setCountry(
  context: AdminContext,
  organizationId: string,
  country: string,
): Promise<{ organization_id: string; country: string }> {
  if (!/^[A-Z]{2}$/.test(country)) {
    throw new AdminError(`a country is two capital letters (ISO 3166-1), not ${country}`);
  }
  await requireOrganization(context, organizationId);
  await setOrganizationCountry(context.ledger, organizationId, country);
  return { organization_id: organizationId, country };
}

async function requireInvoice(ledger: Ledger, number: string) {
  const found = INVOICE_ID.test(number) ? await findInvoice(ledger, number) : undefined;
  if (found === undefined) {
    throw new AdminError(`there is no invoice ${number}`);
  }
  return found;
}

function refuse(outcome: InvoiceOutcome, unknown: string): void {
  switch (outcome) {
    case "recorded":
    case "already":
      return;
    case "unknown":
      throw new AdminError(unknown);
    case "differs":
      throw new AdminError("this reference is recorded already, with another amount or reason");
    case "reversed":
      throw new AdminError("the payment of this reference was reversed: one that was made since has another");
    case "exceeds":
      throw new AdminError("the amount must be more than nothing, and no more than is open");
  }
}

function named(reference: string): string {
  if (!/^[\x21-\x7e]{1,128}$/.test(reference)) {
    throw new AdminError("a reference has 1 to 128 visible characters without blanks");
  }
  return reference;
}

/** Whole cents; undefined for all that is open. */
function centsOf(text: string | undefined): bigint | undefined {
  if (text === undefined) {
    return undefined;
  }
  if (!/^[0-9]{1,16}$/.test(text) || BigInt(text) > MAX_CENTS) {
    throw new AdminError(`the amount must be whole cents, not ${text}`);
  }
  return BigInt(text);
}

function momentOf(text: string | undefined): Date | undefined {
  if (text === undefined) {
    return undefined;
  }
  const at = new Date(text);
  if (!/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/.test(text) || Number.isNaN(at.getTime())) {
    throw new AdminError(`the time must be in UTC such as 2026-01-31T12:00:00Z, not ${text}`);
  }
  if (at.getTime() > Date.now()) {
    throw new AdminError("a payment is not in the future");
  }
  if (at.getTime() < EARLIEST_PAYMENT) {
    throw new AdminError(`a payment is not of before 2020: ${text}`);
  }
  return at;
}
