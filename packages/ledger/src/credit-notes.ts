import { type TaxLine, taxCents } from "@slipway/crds";
import { sql } from "kysely";
import type { Ledger } from "./connect.ts";
import { taxesJson } from "./invoice-issue.ts";
import { nextNumber } from "./invoice-numbers.ts";
import { type InvoiceOutcome, withInvoice } from "./invoice-payments.ts";
import { type Invoice, type StoredTax, taxLineOf } from "./invoices.ts";

/** Corrects an invoice, which itself never changes: a document of its own, with a number of its own series. */
export interface CreditNote {
  number: string;
  invoiceNumber: string;
  reference: string;
  reason: string;
  issuedAt: Date;
  netCents: bigint;
  taxes: TaxLine[];
  taxCents: bigint;
  totalCents: bigint;
}

export interface ToCredit {
  number: string;
  /** With the invoice's number it is issued once. */
  reference: string;
  reason: string;
  /** Without taxes; all that is not credited yet unless given. */
  netCents?: bigint | undefined;
}

/**
 * Issues a credit note, once by its reference, with its part of each tax of the invoice. The last one has what earlier ones left of a tax.
 * @throws when the database is away
 */
export function issueCreditNote(
  ledger: Ledger,
  { number, reference, reason, netCents }: ToCredit,
): Promise<{ outcome: InvoiceOutcome; note?: CreditNote } | "unknown"> {
  return withInvoice(ledger, number, async (transaction, invoice) => {
    const notes = await listCreditNotes(transaction, number);
    const known = notes.find((note) => note.reference === reference);
    if (known !== undefined) {
      const isSame = (netCents === undefined || netCents === known.netCents) && reason === known.reason;
      return { outcome: isSame ? "already" : "differs", note: known };
    }
    const left = invoice.netCents - notes.reduce((sum, note) => sum + note.netCents, 0n);
    const net = netCents ?? left;
    if (net > left || net <= 0n) {
      return { outcome: "exceeds" };
    }
    const taxes = creditedTaxes(invoice, notes, { net, isRest: net === left });
    const tax = taxes.reduce((sum, { cents }) => sum + cents, 0n);
    const own = await nextNumber(transaction, "credit_note");
    await sql`
      insert into credit_notes (number, invoice_number, reference, reason, net_cents, taxes, tax_cents, total_cents)
      values (${own}, ${number}, ${reference}, ${reason}, ${String(net)}, ${taxesJson(taxes)}::jsonb, ${String(tax)},
        ${String(net + tax)})`.execute(transaction);
    const note = (await listCreditNotes(transaction, number)).find((one) => one.number === own);
    return { outcome: "recorded", ...(note === undefined ? {} : { note }) };
  });
}

/** The part of each tax, rounded as on an invoice, and never more than is left of it. */
export function creditedTaxes(
  { taxes }: Pick<Invoice, "taxes">,
  notes: readonly Pick<CreditNote, "taxes">[],
  { net, isRest }: { net: bigint; isRest: boolean },
): TaxLine[] {
  return taxes.map((tax, index) => {
    const left = tax.cents - notes.reduce((sum, note) => sum + (note.taxes[index]?.cents ?? 0n), 0n);
    const part = taxCents(net, tax.rate);
    return { ...tax, cents: isRest || part > left ? left : part };
  });
}

/** Credit notes of an invoice, by their numbers: one has the tax that those before left, and `issued_at` is when its transaction began. */
export async function listCreditNotes(ledger: Ledger, invoiceNumber: string): Promise<CreditNote[]> {
  const { rows } = await sql<{
    number: string;
    reference: string;
    reason: string;
    issued_at: Date;
    net_cents: string;
    taxes: StoredTax[];
    tax_cents: string;
    total_cents: string;
  }>`
    select number, reference, reason, issued_at, net_cents, taxes, tax_cents, total_cents from credit_notes
    where invoice_number = ${invoiceNumber} order by split_part(number, '-', 2), length(number), number`.execute(
    ledger,
  );
  return rows.map((row) => ({
    number: row.number,
    invoiceNumber,
    reference: row.reference,
    reason: row.reason,
    issuedAt: row.issued_at,
    netCents: BigInt(row.net_cents),
    taxes: row.taxes.map(taxLineOf),
    taxCents: BigInt(row.tax_cents),
    totalCents: BigInt(row.total_cents),
  }));
}
