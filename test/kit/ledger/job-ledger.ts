import { connectLedger, type Ledger, migrateToLatest } from "@slipway/ledger";
import { sql } from "kysely";
import { startPostgres, type TestPostgres } from "../servers/postgresql.ts";

export interface TestJobLedger {
  postgres: TestPostgres;
  ledger: Ledger;
  /** Another process, as it were: a pool of its own. Closed by {@link stop}. */
  connect(): Ledger;
  /** Forgets all runs, charges, cycles and settlements, which nothing but a test may do. */
  empty(): Promise<void>;
  stop(): Promise<void>;
}

/** A ledger in a database whose time zone is not UTC: no cycle may depend on that. */
export async function startJobLedger(): Promise<TestJobLedger> {
  const postgres = await startPostgres();
  const pools: Ledger[] = [];
  const connect = () => {
    const ledger = connectLedger({ url: postgres.url, applicationName: "test" });
    pools.push(ledger);
    return ledger;
  };
  const first = connect();
  await sql`alter database slipway set timezone to 'America/Sao_Paulo'`.execute(first);
  await first.destroy();
  pools.length = 0;
  const ledger = connect();
  await migrateToLatest(ledger);
  return {
    postgres,
    ledger,
    connect,
    empty: () =>
      ledger.transaction().execute(async (transaction) => {
        await sql`set local session_replication_role = replica`.execute(transaction);
        await sql`
          truncate job_runs, job_run_logs, charges, storage_hours, settlements, billing_cycles, retirements,
            billable_changes, price_lists, plan_charges, plan_meters, ended_builds, usage_by_project, usage_by_day, invoicing, invoice_cycles, document_numbers, invoices,
            invoice_lines, invoice_charges, invoice_payments, credit_notes, organization_countries,
            payment_events, unpaid_invoices, overdue_notices, overdue_waivers, overdue_blocks, billing_seals, billing_seal_leaves`.execute(
          transaction,
        );
      }),
    stop: async () => {
      await Promise.all(pools.map((pool) => pool.destroy()));
      await postgres.stop();
    },
  };
}
