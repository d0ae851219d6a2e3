import type { Ledger } from "@slipway/ledger";
import { sql } from "kysely";
import { forge } from "./forge.ts";

const SCHEMA = "slipway_test_saved";
/** Tables in whose rows errors of hours are planted. */
const TABLES = ["plan_charges", "billable_changes", "plan_meters", "usage_by_project", "usage_by_day"];

export interface SavedRows {
  /** Has the rows as they were saved, and no others. */
  restore(): Promise<void>;
  /** Forgets them. */
  forget(): Promise<void>;
}

/** Saves what an organization was charged for plans, column by column. Nothing may record for it until they are restored. */
export async function saveRows(ledger: Ledger, organizationId: string): Promise<SavedRows> {
  const forget = async () => {
    await sql`drop schema if exists ${sql.id(SCHEMA)} cascade`.execute(ledger);
  };
  await forget();
  await sql`create schema ${sql.id(SCHEMA)}`.execute(ledger);
  for (const table of TABLES) {
    await sql`create table ${sql.id(SCHEMA, table)} as
      select * from ${sql.table(table)} where organization_id = ${sql.lit(organizationId)}`.execute(ledger);
  }
  const statements = TABLES.flatMap((table) => [
    `delete from ${table} where organization_id = '${organizationId}'`,
    `insert into ${table} select * from ${SCHEMA}.${table}`,
  ]);
  return {
    restore: () => ledger.transaction().execute((transaction) => forge(transaction, ...statements)),
    forget,
  };
}
