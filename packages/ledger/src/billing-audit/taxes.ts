import { taxCents } from "@slipway/crds";
import type { Ledger } from "../connect.ts";
import { type CreditNote, creditedTaxes, listCreditNotes } from "../credit-notes.ts";
import { type Invoice, listInvoices } from "../invoices.ts";
import type { BillingFinding } from "./findings.ts";
import type { AuditScope } from "./scope.ts";

/** Audits taxes of invoices, and credit notes: by the functions by which they are issued. */

const PAGE = 100;

/** @returns how many invoices there are */
export async function auditTaxes(
  ledger: Ledger,
  { organizationId, from, to }: AuditScope,
  report: (finding: BillingFinding) => void,
): Promise<number> {
  let audited = 0;
  for (let offset = 0; ; offset += PAGE) {
    const { invoices } = await listInvoices(ledger, { organizationId, limit: PAGE, offset });
    for (const invoice of invoices) {
      const cycle = invoice.cycleStart.toISOString().slice(0, 10);
      if (cycle < from || cycle >= to) {
        continue;
      }
      audited += 1;
      for (const { name, rate, cents } of invoice.taxes) {
        const expected = taxCents(invoice.netCents, rate);
        if (cents !== expected) {
          report({
            code: "INVOICE_TAX_DIFFERS",
            organizationId,
            key: `${invoice.number}/${name}`,
            expected: String(expected),
            found: String(cents),
          });
        }
      }
      for (const found of wrongNotes(invoice, await listCreditNotes(ledger, invoice.number))) {
        report({ code: "CREDIT_NOTE_DIFFERS", organizationId, ...found });
      }
    }
    if (invoices.length < PAGE) {
      return audited;
    }
  }
}

/** Credit notes that have other taxes than follow from those before, or credit more than is left. */
export function wrongNotes(
  invoice: Pick<Invoice, "netCents" | "taxes">,
  notes: readonly CreditNote[],
): Pick<BillingFinding, "key" | "expected" | "found">[] {
  let left = invoice.netCents;
  return notes.flatMap((note, index) => {
    const net = note.netCents;
    const isRest = net === left;
    const before = left;
    left -= net;
    const taxes = creditedTaxes(invoice, notes.slice(0, index), { net, isRest });
    const cents = taxes.reduce((sum, tax) => sum + tax.cents, 0n);
    const isSame =
      taxes.length === note.taxes.length &&
      taxes.every(({ name, rate, cents: own }, at) => {
        const other = note.taxes[at];
        return other?.name === name && other.rate === rate && other.cents === own;
      });
    return net <= before && isSame && note.taxCents === cents && note.totalCents === net + cents
      ? []
      : [
          {
            key: note.number,
            expected: `at most ${before} with ${cents} of taxes`,
            found: `${net} with ${note.taxCents} of taxes, total ${note.totalCents}`,
          },
        ];
  });
}
