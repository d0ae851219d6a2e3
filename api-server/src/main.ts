import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { freeBytes, openStore } from "@slipway/analytics";
import { defaultRuntimeCatalog, publicRuntimes } from "@slipway/builder";
import { createKubeMetrics, KubeClient, loadClusterConfig, traceRequests } from "@slipway/controller-runtime";
import { findPlan, parseCatalog } from "@slipway/crds";
import { mountedGithubApp } from "@slipway/git";
import {
  connectLedger,
  countRefusedPaymentEvents,
  countSynchronousStandbys,
  listBlockedOrganizations,
} from "@slipway/ledger";
import {
  ConfigError,
  createLogger,
  MountedFile,
  registerFiles,
  startOpsServer,
  withTimeout,
} from "@slipway/process";
import { openTracing } from "@slipway/process/tracing";
import { Analytics } from "./analytics/analytics.ts";
import { buildApp } from "./app.ts";
import { LedgerAuditLog } from "./audit/log.ts";
import { Authenticator, ledgerCredentials } from "./auth/authenticator.ts";
import { ownTokenVerifier, readTokenKey } from "./auth/credentials.ts";
import { FailedAttempts } from "./auth/failed-attempts.ts";
import { anyVerifier, oidcVerifier } from "./auth/oidc.ts";
import { parseBackupDefaults } from "./backups/view.ts";
import { ledgerBuilds, parseBuildSettings } from "./builds/platform.ts";
import { onDelivery } from "./builds/triggered.ts";
import { SharedReads } from "./concurrency.ts";
import { type Config, loadConfig } from "./config.ts";
import { failures } from "./errors/catalog.ts";
import { ExecSessions } from "./exec/sessions.ts";
import { ConnectionStore } from "./git/connection-owners.ts";
import { DeliveryWorker } from "./git/delivery-queue.ts";
import { RepositoryIds } from "./git/repository-ids.ts";
import { gitServers } from "./git/servers.ts";
import { ApiMetrics } from "./http/api-metrics.ts";
import { LoadShedder } from "./http/client-limits.ts";
import { EventStreams } from "./http/event-streams.ts";
import { shutdownInOrder } from "./http/shutdown.ts";
import { traceWrites } from "./http/telemetry.ts";
import { JobRunStore } from "./jobs/store.ts";
import { isLedgerReachable } from "./ledger/availability.ts";
import { LogFollower } from "./logs/follower.ts";
import { ledgerSnapshots } from "./metrics/snapshots.ts";
import { ledgerWebhooks } from "./notifications/store.ts";
import { ledgerUsage } from "./organizations/limits.ts";
import { parseGenericSecrets, parseStripeSecrets } from "./payments/secrets.ts";
import { openPayments } from "./payments/settings.ts";
import type { RateLimit } from "./policy/table.ts";
import { ProjectStore } from "./projects/store.ts";
import { parseDatabaseVersions, supportedTypes, supports } from "./projects/supported-types.ts";
import { scaledLimit } from "./rate-limit/limiter.ts";
import { openShared } from "./rate-limit/valkey.ts";
import type { Services } from "./services.ts";

/** The process of the API server: wires the services, serves, and shuts down in order. */

/** Credentials of one address that may turn out not to be valid, in a minute. */
const FAILED_ATTEMPTS: RateLimit = { limit: 60, windowSeconds: 60, per: "ip" };
/** How long a client waits for the cluster's answer to one call. */
const KUBE_TIMEOUT_MS = 5_000;
/** How long the ledger may take to answer the readiness check. */
const LEDGER_CHECK_MS = 1_000;
/** And for that of the store of network analytics, which cancels a query earlier. */
const ANALYTICS_TIMEOUT_MS = 12_000;
/** How long that store may take to answer how much of its disk is free. */
const ANALYTICS_CHECK_MS = 2_000;

