import { sql } from "kysely";
import { type Migration, Migrator } from "kysely/migration";
import { endAudits } from "../billing-audit/lock.ts";
import type { Ledger } from "../connect.ts";
import * as organizationsAndCredentials from "./0001-organizations-and-credentials.ts";
import * as writes from "./0002-writes.ts";
import * as deploymentsAndSlots from "./0003-deployments-and-slots.ts";
import * as slotVersions from "./0004-slot-versions.ts";
import * as idempotencyHolders from "./0005-idempotency-holders.ts";
import * as jobRuns from "./0006-job-runs.ts";
import * as metricSamples from "./0007-metric-samples.ts";
import * as builds from "./0008-builds.ts";
import * as organizationUsage from "./0009-organization-usage.ts";
import * as auditPartitions from "./0010-audit-partitions.ts";
import * as revokedUserTokens from "./0011-revoked-user-tokens.ts";
import * as nothingAhead from "./0012-nothing-ahead.ts";
import * as domainReservations from "./0013-domain-reservations.ts";
import * as gitDeliveryQueue from "./0014-git-delivery-queue.ts";
import * as deploymentsOfAProject from "./0015-deployments-of-a-project.ts";
import * as webhooks from "./0016-webhooks.ts";
import * as alertStates from "./0017-alert-states.ts";
import * as emailRecipients from "./0018-email-recipients.ts";
import * as billableChanges from "./0019-billable-changes.ts";
import * as planCharges from "./0020-plan-charges.ts";
import * as usageSums from "./0021-usage-sums.ts";
import * as invoices from "./0022-invoices.ts";
import * as lateChanges from "./0023-late-changes.ts";
import * as meteringCheckpoints from "./0024-metering-checkpoints.ts";
import * as budgets from "./0025-budgets.ts";
import * as paymentEvents from "./0026-payment-events.ts";
import * as billingSeals from "./0027-billing-seals.ts";
import * as resourceCharges from "./0028-resource-charges.ts";

/** Every migration by name, in order. A migration that has been released is never edited; a new one is added. */
export const migrations: Record<string, Migration> = {
  "0001-organizations-and-credentials": organizationsAndCredentials,
  "0002-writes": writes,
  "0003-deployments-and-slots": deploymentsAndSlots,
  "0004-slot-versions": slotVersions,
  "0005-idempotency-holders": idempotencyHolders,
  "0006-job-runs": jobRuns,
  "0007-metric-samples": metricSamples,
  "0008-builds": builds,
  "0009-organization-usage": organizationUsage,
  "0010-audit-partitions": auditPartitions,
  "0011-revoked-user-tokens": revokedUserTokens,
  "0012-nothing-ahead": nothingAhead,
  "0013-domain-reservations": domainReservations,
  "0014-git-delivery-queue": gitDeliveryQueue,
  "0015-deployments-of-a-project": deploymentsOfAProject,
  "0016-webhooks": webhooks,
  "0017-alert-states": alertStates,
  "0018-email-recipients": emailRecipients,
  "0019-billable-changes": billableChanges,
  "0020-plan-charges": planCharges,
  "0021-usage-sums": usageSums,
  "0022-invoices": invoices,
  "0023-late-changes": lateChanges,
  "0024-metering-checkpoints": meteringCheckpoints,
  "0025-budgets": budgets,
  "0026-payment-events": paymentEvents,
  "0027-billing-seals": billingSeals,
  "0028-resource-charges": resourceCharges,
};

/** What a later release has applied is known by its name alone, and never applied or reverted here. */
const OF_A_LATER_RELEASE: Migration = {
  up: () => Promise.reject(new Error("a migration of a later release")),
};

/** No audit of billing runs meanwhile, which reads for hours what a migration may lock. */
const withoutAudits = ({ up }: Migration): Migration => ({
  up: async (db) => {
    await endAudits(db);
    await up(db);
  },
});

/**
 * Those of this release, and those that the ledger has beyond them: during an upgrade, and after one has gone back, processes run on the schema
 * of a later release. What it adds, these do not read; what they need, it keeps (docs/releases/README.md).
 */
async function knownMigrations(ledger: Ledger): Promise<Record<string, Migration>> {
  const { rows } = await sql<{ name: string }>`select name from kysely_migration`.execute(ledger);
  const later = rows.map(({ name }) => name).filter((name) => !(name in migrations));
  return {
    ...Object.fromEntries(Object.entries(migrations).map(([name, own]) => [name, withoutAudits(own)])),
    ...Object.fromEntries(later.map((name) => [name, OF_A_LATER_RELEASE])),
  };
}

/**
 * Migrates the ledger to the newest version. Safe to run from several processes concurrently: kysely's migrator holds a
 * PostgreSQL advisory lock, so one works and the others find nothing left to do. Where there is something to do it ends an audit of billing that
 * runs. Takes two connections.
 *
 * @returns the names of the migrations that this call applied, in order
 * @throws the error of the first migration that failed; it and what follows are not applied
 */
export async function migrateToLatest(ledger: Ledger): Promise<string[]> {
  const migrator = new Migrator({ db: ledger, provider: { getMigrations: () => knownMigrations(ledger) } });
  const { error, results } = await migrator.migrateToLatest();
  if (error) {
    throw error;
  }
  return (results ?? []).map((result) => result.migrationName);
}
