/** Puts the operator together: one manager and its controllers. It starts with `manager.run`. */

import { type ClockReference, type KubeClient, Manager } from "@slipway/controller-runtime";
import { annotations } from "@slipway/crds";
import { addAlerts } from "./alerts/controller.ts";
import { createRestartMetric, InstanceRestarts } from "./applications/instance-restarts.ts";
import { addRequestScaling } from "./applications/requests/add.ts";
import { RequestScaler } from "./applications/requests/request-scaling.ts";
import { createBackups } from "./backups/controller.ts";
import { mountedCredentials } from "./backups/s3-store.ts";
import { addBilling } from "./billing/billing.ts";
import { addMetering } from "./billing/metering.ts";
import { addSeals } from "./billing/seals.ts";
import { addBudgets } from "./budgets/controller.ts";
import { addBuilds, createBuiltPull } from "./builds/controller.ts";
import { LEASE_NAME } from "./config.ts";
import { MemberAccess } from "./databases/common/member-access.ts";
import { addDatabaseFiles } from "./databases/files.ts";
import { addDatabaseSamples } from "./databases/metrics/add.ts";
import { FullVolumes } from "./databases/metrics/full-volumes.ts";
import { Authority } from "./databases/tls/authority.ts";
import { addDomains } from "./domains/controller.ts";
import { createIngressProbe } from "./domains/ingress-probe.ts";
import { RouteCheck } from "./domains/route-check.ts";
import { addInvoices } from "./invoices/invoices.ts";
import { addJobRunController } from "./jobs/runs/controller.ts";
import { addObserve } from "./metrics/observe.ts";
import { addNotifications } from "./notifications/controller.ts";
import type { OperatorOptions } from "./options.ts";
import { apiserverPeers, createClusterStores, onApiserverMoved } from "./organizations/cluster-addresses.ts";
import { addOrganizationController, createNamespaceStore } from "./organizations/controller.ts";
import { addEgressCheck } from "./organizations/egress-check.ts";
import { addOverdue } from "./overdue/overdue.ts";
import { projectKinds } from "./project-kinds.ts";
import { addProjectControllers } from "./projects/controller.ts";
import { addDeploymentRecords, DeploymentRecords } from "./projects/deployments/records.ts";
import { addLedgerRunnables } from "./projects/ledger-runnables.ts";
import { registerProjectMetrics, TELEMETRY_PREFIX } from "./projects/metrics.ts";
import { QuotaReservations } from "./projects/quotas/reservations.ts";
import { createProjectStores } from "./projects/stores.ts";
import { registerPlatformBackupMetrics } from "./recovery/metrics.ts";
import { ecrLogin, withBackoff } from "./registry/ecr.ts";
import { addSleep } from "./sleep/add.ts";
import { addUndelete } from "./undelete/controller.ts";

