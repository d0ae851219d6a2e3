import { sql, type Transaction } from "kysely";
import type { Ledger } from "./connect.ts";
import { findInvoice, type Invoice } from "./invoices.ts";
import { liftOverdueBlock, lockOrganization } from "./overdue.ts";
import type { LedgerSchema } from "./schema.ts";

/** What was paid of an invoice, or given back: an event for each, never changed. */
export interface InvoicePayment {
  kind: "payment" | "reversal";
  /** Names the payment where it was received; with the invoice's number it is recorded once. */
  reference: string;
  amountCents: bigint;
  paidAt: Date;
}

/**
 * `already`: recorded before, as it is given. `differs`: recorded before with another amount. `reversed`: recorded before, and reversed. `exceeds`: more
 * than is open. `unknown`: there is no such invoice, or no payment to reverse.
 */
export type InvoiceOutcome = "recorded" | "already" | "differs" | "reversed" | "exceeds" | "unknown";

export interface ToPay {
  number: string;
  reference: string;
  /** What is open unless given. */
  amountCents?: bigint | undefined;
  /** The ledger's time unless given. */
  paidAt?: Date | undefined;
}

/**
 * Records a payment of an invoice, once by its reference.
 * @throws when the database is away, or the payment is of the future
 */
export function payInvoice(ledger: Ledger, { number, reference, amountCents, paidAt }: ToPay) {
  return withInvoice(ledger, number, async (transaction, invoice): Promise<InvoiceOutcome> => {
    const known = await findPayment(transaction, { number, reference });
    if (known?.isReversed) {
      return "reversed";
    }
    if (known !== undefined) {
      return amountCents === undefined || known.amountCents === amountCents ? "already" : "differs";
    }
    const open = openCents(invoice);
    const amount = amountCents ?? open;
    if (amount > open || amount <= 0n) {
      return "exceeds";
    }
    await insertPayment(transaction, { number, reference, amountCents: amount, paidAt }, "payment");
    return "recorded";
  });
}

/** Records that a payment was given back, or was none. The invoice is open again by its amount; the reference stays used. */
export function reversePayment(ledger: Ledger, { number, reference, paidAt }: Omit<ToPay, "amountCents">) {
  return withInvoice(ledger, number, async (transaction): Promise<InvoiceOutcome> => {
    const known = await findPayment(transaction, { number, reference });
    if (known === undefined) {
      return "unknown";
    }
    const { amountCents } = known;
    const isNew = await insertPayment(transaction, { number, reference, amountCents, paidAt }, "reversal");
    return isNew ? "recorded" : "already";
  });
}

/** What is still to be paid; nothing when more was paid and credited than is on the invoice. */
export function openCents({ totalCents, paidCents, creditedCents }: Invoice): bigint {
  const open = totalCents - paidCents - creditedCents;
  return open > 0n ? open : 0n;
}

/** Payments of an invoice and their reversals, in the order in which they were recorded. */
export async function listInvoicePayments(ledger: Ledger, number: string): Promise<InvoicePayment[]> {
  const { rows } = await sql<{
    kind: InvoicePayment["kind"];
    reference: string;
    amount_cents: string;
    paid_at: Date;
  }>`
    select kind, reference, amount_cents, paid_at from invoice_payments
    where invoice_number = ${number} order by recorded_at, reference, kind`.execute(ledger);
  return rows.map(({ kind, reference, amount_cents, paid_at }) => ({
    kind,
    reference,
    amountCents: BigInt(amount_cents),
    paidAt: paid_at,
  }));
}

/**
 * Runs work on an invoice that no other process pays or credits meanwhile, and unblocks its organization where none is overdue then; `unknown` where
 * there is none.
 */
export async function withInvoice<T>(
  ledger: Ledger,
  number: string,
  work: (transaction: Transaction<LedgerSchema>, invoice: Invoice) => Promise<T>,
): Promise<T | "unknown"> {
  return ledger
    .transaction()
    .setIsolationLevel("read committed")
    .execute(async (transaction) => {
      const invoice = await lockInvoice(transaction, number);
      if (invoice === undefined) {
        return "unknown";
      }
      const outcome = await work(transaction, invoice);
      await liftOverdueBlock(transaction, invoice.organizationId);
      return outcome;
    });
}

/** An invoice that no other transaction pays or credits until the end of this one; undefined where there is none. */
export async function lockInvoice(transaction: Ledger, number: string): Promise<Invoice | undefined> {
  await lockOrganization(transaction, sql`(select organization_id from invoices where number = ${number})`);
  await sql`select from invoices where number = ${number} for update`.execute(transaction);
  return findInvoice(transaction, number);
}

/** A payment of an invoice by its reference, and whether it was taken back. */
export async function findPayment(
  transaction: Ledger,
  { number, reference }: Pick<ToPay, "number" | "reference">,
): Promise<{ amountCents: bigint; isReversed: boolean } | undefined> {
  const { rows } = await sql<{ amount_cents: string; reversed: boolean }>`
    select amount_cents, (select count(*) > 1 from invoice_payments
      where invoice_number = ${number} and reference = ${reference}) as reversed from invoice_payments
    where invoice_number = ${number} and reference = ${reference} and kind = 'payment'`.execute(transaction);
  return rows[0] && { amountCents: BigInt(rows[0].amount_cents), isReversed: rows[0].reversed };
}

/** Records that an invoice was paid, or that a payment was given back. @returns false where it is recorded */
export async function insertPayment(
  transaction: Ledger,
  { number, reference, amountCents, paidAt }: ToPay & { amountCents: bigint },
  kind: InvoicePayment["kind"],
): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`
    insert into invoice_payments (invoice_number, reference, kind, amount_cents, paid_at)
    values (${number}, ${reference}, ${kind}, ${String(amountCents)}, coalesce(${paidAt ?? null}::timestamptz, now()))
    on conflict do nothing`.execute(transaction);
  return numAffectedRows > 0n;
}
