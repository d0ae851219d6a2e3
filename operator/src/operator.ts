/** Puts the operator together: one manager and its controllers. It starts with `manager.run`. */

import type { KubeConfig } from "@kubernetes/client-node";
import {
  type BackoffOptions,
  type ClockReference,
  type KubeClient,
  Manager,
  type ManagerOptions,
} from "@slipway/controller-runtime";
import { annotations, type Catalog, contendersOf, organizationOfNamespace } from "@slipway/crds";
import { type Logger, type MountedFile, sleep } from "@slipway/process";
import type { Tracing } from "@slipway/process/tracing";
import { createBackups } from "./backups/controller.ts";
import { mountedCredentials } from "./backups/s3-store.ts";
import type { BackupSettings } from "./backups/settings.ts";
import { addBilling, type BillingLedger } from "./billing/billing.ts";
import { addBuildController, type BuildOptions } from "./builds/controller.ts";
import type { BuildSettings } from "./builds/settings.ts";
import { connectionOpener } from "./builds/sources.ts";
import type { Config } from "./config.ts";
import { MemberAccess } from "./databases/common/member-access.ts";
import { addDatabaseSamples, type SampleLedger } from "./databases/metrics/add.ts";
import { FullVolumes } from "./databases/metrics/full-volumes.ts";
import type { DatabaseImages } from "./databases/settings.ts";
import { Authority } from "./databases/tls/authority.ts";
import { addDomainClaimController } from "./domains/controller.ts";
import { createIngressProbe, type IngressProbe } from "./domains/ingress-probe.ts";
import { OwnershipChecks } from "./domains/ownership-checks.ts";
import { type ReservationLedger, Reservations } from "./domains/reservations.ts";
import { RouteCheck } from "./domains/route-check.ts";
import { createTxtLookup } from "./domains/txt-lookup.ts";
import { addGitConnectionController } from "./git/controller.ts";
import type { CloseMetering } from "./jobs/deletion.ts";
import { addJobRunController } from "./jobs/runs/controller.ts";
import type { RunLedger } from "./jobs/runs/ports.ts";
import type { StoreRunLog } from "./logs/run-logs.ts";
import { addObserve } from "./metrics/observe.ts";
import { apiserverPeers, createClusterStores, onApiserverMoved } from "./organizations/cluster-addresses.ts";
import { addOrganizationController, createNamespaceStore } from "./organizations/controller.ts";
import { addEgressCheck } from "./organizations/egress-check.ts";
import { projectKinds } from "./project-kinds.ts";
import { addProjectControllers } from "./projects/controller.ts";
import { type OpenDeployments, runDeploymentReaper } from "./projects/deployments/reaper.ts";
import {
  addDeploymentRecords,
  DeploymentRecords,
  type RecordDeployment,
} from "./projects/deployments/records.ts";
import { BuiltPull } from "./projects/images/built-pull.ts";
import { registerProjectMetrics, TELEMETRY_PREFIX } from "./projects/metrics.ts";
import { runQuotaReaper } from "./projects/quotas/reaper.ts";
import { type QuotaLedger, QuotaReservations } from "./projects/quotas/reservations.ts";
import { runUsageReconciler, type UsageLedger } from "./projects/quotas/usage.ts";
import { BY_WANTED_HOST, createProjectStores, type ProjectStores } from "./projects/stores.ts";
import { withBackoff } from "./registry/backoff.ts";
import { ecrLogin, type RegistryLogin } from "./registry/ecr.ts";

export interface OperatorOptions {
  config: Omit<Config, "ledgerUrl" | "catalogFile" | "logLevel">;
  cluster: KubeConfig | { url: string };
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
  builds?: Omit<BuildOptions, "projects" | "settings"> & {
    settings: Pick<MountedFile<BuildSettings>, "current" | "run">;
  };
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
  /** Where storage is charged by the hour, and cycles are settled. */
  billing: BillingLedger;
  /** The ledger's time, with which, as with the apiserver's, this process's must agree for it to lead; not compared without it. */
  ledgerTime?: () => Promise<Date>;
  /** In place of the one that charges a deleted job's storage up to the end. */
  closeMetering?: CloseMetering;
  /** Pauses between two look-ups of a domain's owner, where they are not the defaults. */
  ownershipRetry?: BackoffOptions;
  /** Pauses between two look-ups of a domain that is proved: a day unless given. */
  proofRetry?: BackoffOptions;
  /** Where reservations of custom domains are remembered: each claim counts alone unless given. */
  reservations?: ReservationLedger;
  /** In place of the one that probes `config.ingress.probeUrl`. */
  ingressProbe?: IngressProbe;
  /** In place of the one that logs in to AWS. */
  registryLogin?: RegistryLogin;
  /** Settings of the manager that tests change. */
  manager?: Partial<ManagerOptions>;
}

