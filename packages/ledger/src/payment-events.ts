import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import { findPayment, insertPayment, lockInvoice, openCents } from "./invoice-payments.ts";
import { liftOverdueBlock } from "./overdue.ts";
import {
  type DecidedOutcome,
  type EarlierEvent,
  type KnownPayment,
  type PaymentEvent,
  type PaymentOutcome,
  paymentOutcome,
} from "./payment-rule.ts";

/** What payment providers report: each event is recorded once with what became of it, in one transaction with the payment. */

/**
 * What became of an event; `isRepeat` when it was recorded before. `unrelated`: it is of no invoice that is known by now, as refunds of other business of
 * the platform are.
 */
export type RecordedPaymentEvent =
  | { outcome: DecidedOutcome; isRepeat: boolean; invoice: string }
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
      const recorded = await findEvent(transaction, event);
      if (recorded) {
        return recorded;
      }
      if (event.isTest) {
        return recordTest(transaction, event);
      }
      const earlier = await listEarlier(transaction, event);
      const claimed = await claimedInvoice(transaction, event, earlier);
      if (claimed === undefined) {
        await insertEvent(transaction, event, { outcome: "unmatched" });
        return "unrelated";
      }
      return apply(transaction, event, { claimed, earlier });
    });
}

/**
 * The invoice that an event is of. A refund of Stripe is of the one that has its payment, also where a person recorded it, whichever it names: what has it
 * is paid by what went back. A name of the generic form may be of a transfer that pays several, and each event names one.
 */
async function claimedInvoice(
  transaction: Ledger,
  event: PaymentEvent,
  earlier: readonly EarlierEvent[],
): Promise<string | undefined> {
  if (event.provider !== "stripe" || event.kind === "payment") {
    return event.invoice;
  }
  // What changed an invoice comes first.
  const known = earlier.filter(({ invoice }) => invoice !== undefined);
  return (
    (await findPaidInvoice(transaction, event.reference)) ??
    known.find(isOfItsInvoice)?.invoice ??
    event.invoice ??
    (known.find(({ kind }) => kind === "payment") ?? known[0])?.invoice
  );
}

const isOfItsInvoice = ({ outcome }: EarlierEvent): boolean => outcome === "applied" || outcome === "already";

/** The invoice that has a payment of this name, where it is one alone. */
async function findPaidInvoice(transaction: Ledger, reference: string): Promise<string | undefined> {
  const { rows } = await sql<{ number: string }>`
    select invoice_number as number from invoice_payments where reference = ${reference}
    group by invoice_number having count(*) = 1 limit 2`.execute(transaction);
  return rows.length === 1 ? rows[0]?.number : undefined;
}

/** Whether another invoice has a payment of this name that was not taken back, as one that a person recorded. */
async function isPaidElsewhere(
  transaction: Ledger,
  { reference }: PaymentEvent,
  claimed: string,
): Promise<boolean> {
  const { rows } = await sql`
    select from invoice_payments where reference = ${reference} and invoice_number <> ${claimed}
    group by invoice_number having count(*) = 1 limit 1`.execute(transaction);
  return rows.length > 0;
}

/** One of a test mode says nothing of an invoice, and one that names none is not kept. */
async function recordTest(transaction: Ledger, event: PaymentEvent): Promise<RecordedPaymentEvent> {
  if (event.invoice === undefined) {
    return "unrelated";
  }
  await insertEvent(transaction, event, { claimed: event.invoice, outcome: "test_mode" });
  return { outcome: "test_mode", isRepeat: false, invoice: event.invoice };
}

