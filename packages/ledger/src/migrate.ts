import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { connectLedger, type Ledger } from "./connect.ts";
import { migrateToLatest } from "./migrations/index.ts";

const WAIT_LIMIT_MS = 300_000;
const RETRY_MS = 1_000;

/** Waits until the database answers a query, saying so every time it does not. */
async function waitForDatabase(ledger: Ledger): Promise<void> {
  const started = performance.now();
  for (;;) {
    try {
      await sql`select 1`.execute(ledger);
      return;
    } catch (error) {
      const seconds = Math.round((performance.now() - started) / 1000);
      const reason = error instanceof Error ? error.message || error.name : String(error);
      if (performance.now() - started > WAIT_LIMIT_MS) {
        throw error;
      }
      console.log(`ledger: waiting for the database (${seconds} s): ${reason}`);
      await sleep(RETRY_MS);
    }
  }
}

const url = process.env.SLIPWAY_LEDGER_URL;
if (!url) {
  console.error("ledger: SLIPWAY_LEDGER_URL is not set");
  process.exit(2);
}
const ledger = connectLedger({
  url,
  applicationName: "slipway-migrate",
  maxConnections: 2,
  statementTimeoutMs: 0,
});
try {
  await waitForDatabase(ledger);
  const applied = await migrateToLatest(ledger);
  for (const name of applied) {
    console.log(`ledger: applied ${name}`);
  }
  console.log(`ledger: up to date, ${applied.length} applied`);
} catch (error) {
  console.error("ledger: migration failed:", error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await ledger.destroy();
}
