import { words } from "./format.ts";
import type { InvoiceLine } from "./shapes.ts";

/** An invoice in words, and its documents. Pure. */

/** Most lines of one document. */
export const DOCUMENT_LINES = 10_000;

/** The parts of which documents of so many lines are: page of the API, and which lines it has. */
export function documentParts(lines: number): [page: string, name: string][] {
  const parts = Math.max(1, Math.ceil(lines / DOCUMENT_LINES));
  return Array.from({ length: parts }, (_, index) => {
    const first = index * DOCUMENT_LINES + 1;
    return [String(index + 1), `${first} to ${Math.min(lines, first + DOCUMENT_LINES - 1)}`];
  });
}

/** Name of a document's file: numbers of invoices are digits, and nothing else of one is used. */
export const fileName = (invoice: string, page: string, parts: number): string =>
  `invoice-${invoice.replace(/[^0-9-]/g, "")}${parts > 1 ? `-${page}` : ""}.csv`;

/** What a line is for. */
export const lineKind = ({ kind, adjusts }: Pick<InvoiceLine, "kind" | "adjusts">): string =>
  `${words(kind)}${adjusts ? ", adjustment" : ""}`;

const UNITS: Readonly<Record<string, string>> = {
  minute: "min",
  gb_hour: "GB × h",
  instance_hour: "h",
  term: "",
  credit: "",
};

/** How much of what: `12 min`. */
export const lineQuantity = ({ quantity, unit }: Pick<InvoiceLine, "quantity" | "unit">): string =>
  `${quantity} ${Object.hasOwn(UNITS, unit) ? UNITS[unit] : words(unit)}`.trim();
