import type { Ledger } from "@slipway/ledger";
import { sql } from "kysely";

/** Runs statements in a transaction that nothing but a test may run: without triggers and references, though with checks. */
export async function forge(transaction: Ledger, ...statements: readonly string[]): Promise<void> {
  await sql`set local session_replication_role = replica`.execute(transaction);
  for (const statement of statements) {
    await sql.raw(statement).execute(transaction);
  }
  await sql`set local session_replication_role = origin`.execute(transaction);
}
