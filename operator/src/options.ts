import type { BackoffOptions, ClusterConfig, ManagerOptions } from "@slipway/controller-runtime";
import type { Catalog } from "@slipway/crds";
import type { Logger, MountedFile } from "@slipway/process";
import type { Tracing } from "@slipway/process/tracing";
import type { AlertOptions } from "./alerts/controller.ts";
import type { BackupSettings } from "./backups/settings.ts";
import type { BillingLedger } from "./billing/billing.ts";
import type { MeteringLedger } from "./billing/metering.ts";
import type { SealLedger } from "./billing/seals.ts";
import type { BudgetOptions } from "./budgets/controller.ts";
import type { BuildsOptions } from "./builds/controller.ts";
import type { Config } from "./config.ts";
import type { SampleLedger } from "./databases/metrics/add.ts";
import type { DatabaseImages } from "./databases/settings.ts";
import type { IngressProbe } from "./domains/ingress-probe.ts";
import type { ReservationLedger } from "./domains/reservations.ts";
import type { InvoiceLedger } from "./invoices/invoices.ts";
import type { CloseMetering } from "./jobs/deletion.ts";
import type { RunLedger } from "./jobs/runs/ports.ts";
import type { StoreRunLog } from "./logs/run-logs.ts";
import type { NotificationLedger } from "./notifications/ledger.ts";
import type { OverdueLedger } from "./overdue/overdue.ts";
import type { OpenDeployments } from "./projects/deployments/reaper.ts";
import type { RecordDeployment } from "./projects/deployments/records.ts";
import type { QuotaLedger } from "./projects/quotas/quota-ledger.ts";
import type { UsageLedger } from "./projects/quotas/usage.ts";
import type { RegistryLogin } from "./registry/ecr.ts";
import type { SleepPlatform } from "./sleep/steps.ts";

export interface OperatorOptions {
  config: Omit<Config, "ledgerUrl" | "catalogFile" | "logLevel">;
  cluster: ClusterConfig | { url: string };
  /** Unique name of this process. */
  identity: string;
  log: Logger;
  /** Traces of requests of `/v1`; there are none without it. */
  tracing?: Tracing;
  catalog: Pick<MountedFile<Catalog>, "current" | "onChange" | "run">;
  /** Images of the databases' engines; without them no database is reconciled. */
  databaseImages?: Pick<MountedFile<DatabaseImages>, "current" | "onChange" | "run">;
  /** How databases are backed up; without it they are not. */
  backups?: Pick<MountedFile<BackupSettings>, "current" | "onChange" | "run">;
  /** How projects are built from Git; without it they are not. */
  builds?: BuildsOptions;
  /** Where samples of databases are recorded; without it there are none. */
  databaseSamples?: SampleLedger;
  /** Reads the ids of all organizations. */
  listOrganizations: () => Promise<string[]>;
  /** Writes a deployment into the ledger. */
  recordDeployment: RecordDeployment;
  /** Deployments whose end the ledger does not have. */
  openDeployments: OpenDeployments;
  /** Counts what organizations and plans have only so many of. */
  quotas: QuotaLedger;
  /** The account of what organizations use of their limits; not kept unless given. */
  usage?: UsageLedger;
  /** Where runs are charged. */
  runs: RunLedger;
  /** Writes the end of a run's log into the ledger. */
  storeRunLog: StoreRunLog;
  /** Webhooks and what is delivered to them; without it there are none. */
  notifications?: NotificationLedger;
  /** Where states of projects' alerts are, and what is measured; without it there are none. */
  alerts?: Omit<AlertOptions, "projects">;
  /** Where budgets of organizations are, and what is charged; without it none is compared. */
  budgets?: Omit<BudgetOptions, "projects">;
  /** Where storage is charged by the hour, and cycles are settled. */
  billing: BillingLedger;
  /** What plans are metered in; without it nothing of them is recorded. */
  metering?: MeteringLedger | undefined;
  /** Where what money follows from is sealed; without it nothing is. */
  seals?: SealLedger | undefined;
  /** Where invoices are issued; without it none are. */
  invoices?: InvoiceLedger | undefined;
  /** Where overdue invoices block organizations; without it they never do. */
  overdue?: OverdueLedger | undefined;
  /** Whether plans are metered; false unless given: only ends of histories that have begun are recorded. */
  metersPlans?: boolean | undefined;
  /** The ledger's time, with which, as with the apiserver's, this process's must agree for it to lead; not compared without it. */
  ledgerTime?: () => Promise<Date>;
  /** In place of the one that charges a deleted job's storage up to the end. */
  closeMetering?: CloseMetering;
  /** Pauses between two look-ups of a domain's owner, where they are not the defaults. */
  ownershipRetry?: BackoffOptions;
  /** Pauses between two look-ups of a domain that is proved: a day unless given. */
  proofRetry?: BackoffOptions;
  /** Milliseconds between two reads of a certificate that is waited for, and of one that is in place: a minute and an hour unless given. */
  certificatePeriodsMs?: { pending_issuance: number; active: number };
  /** Where reservations of custom domains are remembered: each claim counts alone unless given. */
  reservations?: ReservationLedger;
  /** In place of the one that probes `config.ingress.probeUrl`. */
  ingressProbe?: IngressProbe;
  /** In place of what `config.sleep` names. */
  sleep?: SleepPlatform;
  /** In place of the one that logs in to AWS. */
  registryLogin?: RegistryLogin;
  /** Settings of the manager that tests change. */
  manager?: Partial<ManagerOptions>;
}
