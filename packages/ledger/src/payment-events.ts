import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import { findPayment, insertPayment, lockInvoice, openCents } from "./invoice-payments.ts";
import type { Invoice } from "./invoices.ts";
import { liftOverdueBlock } from "./overdue.ts";

/** What payment providers report: each event is recorded once with what became of it, in one transaction with the payment. */

export interface PaymentEvent {
  provider: "stripe" | "generic";
  /** The provider's id of it: the same when it is sent again. */
  eventId: string;
  /** As the provider names it. */
  eventType: string;
  kind: "payment" | "refund";
  /** The number of the invoice; absent of a refund that names its payment alone. */
  invoice?: string | undefined;
  /** Names the payment, also in the event of its refund. */
  reference: string;
  /** In lower case. */
  currency: string;
  /** What was paid or given back, in hundredths of the currency; a decimal where it is no whole number of them. */
  amount: string;
  /** Of a refund, that it is of a part of the payment. */
  isPartial?: boolean;
  occurredAt: Date;
}

/**
 * `applied`: the invoice has the payment, or it was taken back. `already`: it was so before. All others changed nothing and are reported.
 */
export const paymentOutcomes = [
  "applied",
  "already",
  "unknown_invoice",
  "wrong_currency",
  "wrong_amount",
  "not_open",
  "taken_back",
  "partial_refund",
  "unknown_payment",
] as const;
export type PaymentOutcome = (typeof paymentOutcomes)[number];

/** What became of an event; `isRepeat` when it was recorded before. `unrelated`: a refund of a payment that was of no invoice; nothing is recorded. */
export type RecordedPaymentEvent =
  | { outcome: PaymentOutcome; isRepeat: boolean; invoice: string }
  | "unrelated";

/**
 * Records an event, and what it changes of its invoice. A repeat changes nothing.
 * @throws when the database is away: then nothing of it is recorded
 */
export function recordPaymentEvent(ledger: Ledger, event: PaymentEvent): Promise<RecordedPaymentEvent> {
  return ledger
    .transaction()
    .setIsolationLevel("read committed")
    .execute(async (transaction) => {
      // The same event, or another one of the same payment, waits here.
      await sql`select pg_advisory_xact_lock(hashtextextended(k, 26)) from unnest(${[
        `event ${event.provider} ${event.eventId}`,
        `payment ${event.provider} ${event.reference}`,
      ].toSorted()}::text[]) with ordinality as of (k, n) order by n`.execute(transaction);
      const known = await findEvent(transaction, event);
      if (known) {
        return { ...known, isRepeat: true };
      }
      const claimed = event.invoice ?? (await invoiceOfPayment(transaction, event));
      if (claimed === undefined) {
        return "unrelated";
      }
      const invoice = await lockInvoice(transaction, claimed);
      const outcome = invoice === undefined ? "unknown_invoice" : await apply(transaction, event, invoice);
      await insertEvent(transaction, event, { claimed, number: invoice?.number, outcome });
      if (invoice !== undefined && outcome === "applied") {
        await liftOverdueBlock(transaction, invoice.organizationId);
      }
      return { outcome, isRepeat: false, invoice: claimed };
    });
}

/** How many events of the last day changed nothing and were to. */
export async function countRefusedPaymentEvents(ledger: Ledger): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from payment_events
    where outcome not in ('applied', 'already') and recorded_at > now() - interval '1 day'`.execute(ledger);
  return rows[0]?.count ?? 0;
}

async function apply(transaction: Ledger, event: PaymentEvent, invoice: Invoice): Promise<PaymentOutcome> {
  if (event.currency !== invoice.currency.toLowerCase()) {
    return "wrong_currency";
  }
  return event.kind === "payment" ? pay(transaction, event, invoice) : takeBack(transaction, event, invoice);
}

async function pay(transaction: Ledger, event: PaymentEvent, invoice: Invoice): Promise<PaymentOutcome> {
  const { reference, occurredAt } = event;
  const { number } = invoice;
  const known = await findPayment(transaction, { number, reference });
  if (known === undefined ? await wasRefunded(transaction, event) : known.isReversed) {
    return "taken_back";
  }
  if (known !== undefined) {
    return event.amount === String(known.amountCents) ? "already" : "wrong_amount";
  }
  const open = openCents(invoice);
  if (open === 0n) {
    return "not_open";
  }
  if (event.amount !== String(open)) {
    return "wrong_amount";
  }
  const paidAt = await notAhead(transaction, occurredAt);
  await insertPayment(transaction, { number, reference, amountCents: open, paidAt }, "payment");
  return "applied";
}

async function takeBack(
  transaction: Ledger,
  { reference, amount, isPartial, occurredAt }: PaymentEvent,
  { number }: Invoice,
): Promise<PaymentOutcome> {
  const known = await findPayment(transaction, { number, reference });
  if (known === undefined) {
    return "unknown_payment";
  }
  if (known.isReversed) {
    return "already";
  }
  if (isPartial) {
    return "partial_refund";
  }
  if (amount !== String(known.amountCents)) {
    return "wrong_amount";
  }
  const { amountCents } = known;
  const paidAt = await notAhead(transaction, occurredAt);
  await insertPayment(transaction, { number, reference, amountCents, paidAt }, "reversal");
  return "applied";
}

/** A moment of the provider's clock, which may be ahead of the ledger's. */
async function notAhead(transaction: Ledger, at: Date): Promise<Date> {
  const { rows } = await sql<{ at: Date }>`select least(${at}::timestamptz, now()) as at`.execute(
    transaction,
  );
  return rows[0]?.at ?? at;
}

async function findEvent(
  transaction: Ledger,
  { provider, eventId }: PaymentEvent,
): Promise<{ outcome: PaymentOutcome; invoice: string } | undefined> {
  const { rows } = await sql<{ outcome: PaymentOutcome; invoice: string }>`
    select outcome, claimed_invoice as invoice from payment_events
    where provider = ${provider} and event_id = ${eventId}`.execute(transaction);
  return rows[0];
}

/** The invoice that a payment was of, by what was recorded of it. */
async function invoiceOfPayment(
  transaction: Ledger,
  { provider, reference }: PaymentEvent,
): Promise<string | undefined> {
  const { rows } = await sql<{ invoice: string }>`
    select claimed_invoice as invoice from payment_events
    where provider = ${provider} and reference = ${reference} and kind = 'payment'
    order by outcome = 'applied' desc, recorded_at limit 1`.execute(transaction);
  return rows[0]?.invoice;
}

/** Whether a refund of this payment came before it. */
async function wasRefunded(transaction: Ledger, { provider, reference }: PaymentEvent): Promise<boolean> {
  const { rows } = await sql<{ refunded: boolean }>`
    select exists (select from payment_events
      where provider = ${provider} and reference = ${reference} and kind = 'refund') as refunded`.execute(
    transaction,
  );
  return rows[0]?.refunded ?? false;
}

async function insertEvent(
  transaction: Ledger,
  event: PaymentEvent,
  { claimed, number, outcome }: { claimed: string; number: string | undefined; outcome: PaymentOutcome },
): Promise<void> {
  await sql`
    insert into payment_events (provider, event_id, event_type, kind, claimed_invoice, invoice_number, reference, currency,
      amount_cents, outcome, occurred_at)
    values (${event.provider}, ${event.eventId}, ${event.eventType}, ${event.kind}, ${claimed}, ${number ?? null},
      ${event.reference}, ${event.currency}, ${event.amount}::numeric, ${outcome}, ${event.occurredAt})`.execute(
    transaction,
  );
}
