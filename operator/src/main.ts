/** The operator process. */

import { hostname } from "node:os";
import { loadClusterConfig } from "@slipway/controller-runtime";
import { parseCatalog } from "@slipway/crds";
import {
  connectLedger,
  firstClaimOf,
  forgetReservation,
  ledgerTime,
  listMetricSamples,
  listOrganizations,
  recordBuild,
  recordBuildLog,
  recordDeployment,
  recordJobRuns,
  recordMetricSamples,
  storeJobRunLog,
} from "@slipway/ledger";
import {
  ConfigError,
  collectProcessMetrics,
  createLogger,
  MountedFile,
  registerFiles,
  shutdownSignal,
} from "@slipway/process";
import { openTracing } from "@slipway/process/tracing";
import { alertLedger, openAlertStore } from "./alerts/ports.ts";
import { parseBackupSettings } from "./backups/settings.ts";
import { ledgerBilling } from "./billing/billing.ts";
import { ledgerMetering } from "./billing/metering.ts";
import { connectSealLedger, ledgerSeals } from "./billing/seals.ts";
import { budgetLedger } from "./budgets/ports.ts";
import { ledgerBuilds } from "./builds/ledger.ts";
import { openMountedBuildFiles } from "./builds/mounted-files.ts";
import { addClusterCheck } from "./cluster-check.ts";
import { type Config, loadConfig } from "./config.ts";
import { parseDatabaseImages } from "./databases/settings.ts";
import { connectInvoiceLedger, ledgerInvoices } from "./invoices/invoices.ts";
import { notificationLedger } from "./notifications/ledger.ts";
import { createOperator } from "./operator.ts";
import { overdueLedger } from "./overdue/overdue.ts";
import { ledgerDeployments } from "./projects/deployments/reaper.ts";
import { ledgerQuotas } from "./projects/quotas/quota-ledger.ts";
import { ledgerUsage } from "./projects/quotas/usage.ts";

async function main(config: Config): Promise<void> {
  const log = createLogger("operator", config.logLevel);
  const ledger = connectLedger({
    url: config.ledgerUrl,
    applicationName: "slipway-operator",
    maxConnections: 4,
    onIdleError: (error) => log.warn({ err: error }, "idle ledger connection lost"),
  });
  // Of an organization with many charges one statement takes long: it delays nothing else on a connection of its own.
  const invoiceLedger = config.invoices && connectInvoiceLedger(config.ledgerUrl, log);
  const sealLedger = connectSealLedger(config.ledgerUrl, log);
  const stopping = shutdownSignal(log);
  const identity = config.podName ?? `${hostname()}-${process.pid}`;
  const tracing = await openTracing(config.tracing, { service: "slipway-operator", instance: identity, log });
  const catalog = await MountedFile.open(config.catalogFile, parseCatalog, log);
  const { imagesFile } = config.databases;
  const { analytics } = config;
  const databaseImages = await MountedFile.openOptional(imagesFile, parseDatabaseImages, log);
  const backups = await MountedFile.openOptional(config.backupsFile, parseBackupSettings, log);
  const buildFiles = config.builds && (await openMountedBuildFiles(config.builds, log));
  const manager = createOperator({
    config,
    log,
    tracing,
    cluster: await loadClusterConfig(),
    identity,
    catalog,
    databaseImages,
    backups,
    builds: buildFiles && {
      ...buildFiles,
      ...ledgerBuilds(ledger),
      record: (row) => recordBuild(ledger, row),
      storeLog: ({ organizationId, projectId, buildId }, lines) =>
        recordBuildLog(ledger, { organizationId, projectId, id: buildId }, lines),
    },
    databaseSamples: {
      record: (rows) => recordMetricSamples(ledger, rows),
      list: () => listMetricSamples(ledger),
    },
    quotas: ledgerQuotas(ledger),
    usage: ledgerUsage(ledger),
    reservations: {
      firstClaimOf: (claim) => firstClaimOf(ledger, claim),
      forget: (claim) => forgetReservation(ledger, claim),
    },
    listOrganizations: async () => (await listOrganizations(ledger)).map(({ id }) => id),
    recordDeployment: (row) => recordDeployment(ledger, row),
    openDeployments: ledgerDeployments(ledger),
    notifications: notificationLedger(ledger),
    alerts: {
      ledger: alertLedger(ledger),
      openStore: analytics && (() => openAlertStore(analytics)),
    },
    budgets: { ledger: budgetLedger(ledger) },
    billing: ledgerBilling(ledger),
    seals: ledgerSeals(sealLedger),
    invoices: config.invoices && invoiceLedger && ledgerInvoices(invoiceLedger, config.invoices),
    overdue: config.overdue && overdueLedger(ledger, config.overdue),
    metering: ledgerMetering(ledger),
    metersPlans: config.metersPlans ?? false,
    ledgerTime: () => ledgerTime(ledger),
    runs: { record: (rows) => recordJobRuns(ledger, rows) },
    storeRunLog: ({ organizationId, projectId, runId, scheduledAt }, text) =>
      storeJobRunLog(
        ledger,
        { organization_id: organizationId, project_id: projectId, id: runId, scheduled_at: scheduledAt },
        text,
      ),
  });
  addClusterCheck(manager, config);
  collectProcessMetrics(manager.registry);
  registerFiles(manager.registry, [catalog, databaseImages, backups, buildFiles?.settings]);
  try {
    log.info({ port: config.metricsPort }, "operator starts");
    await manager.run(stopping);
    log.info({}, "operator stopped");
  } finally {
    await tracing?.close();
    await invoiceLedger?.destroy();
    await sealLedger.destroy();
    await ledger.destroy();
  }
}

try {
  await main(loadConfig(process.env));
} catch (error) {
  // A wrong setting needs no stack trace, and everything else does.
  process.stderr.write(
    `operator: ${error instanceof ConfigError ? error.message : ((error as Error).stack ?? error)}\n`,
  );
  process.exitCode = 1;
}