/** Builds the operator. Nothing is read or written before it runs. */
export function createOperator(options: OperatorOptions): Manager {
  const { config, cluster, identity, log, catalog } = options;
  const manager = new Manager({
    name: "slipway.dev/operator",
    cluster,
    identity,
    log,
    leaderElection: {
      namespace: config.namespace,
      name: LEASE_NAME,
      shard: { ...config.shard, annotation: annotations.shards },
    },
    port: config.metricsPort,
    tracing: options.tracing,
    traceparentAnnotation: annotations.traceparent,
    telemetryPrefix: TELEMETRY_PREFIX,
    clockReferences: options.ledgerTime && clockReferences(options.ledgerTime),
    ...options.manager,
  });

  const namespaces = createNamespaceStore(manager);
  addOrganizationController(manager, namespaces, {
    list: options.listOrganizations,
    dnsNamespace: config.dnsNamespace,
    egressDeniedCidrs: config.egressDeniedCidrs,
    systemNamespace: config.namespace,
    backsUpPlatform: config.platformBackupDir !== undefined,
    deliversLogDrains: config.deliversLogDrains,
    acmeIngressNamespace:
      config.ingress.certificateIssuer === undefined ? undefined : config.ingress.namespace,
    databasesOutside: config.databases.outside.type,
    limits: () => catalog.current.organizationLimits,
    onLimitsChange: (listener) => catalog.onChange(listener),
  });

  const observe = addObserve(manager, { cluster, config, storeLog: options.storeRunLog });

  const stores = createProjectStores(manager, namespaces, config.domainZone, config.ingress.allowList);
  const clusterStores = createClusterStores(manager);
  addEgressCheck(manager, {
    nodes: observe.nodes,
    children: stores.children,
    cluster: clusterStores,
    denied: config.egressDeniedCidrs,
  });
  const meter = addBilling(manager, {
    ledger: options.billing,
    projects: stores.projects,
    catalog: () => catalog.current,
  });
  const billableChanges =
    options.metering &&
    addMetering(manager, {
      ledger: options.metering,
      projects: stores.projects,
      catalog: () => catalog.current,
      isOn: options.metersPlans ?? false,
    });
  if (options.seals) {
    addSeals(manager, options.seals);
  }
  if (options.invoices) {
    addInvoices(manager, options.invoices);
  }
  if (options.overdue) {
    addOverdue(manager, options.overdue);
  }
  const probe =
    options.ingressProbe ??
    (config.ingress.probeUrl ? createIngressProbe(config.ingress.probeUrl) : undefined);
  const quotas = new QuotaReservations(options.quotas, log, () => manager.clock.monotonic());
  const { databaseImages } = options;
  const authority = new Authority({
    client: manager.client,
    clock: manager.clock,
    namespace: config.namespace,
  });
  const backups = createBackups(manager, {
    projects: stores.projects,
    images: () => databaseImages?.current ?? {},
    settings: () => options.backups?.current,
    s3Credentials: mountedCredentials(config.backupsS3Dir),
    onSettingsChange: (listener) => options.backups?.onChange(listener) ?? (() => {}),
  });
  const fullVolumes = new FullVolumes();
  const deploymentRecords = new DeploymentRecords(options.recordDeployment);
  const routeCheck = new RouteCheck(probe, manager.clock);
  const requestScaler = config.requestScaling && new RequestScaler();
  const sleep = config.sleeps
    ? addSleep(manager, {
        namespace: config.namespace,
        projects: () => stores.projects.list(),
        catalog: () => catalog.current,
      })
    : undefined;
  const kinds = projectKinds({
    applications: {
      sleep: options.sleep ?? sleep?.platform,
      platform: {
        domainZone: config.domainZone,
        reservedHostnames: config.reservedHostnames,
        ingress: config.ingress,
        rolloutDeadlineSeconds: config.rolloutDeadlineSeconds,
        templateVersion: config.podTemplateVersion,
        pods: config.tenantPods,
      },
      routeCheck,
      requestScaling: requestScaler,
      restarts: new InstanceRestarts(createRestartMetric(manager.registry), manager.clock),
    },
    jobs: {
      platform: { ...config.jobs, templateVersion: config.podTemplateVersion, pods: config.tenantPods },
      closeMetering: options.closeMetering ?? ((project, signal) => meter.close(project, signal)),
    },
    databases: {
      platform: {
        ...config.databases,
        apiserver: () => {
          const { apiserver: configured } = config.databases;
          return configured ? [configured] : apiserverPeers(clusterStores);
        },
        systemNamespace: config.namespace,
        images: () => databaseImages?.current ?? {},
        templateVersion: config.podTemplateVersion,
      },
      authority,
      restorer: backups.restorer,
      fullVolumes,
      members: new MemberAccess(observe.nodes, manager.clock),
    },
  });
  const projects = addProjectControllers(
    manager,
    {
      stores,
      catalog: () => catalog.current,
      kinds,
      registryLogin: withBackoff(options.registryLogin ?? ecrLogin(), manager.clock),
      builtPull: options.builds && createBuiltPull(manager, options.builds),
      quotas,
      deploymentRecords,
      billableChanges,
      variableRollouts: config.variableRollouts,
    },
    (listener) => {
      const stops = [
        catalog.onChange(listener),
        databaseImages?.onChange(listener),
        onApiserverMoved(clusterStores, listener),
        sleep?.onActivatorMoved(listener),
      ];
      return () => stops.forEach((stop) => void stop?.());
    },
    (listener) => routeCheck.onAnswer(listener),
  );
  billableChanges?.onRecorded((project) => projects.enqueue(project));
  if (requestScaler && config.requestScaling) {
    addRequestScaling(manager, requestScaler, {
      ...{ stores, projects, observer: sleep?.requests },
      ingress: config.ingress,
      settings: config.requestScaling,
    });
  }
  addJobRunController(manager, {
    stores: { projects: stores.projects, nodes: observe.nodes },
    catalog: () => catalog.current,
    onCatalogChange: (listener) => catalog.onChange(listener),
    ledger: options.runs,
    logs: observe.logs,
    samples: observe.samples,
    settings: {
      limitMs: config.jobs.runLimitSeconds * 1_000,
      windowMs: config.jobs.admissionWindowSeconds * 1_000,
      startDeadlineMs: config.jobs.startDeadlineSeconds * 1_000,
    },
    placement: config.tenantPods,
  });
  backups.add();
  addUndelete(manager, { namespaces });
  addDeploymentRecords(manager, deploymentRecords, { store: stores.projects, projects });
  addLedgerRunnables(manager, stores, {
    quotas,
    usage: options.usage,
    deployments: options.openDeployments,
  });
  addDomains(manager, {
    ...stores,
    domainZone: config.domainZone,
    dnsServers: config.dnsServers,
    ownershipRetry: options.ownershipRetry,
    proofRetry: options.proofRetry,
    reservations: options.reservations,
    certificatePeriodsMs: options.certificatePeriodsMs,
  });

  if (options.notifications) {
    addNotifications(manager, {
      ledger: options.notifications,
      stores: { ...stores, backups: backups.backups },
      settings: { ...config.webhooks, deniedCidrs: config.egressDeniedCidrs, smtp: config.smtp },
    });
  }
  if (options.alerts) {
    addAlerts(manager, { ...options.alerts, projects: stores.projects });
  }
  if (options.budgets) {
    addBudgets(manager, { ...options.budgets, projects: stores.projects });
  }
  if (options.builds) {
    addBuilds(manager, options.builds, stores.projects);
  }
  if (options.backups) {
    const settings = options.backups;
    manager.addRunnable({
      name: "backup-settings",
      leaderOnly: false,
      run: (signal) => settings.run(signal),
    });
  }
  if (databaseImages) {
    addDatabaseFiles(manager, databaseImages, authority);
  }
  if (databaseImages && options.databaseSamples) {
    addDatabaseSamples(manager, {
      cluster,
      config,
      ledger: options.databaseSamples,
      authority,
      catalog: () => catalog.current,
      stores: { projects: stores.projects, nodes: observe.nodes },
      fullVolumes,
      projects,
    });
  }
  manager.addRunnable({ name: "catalog", leaderOnly: false, run: (signal) => catalog.run(signal) });
  registerProjectMetrics(manager.registry, stores.projects);
  if (config.platformBackupDir !== undefined) {
    registerPlatformBackupMetrics(manager.registry, config.platformBackupDir);
  }
  return manager;
}

function clockReferences(ledgerTime: () => Promise<Date>) {
  return (client: KubeClient): ClockReference[] => [
    {
      name: "apiserver",
      resolutionMs: 1_000,
      read: (signal) => client.serverTime({ signal, timeoutMs: 5_000 }),
    },
    { name: "ledger", resolutionMs: 1, read: ledgerTime },
  ];
}