/** Starts the process: wires the services, serves, and ends in order on SIGTERM or SIGINT. */
async function main(config: Config): Promise<void> {
  const logger = createLogger("api-server", config.logLevel);
  const metrics = new ApiMetrics({ processMetrics: true });
  const tokenKey = readTokenKey(config.tokenKeyFile);
  const catalog = await MountedFile.open(config.catalogFile, parseCatalog, logger);
  const { databaseImagesFile, backupsFile, buildsFile } = config;
  const databaseImages = await MountedFile.openOptional(databaseImagesFile, parseDatabaseVersions, logger);
  const backups = await MountedFile.openOptional(backupsFile, parseBackupDefaults, logger);
  const tracing = await openTracing(config.tracing, {
    service: "slipway-api-server",
    instance: hostname(),
    log: logger,
  });
  const { onRequest } = createKubeMetrics(metrics.registry);
  const kube = KubeClient.fromConfig(await loadClusterConfig(), {
    userAgent: "slipway",
    timeoutMs: KUBE_TIMEOUT_MS,
    onRequest: traceRequests(tracing, onRequest, { telemetryPrefix: "slipway" }),
    ...(tracing ? { annotate: traceWrites(tracing) } : {}),
  });
  const git = gitServers({
    allowedHosts: config.gitAllowedHosts,
    ca: config.gitCaFile === undefined ? undefined : readFileSync(config.gitCaFile, "utf8"),
    githubApp: mountedGithubApp(config.githubApp),
  });
  const { stripe: stripeFile, generic: genericFile } = config.paymentSecretsFiles;
  const stripeSecrets = await MountedFile.openOptional(stripeFile, parseStripeSecrets, logger);
  const genericSecrets = await MountedFile.openOptional(genericFile, parseGenericSecrets, logger);
  const buildSettings = await MountedFile.openOptional(buildsFile, parseBuildSettings, logger);
  const store =
    config.analytics && openStore(config.analytics, { timeoutMs: ANALYTICS_TIMEOUT_MS, connections: 16 });
  const analytics = new Analytics(store, config);
  const runtimeCatalog = defaultRuntimeCatalog();
  const streams = new EventStreams();
  const ledger = connectLedger({
    url: config.ledgerUrl,
    applicationName: "slipway-api-server",
    onIdleError: (error) => logger.warn({ err: error }, "ledger connection lost"),
  });
  const { rateLimiter, writes, ...shared } = await openShared(config.valkeyUrl, logger, metrics);
  const projects = new ProjectStore({
    client: kube,
    logger,
    zone: config.domainZone,
    planOf: (plan) => findPlan(catalog.current, plan),
    writes,
  });
  const jobRuns = new JobRunStore({ client: kube, logger, writes });
  const connections = new ConnectionStore({ client: kube, logger });
  const audit = new LedgerAuditLog(ledger, logger, metrics.audit);
  registerFiles(metrics.registry, [
    ...[catalog, databaseImages, backups, buildSettings],
    ...[stripeSecrets, genericSecrets],
  ]);
  if (stripeSecrets || genericSecrets) {
    metrics.watchRefusedPayments(() => withTimeout(countRefusedPaymentEvents(ledger), LEDGER_CHECK_MS));
  }
  metrics.watchProjects(() => projects.size);
  metrics.watchJobRuns(() => jobRuns.size);
  metrics.watchLedger(() => isLedgerReachable(ledger, LEDGER_CHECK_MS));
  metrics.watchLedgerStandbys(() => withTimeout(countSynchronousStandbys(ledger), LEDGER_CHECK_MS));
  if (store) {
    metrics.watchAnalyticsDisk(() => withTimeout(freeBytes(store), ANALYTICS_CHECK_MS));
  }
  metrics.watchStreams(() => streams.size);

  const oidc = oidcVerifier(config.oidcIssuers, {
    onFailure: (issuer, error) => logger.warn({ issuer, err: error }, "keys of an issuer cannot be fetched"),
  });

  const exec = new ExecSessions({
    projects,
    logger,
    listBlocked: (ids) => listBlockedOrganizations(ledger, ids),
    limits: config.exec,
    onEnd: (code) => metrics.execEnded(code),
  });
  metrics.watchExec(() => exec.size);

  const services: Services = {
    logger,
    metrics,
    authenticator: new Authenticator(
      ledgerCredentials(ledger),
      anyVerifier(ownTokenVerifier(tokenKey), oidc),
      undefined,
      new FailedAttempts({ limit: scaledLimit(FAILED_ATTEMPTS, config.rateLimitScale) }),
    ),
    rateLimiter,
    rateLimitScale: config.rateLimitScale,
    audit,
    catalog,
    supports: supports(supportedTypes, () => databaseImages?.current ?? {}),
    projects,
    jobRuns,
    backups: () => backups?.current,
    git,
    repositoryIds: new RepositoryIds(tokenKey),
    connections,
    builds: {
      store: ledgerBuilds(ledger),
      isOffered: () => buildSettings !== undefined,
      hookBase: config.gitHookUrl,
      // Read for each use: it is replaced without a restart.
      registryKey: () =>
        config.registryKeyFile === undefined ? undefined : readFileSync(config.registryKeyFile, "utf8"),
      registryHost: () => buildSettings?.current.registryHost,
      streams,
    },
    runtimes: () => publicRuntimes(runtimeCatalog, buildSettings?.current.baseImages),
    snapshots: ledgerSnapshots(ledger),
    analytics,
    scalesByRequests: config.scalesByRequests,
    logs: new LogFollower({ kube, projects, logger, streams }),
    exec,
    kube,
    environments: new SharedReads(),
    tracing,
    ledger,
    webhooks: ledgerWebhooks(ledger),
    payments: openPayments(
      {
        ...(stripeSecrets ? { stripe: () => stripeSecrets.current } : {}),
        ...(genericSecrets ? { generic: () => genericSecrets.current } : {}),
      },
      config,
    ),
    sendsEmail: config.sendsEmail,
    metersPlans: config.metersPlans,
    usage: ledgerUsage(ledger, catalog),
    domainZone: config.domainZone,
    reservedHostnames: config.reservedHostnames,
    trustedProxies: config.trustedProxies,
    now: () => new Date(),
  };
  const shedder = new LoadShedder();
  metrics.watchLoad(() => shedder.isOverloaded);
  const app = buildApp(services, { shedder });

  let draining = false;
  const stop = new AbortController();
  void catalog.run(stop.signal);
  void databaseImages?.run(stop.signal);
  void backups?.run(stop.signal);
  void buildSettings?.run(stop.signal);
  void stripeSecrets?.run(stop.signal);
  void genericSecrets?.run(stop.signal);
  projects.start();
  jobRuns.start();
  connections.start();
  const deliveries = new DeliveryWorker(
    services.builds.store.deliveries,
    async (delivery, event) => {
      // Which projects an event is of is read from the store: an empty one has it start nothing.
      if (!projects.hasSynced) {
        throw failures.clusterUnavailable(new Error("projects are not read yet"));
      }
      await onDelivery(delivery, event, services);
    },
    logger,
  );
  deliveries.start();
  const ops = await startOpsServer({
    registry: metrics.registry,
    port: config.metricsPort,
    host: config.listenAddress,
    health: new Map([["ping", () => true]]),
    ready: new Map([
      ["serving", () => !draining],
      ["projects", () => projects.hasSynced],
      ["job-runs", () => jobRuns.hasSynced],
      ["git-connections", () => connections.hasSynced],
    ]),
  });
  await app.listen({ port: config.port, host: config.listenAddress });
  logger.info({ port: config.port, metricsPort: config.metricsPort }, "serving");

  shutdownInOrder(logger, {
    drainMs: config.drainSeconds * 1000,
    beginDraining: () => {
      draining = true;
    },
    steps: [
      // Calls that wait for the end of a run would delay the end of this process.
      () => jobRuns.endWaits(),
      () => streams.endAll(),
      () => exec.endAll(),
      () => app.close(),
      () => deliveries.stop(),
      () => shedder.close(),
      () => tracing?.close(),
      () => audit.close(),
      () => shared.close(),
      () => projects.stop(),
      () => jobRuns.stop(),
      () => connections.stop(),
      () => stop.abort(),
      () => analytics.close(),
      () => git.close(),
      () => kube.close(),
      () => ledger.destroy(),
      () => ops.close(),
    ],
  });
}

try {
  await main(loadConfig(process.env));
} catch (error) {
  const line = error instanceof ConfigError ? error.message : (error as Error).stack;
  console.error(`slipway api-server: ${line}`);
  process.exit(1);
}
