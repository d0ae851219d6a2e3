/** In which form an invoice is answered. */
export const invoiceFormats = ["json", "csv", "html"] as const;
export type InvoiceFormat = (typeof invoiceFormats)[number];

const TYPES: Readonly<Record<string, InvoiceFormat>> = {
  "application/json": "json",
  "text/csv": "csv",
  "text/html": "html",
};

/** The form that the query names, or else the first one that `Accept` lists; JSON where it lists none. */
export function formatOf(named: InvoiceFormat | undefined, accept: string | undefined): InvoiceFormat {
  if (named !== undefined) {
    return named;
  }
  const types = (accept ?? "").split(",").map((part) => part.split(";")[0]?.trim().toLowerCase() ?? "");
  return types.map((type) => TYPES[type]).find((format) => format !== undefined) ?? "json";
}
