import type { WholeInvoice } from "./view.ts";
import { units } from "./view.ts";

/** The lines of an invoice as CSV (RFC 4180), for spreadsheets. */

const HEADER = [
  "invoice",
  "line",
  "project_id",
  "kind",
  "plan",
  "unit",
  "quantity",
  "unit_amount",
  "amount",
  "currency",
  "charges",
  "adjusts",
];

/** What spreadsheets take for a number. */
const NUMBER = /^-?[0-9]+(?:\.[0-9]+)?$/;

/**
 * A cell. Text that a spreadsheet would take for a formula begins with an apostrophe, which it shows as text.
 * https://owasp.org/www-community/attacks/CSV_Injection
 */
export function csvCell(value: string | number): string {
  const text = String(value);
  const safe = !NUMBER.test(text) && /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const row = (cells: readonly (string | number)[]): string => `${cells.map(csvCell).join(",")}\r\n`;

export function invoiceCsv({ invoice, lines }: Pick<WholeInvoice, "invoice" | "lines">): string {
  const rows = lines.map((line) =>
    row([
      invoice.number,
      line.line,
      line.projectId,
      line.kind,
      line.plan ?? "",
      units[line.kind] ?? "",
      line.quantity,
      line.unitPrice,
      line.amount,
      invoice.currency,
      line.chargeCount,
      line.adjusts ? "adjustment" : "",
    ]),
  );
  return row(HEADER) + rows.join("");
}
