/** In which form an invoice is answered. */
export const invoiceFormats = ["json", "csv", "html"] as const;
export type InvoiceFormat = (typeof invoiceFormats)[number];

const TYPES: Readonly<Record<string, InvoiceFormat>> = {
  "application/json": "json",
  "text/csv": "csv",
  "text/html": "html",
};

/** A weight of nothing (RFC 9110, 12.4.2). */
const EXCLUDED = /;\s*q\s*=\s*0(?:\.0*)?\s*(?:;|$)/;

/** The form that the query names, or else the first one that `Accept` lists and does not exclude (`q=0`); JSON where it lists none. */
export function formatOf(named: InvoiceFormat | undefined, accept: string | undefined): InvoiceFormat {
  if (named !== undefined) {
    return named;
  }
  const listed = (accept ?? "").toLowerCase().split(",");
  const types = listed.filter((part) => !EXCLUDED.test(part)).map((part) => part.split(";")[0]?.trim() ?? "");
  return types.map((type) => TYPES[type]).find((format) => format !== undefined) ?? "json";
}