async function apply(
  transaction: Ledger,
  event: PaymentEvent,
  { claimed, earlier }: { claimed: string; earlier: readonly EarlierEvent[] },
): Promise<RecordedPaymentEvent> {
  const { kind, reference } = event;
  const invoice = await lockInvoice(transaction, claimed);
  const payment = invoice && (await findPayment(transaction, { number: invoice.number, reference }));
  const known: KnownPayment = {
    invoice: invoice && { ...invoice, openCents: openCents(invoice) },
    payment,
    // A name of Stripe's is of one payment, whichever invoice an event of it names.
    earlier: earlier.filter(
      ({ invoice: named }) => event.provider === "stripe" || named === undefined || named === claimed,
    ),
    isElsewhere:
      earlier.some((one) => one.kind === "payment" && isOfItsInvoice(one) && one.invoice !== claimed) ||
      (await isPaidElsewhere(transaction, event, claimed)),
    isByHand:
      kind === "refund" &&
      payment?.isReversed !== false &&
      (await isRecordedByHand(transaction, event, claimed)),
  };
  const outcome = paymentOutcome(event, known);
  if (invoice !== undefined && outcome === "applied") {
    const amountCents = payment?.amountCents ?? openCents(invoice);
    const paidAt = await notAhead(transaction, event.occurredAt);
    const entry = kind === "payment" ? "payment" : "reversal";
    await insertPayment(transaction, { number: invoice.number, reference, amountCents, paidAt }, entry);
    await liftOverdueBlock(transaction, invoice.organizationId);
  }
  await insertEvent(transaction, event, { claimed, number: invoice?.number, outcome });
  return { outcome, isRepeat: false, invoice: claimed };
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
): Promise<RecordedPaymentEvent | undefined> {
  const { rows } = await sql<{ outcome: PaymentOutcome; invoice: string | null }>`
    select outcome, claimed_invoice as invoice from payment_events
    where provider = ${provider} and event_id = ${eventId}`.execute(transaction);
  const [row] = rows;
  if (row === undefined) {
    return undefined;
  }
  const { outcome, invoice } = row;
  return outcome === "unmatched" || invoice === null ? "unrelated" : { outcome, isRepeat: true, invoice };
}

/** Events of one payment that are read: a sender needs a few. */
const MAX_EARLIER = 100;

/** What was reported of the same payment before: first what changed an invoice, then the oldest. */
async function listEarlier(
  transaction: Ledger,
  { provider, reference }: PaymentEvent,
): Promise<EarlierEvent[]> {
  const { rows } = await sql<Omit<EarlierEvent, "invoice"> & { invoice: string | null }>`
    select kind, claimed_invoice as invoice, currency, trim_scale(amount_cents)::text as amount, is_partial as "isPartial", outcome
    from payment_events where provider = ${provider} and reference = ${reference} and outcome <> 'test_mode'
    order by outcome = 'applied' desc, recorded_at limit ${MAX_EARLIER}`.execute(transaction);
  return rows.map((row) => ({ ...row, invoice: row.invoice ?? undefined }));
}

/**
 * Whether a person recorded a payment of this name, or one of this invoice since the provider first reported it. One that an event recorded, or that was
 * taken back, is none.
 */
async function isRecordedByHand(
  transaction: Ledger,
  { provider, reference }: PaymentEvent,
  claimed: string,
): Promise<boolean> {
  const { rows } = await sql<{ found: boolean }>`
    select exists (
      select from (
        select * from invoice_payments where reference = ${reference}
        union all
        select * from invoice_payments where invoice_number = ${claimed} and recorded_at >= (
          select min(recorded_at) from payment_events
            where provider = ${provider} and reference = ${reference} and kind = 'payment'
              and outcome <> 'test_mode')
      ) p
      where p.kind = 'payment'
        and not exists (select from invoice_payments r
          where r.invoice_number = p.invoice_number and r.reference = p.reference and r.kind = 'reversal')
        and not exists (select from payment_events e
          where e.invoice_number = p.invoice_number and e.reference = p.reference and e.outcome = 'applied')) as found`.execute(
    transaction,
  );
  return rows[0]?.found ?? false;
}

async function insertEvent(
  transaction: Ledger,
  event: PaymentEvent,
  { claimed, number, outcome }: { claimed?: string; number?: string | undefined; outcome: PaymentOutcome },
): Promise<void> {
  await sql`
    insert into payment_events (provider, event_id, event_type, kind, claimed_invoice, invoice_number, reference, currency,
      amount_cents, is_partial, outcome, occurred_at)
    values (${event.provider}, ${event.eventId}, ${event.eventType}, ${event.kind}, ${claimed ?? null}, ${number ?? null},
      ${event.reference}, ${event.currency}, ${event.amount}::numeric, ${event.isPartial ?? false}, ${outcome},
      ${event.occurredAt})`.execute(transaction);
}
