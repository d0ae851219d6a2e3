/** The metrics of every process, as they are registered at its start. */

import { createKubeMetrics, Manager, Store } from "@slipway/controller-runtime";
import type { Backup, Build, Catalog, JobRun, Project } from "@slipway/crds";
import { registerFiles, silentLogger } from "@slipway/process";
import type { Registry } from "prom-client";
import { ApiMetrics } from "../../api-server/src/http/api-metrics.ts";
import { DrainMetrics } from "../../collector/src/drains/metrics.ts";
import { CollectorMetrics, LOG_REFUSALS } from "../../collector/src/metrics.ts";
import { createAlertMetrics } from "../../operator/src/alerts/metrics.ts";
import { createRestartMetric } from "../../operator/src/applications/instance-restarts.ts";
import { RequestScalingMetrics } from "../../operator/src/applications/requests/metrics.ts";
import { createBackupMetrics, registerBackupGauges } from "../../operator/src/backups/metrics.ts";
import { addBilling } from "../../operator/src/billing/billing.ts";
import { addMetering } from "../../operator/src/billing/metering.ts";
import { addSeals } from "../../operator/src/billing/seals.ts";
import { createBudgetMetrics } from "../../operator/src/budgets/metrics.ts";
import { createBuildMetrics } from "../../operator/src/builds/metrics.ts";
import { addInvoices } from "../../operator/src/invoices/invoices.ts";
import { createJobRunMetrics, registerJobRunGauges } from "../../operator/src/jobs/runs/metrics.ts";
import { addObserve } from "../../operator/src/metrics/observe.ts";
import { createWebhookMetrics } from "../../operator/src/notifications/metrics.ts";
import { createClusterStores } from "../../operator/src/organizations/cluster-addresses.ts";
import { addEgressCheck } from "../../operator/src/organizations/egress-check.ts";
import { createOverdueMetrics } from "../../operator/src/overdue/metrics.ts";
import { registerProjectMetrics, TELEMETRY_PREFIX } from "../../operator/src/projects/metrics.ts";
import { registerPlatformBackupMetrics } from "../../operator/src/recovery/metrics.ts";
import { ActivatorMetrics } from "../../operator/src/sleep/activator/metrics.ts";

/** Registries of the operator, the API server and the collector. No process runs, and nothing is connected. */
export function processRegistries(): Registry[] {
  return [
    operatorRegistry(),
    apiRegistry(),
    collectorRegistry(),
    new DrainMetrics().registry,
    new ActivatorMetrics().registry,
  ];
}

function operatorRegistry(): Registry {
  const manager = new Manager({
    clockReferences: () => [],
    telemetryPrefix: TELEMETRY_PREFIX,
    name: "test",
    identity: "test",
    cluster: { url: "http://127.0.0.1:9" },
    log: silentLogger,
  });
  const [projects, runs] = [new Store<Project>(), new Store<JobRun>()];
  createJobRunMetrics(manager.registry);
  createBackupMetrics(manager.registry);
  createBuildMetrics(manager.registry, new Store<Build>());
  registerProjectMetrics(manager.registry, projects);
  registerPlatformBackupMetrics(manager.registry, "/nonexistent");
  createRestartMetric(manager.registry);
  new RequestScalingMetrics(manager.registry);
  createWebhookMetrics(manager.registry);
  createAlertMetrics(manager.registry, () => 0);
  createBudgetMetrics(manager.registry, () => 0);
  createOverdueMetrics(manager.registry, () => 0);
  registerBackupGauges(
    manager.registry,
    { projects, backups: new Store<Backup>() },
    () => true,
    () => new Date(),
  );
  registerJobRunGauges(manager.registry, { projects, runs }, () => new Date());
  const observe = addObserve(manager, {
    cluster: { url: "http://127.0.0.1:9" },
    config: { namespace: "slipway-system", kubelet: { verify: true } },
    storeLog: async () => {},
  });
  addEgressCheck(manager, {
    nodes: observe.nodes,
    children: [],
    cluster: createClusterStores(manager),
    denied: [],
  });
  addBilling(manager, {
    ledger: { record: async () => [], last: async () => undefined, settle: async () => 0 },
    projects,
    catalog: () => ({ storagePlans: [] }),
  });
  const changes = { record: async () => [], last: async () => new Map(), open: async () => [] };
  const charges = {
    toMeter: async () => [],
    histories: async () => [],
    recent: async () => [],
    prices: async () => [],
    recordPrices: async () => false,
    record: async () => ({ recorded: 0, differing: [], stale: [] }),
    recorded: async () => [],
    adjust: async () => 0,
  };
  const catalog = () => ({}) as Catalog;
  addSeals(manager, {
    last: async () => undefined,
    seal: async () => ({ seal: undefined, until: undefined, isMore: false }),
  });
  addInvoices(manager, {
    begin: async () => {},
    due: async () => undefined,
    cycles: async () => [],
    organizations: async () => [],
    issue: async () => undefined,
    complete: async () => {},
  });
  const resources = {
    chargeBuilds: async () => ({ recorded: 0, differing: [], refused: [], isMore: false }),
  };
  addMetering(manager, { ledger: { changes, charges, resources }, projects, catalog, isOn: true });
  manager.addController({ name: "jobrun", reconcile: async () => ({}), sources: [], workers: 1 });
  manager.metrics.leader.set({ name: "slipway-operator" }, 1);
  return manager.registry;
}

/** An API server's, which has answered one request and failed none. */
function apiRegistry(): Registry {
  const metrics = new ApiMetrics({ processMetrics: true });
  createKubeMetrics(metrics.registry);
  registerFiles(metrics.registry, []);
  metrics.watchProjects(() => 0);
  metrics.watchJobRuns(() => 0);
  metrics.watchValkey(() => true);
  metrics.watchLedger(async () => true);
  metrics.watchLedgerStandbys(async () => 1);
  metrics.watchAnalyticsDisk(async () => 1e9);
  metrics.watchRefusedPayments(async () => 0);
  metrics.watchStreams(() => 0);
  metrics.operation("listProjects").observe(200, 0.01);
  metrics.operation("listProjects").observe(500, 0.01);
  return metrics.registry;
}

function collectorRegistry(): Registry {
  const metrics = new CollectorMetrics();
  metrics.watch(() => undefined);
  const ofLogs = new CollectorMetrics(metrics.registry, "slipway_collector_logs", LOG_REFUSALS);
  ofLogs.watch(() => undefined);
  new CollectorMetrics(metrics.registry, "slipway_collector_metrics", []).watch(() => undefined);
  return metrics.registry;
}