/** Builds the operator. Nothing is read or written before it runs. */
export function createOperator(options: OperatorOptions): Manager {
  const { config, cluster, identity, log, catalog } = options;
  const manager = new Manager({
    name: "slipway.dev/operator",
    cluster,
    identity,
    log,
    leaderElection: { namespace: config.namespace, name: "slipway-operator" },
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
  const kinds = projectKinds({
    applications: {
      platform: {
        domainZone: config.domainZone,
        reservedHostnames: config.reservedHostnames,
        ingress: config.ingress,
        rolloutDeadlineSeconds: config.rolloutDeadlineSeconds,
        pods: config.tenantPods,
      },
      routeCheck,
    },
    jobs: {
      platform: { ...config.jobs, pods: config.tenantPods },
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
    },
    (listener) => {
      const stops = [
        catalog.onChange(listener),
        databaseImages?.onChange(listener),
        onApiserverMoved(clusterStores, listener),
      ];
      return () => stops.forEach((stop) => void stop?.());
    },
    (listener) => routeCheck.onAnswer(listener),
  );
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
  });
  backups.add();
  addDeploymentRecords(manager, deploymentRecords, { store: stores.projects, projects });
  manager.addRunnable({
    name: "quotas",
    run: (signal) =>
      runQuotaReaper({ quotas, client: manager.client, projects: stores.projects, log }, signal),
  });
  const { usage } = options;
  if (usage) {
    const { projects: all, secrets } = stores;
    manager.addRunnable({
      name: "usage",
      run: (signal) =>
        runUsageReconciler({ ledger: usage, projects: all, secrets, client: manager.client, log }, signal),
    });
  }
  manager.addRunnable({
    name: "deployments",
    run: (signal) =>
      runDeploymentReaper(
        { deployments: options.openDeployments, client: manager.client, projects: stores.projects, log },
        signal,
      ),
  });
  const checkOptions = {
    lookup: createTxtLookup({ servers: config.dnsServers }),
    clock: manager.clock,
    random: manager.random,
    contenders: (hostname: string) => contendersFor(hostname, stores),
  };
  addDomainClaimController(manager, {
    claims: stores.claims,
    projects: stores.projects,
    domainZone: config.domainZone,
    ownership: new OwnershipChecks({ ...checkOptions, retry: options.ownershipRetry }),
    proofs: new OwnershipChecks({ ...checkOptions, retry: options.proofRetry ?? PROOF_RETRY, repeats: true }),
    reservations: new Reservations(options.reservations ?? NO_RESERVATIONS, log),
  });

  if (options.builds) {
    const { settings, ...dependencies } = options.builds;
    addBuildController(manager, {
      ...dependencies,
      projects: stores.projects,
      settings: () => settings.current,
    });
    addGitConnectionController(manager, {
      projects: stores.projects,
      open: connectionOpener({ client: manager.client, ...dependencies.git }),
    });
    manager.addRunnable({
      name: "build-settings",
      leaderOnly: false,
      run: (signal) => settings.run(signal),
    });
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

/** Between two look-ups of a domain that is proved: a day. */
const PROOF_RETRY: BackoffOptions = { baseMs: 86_400_000, maxMs: 86_400_000 };

/** Remembers nothing: each claim counts alone. */
const NO_RESERVATIONS: ReservationLedger = {
  firstClaimOf: async ({ claimedAt }) => claimedAt,
  forget: async () => {},
};

/** Organizations that want a hostname, by a project's spec or since they were refused it over `/v1`. */
function contendersFor(hostname: string, { projects, claims }: ProjectStores): string[] {
  const wanting = projects.byIndex(BY_WANTED_HOST, hostname);
  const claim = claims.get(undefined, hostname);
  return [
    ...wanting.flatMap(({ metadata }) => organizationOfNamespace(metadata.namespace ?? "") ?? []),
    ...(claim ? contendersOf(claim) : []),
  ];
}

function createBuiltPull(
  { client, clock }: Manager,
  { settings, registryKey }: NonNullable<OperatorOptions["builds"]>,
): BuiltPull {
  return new BuiltPull({ client, clock, registryKey, host: () => settings.current.registry.host });
}

/** Follows the list of images, and makes the databases' authority known before the first database. */
function addDatabaseFiles(
  manager: Manager,
  images: NonNullable<OperatorOptions["databaseImages"]>,
  authority: Authority,
): void {
  manager.addRunnable({ name: "database-images", leaderOnly: false, run: (signal) => images.run(signal) });
  manager.addRunnable({
    name: "database-authority",
    run: async (signal) => {
      while (!signal.aborted) {
        try {
          await authority.current();
          return;
        } catch (error) {
          manager.log.error({ err: error }, "the databases' authority cannot be had; trying again");
          await sleep(manager.clock, 5_000, signal);
        }
      }
    },
  });
}
