import { sql } from "kysely";
import type { Ledger } from "./connect.ts";

/** What the ledger's clock says. @throws when the database is away */
export async function ledgerTime(ledger: Ledger): Promise<Date> {
  const { rows } = await sql<{ now: Date }>`select clock_timestamp() as now`.execute(ledger);
  const [row] = rows;
  if (!row) {
    throw new Error("the ledger does not say its time");
  }
  return row.now;
}
