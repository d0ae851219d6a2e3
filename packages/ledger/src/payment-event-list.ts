import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import type { Page } from "./invoices.ts";
import type { PaymentEvent, PaymentOutcome } from "./payment-rule.ts";

/** What administrators read of reported payments. */

export interface ListedPaymentEvent extends Pick<PaymentEvent, "provider" | "eventId" | "eventType"> {
  recordedAt: Date;
  /** The invoice that it names, whether there is such a one or not; undefined of a refund that names none. */
  invoice: string | undefined;
  reference: string;
  currency: string;
  /** In hundredths of the currency. */
  amount: string;
  outcome: PaymentOutcome;
}

/** What is neither a payment that an invoice has, nor of another business. */
const isRefused = sql`outcome not in ('applied', 'already', 'unmatched')`;

/** How many events of the last day changed nothing and were to. */
export async function countRefusedPaymentEvents(ledger: Ledger): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from payment_events
    where ${isRefused} and recorded_at > now() - interval '1 day'`.execute(ledger);
  return rows[0]?.count ?? 0;
}

/** Which events are listed: of an invoice where one is given, and those alone that changed nothing and were to. */
export interface ListedPaymentEvents extends Page {
  invoice?: string | undefined;
  refused: boolean;
}

/** Events of payments, the newest first, and whether there are more. */
export async function listPaymentEvents(
  ledger: Ledger,
  { invoice, refused, limit, offset }: ListedPaymentEvents,
): Promise<{ events: ListedPaymentEvent[]; hasMore: boolean }> {
  const own = invoice === undefined ? sql`true` : sql`claimed_invoice = ${invoice}`;
  const { rows } = await sql<Omit<ListedPaymentEvent, "invoice"> & { invoice: string | null }>`
    select recorded_at as "recordedAt", provider, event_id as "eventId", event_type as "eventType", claimed_invoice as invoice,
      reference, currency, trim_scale(amount_cents)::text as amount, outcome
    from payment_events where ${own} and ${refused ? isRefused : sql`true`}
    order by recorded_at desc, provider, event_id limit ${limit + 1} offset ${offset}`.execute(ledger);
  return {
    events: rows.slice(0, limit).map((row) => ({ ...row, invoice: row.invoice ?? undefined })),
    hasMore: rows.length > limit,
  };
}
