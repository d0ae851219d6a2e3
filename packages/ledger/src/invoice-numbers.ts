import { sql, type Transaction } from "kysely";
import type { LedgerSchema } from "./schema.ts";

/** Documents that are numbered without gaps, each in a series of its own. */
export type DocumentSeries = "invoice" | "credit_note";

/**
 * The next number of a series in the year of the ledger's clock. Its row stays locked until the transaction ends, and goes back with it: so no
 * number is missing, and none is given twice.
 */
export async function nextNumber(
  transaction: Transaction<LedgerSchema>,
  series: DocumentSeries,
): Promise<string> {
  const { rows } = await sql<{ number: string }>`
    insert into document_numbers as d (series, year, last)
    values (${series}, extract(year from now() at time zone 'UTC'), 1)
    on conflict (series, year) do update set last = d.last + 1
    returning document_number(series, year, last) as number`.execute(transaction);
  const [row] = rows;
  if (!row) {
    throw new Error("the ledger gave no number");
  }
  return row.number;
}
