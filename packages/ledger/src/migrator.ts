import { Migrator } from "kysely/migration";
import type { Ledger } from "./connect.ts";
import { migrations } from "./migrations/index.ts";

/**
 * Brings the ledger to the newest migration. Safe to run from several processes at once: kysely's migrator holds a
 * PostgreSQL advisory lock, so one works and the others find nothing left to do.
 *
 * @returns the names of the migrations that this call applied, in order
 * @throws the error of the first migration that failed; it and what follows are not applied
 */
export async function migrateToLatest(ledger: Ledger): Promise<string[]> {
  const migrator = new Migrator({ db: ledger, provider: { getMigrations: async () => migrations } });
  const { error, results } = await migrator.migrateToLatest();
  if (error) {
    throw error;
  }
  return (results ?? []).map((result) => result.migrationName);
}
