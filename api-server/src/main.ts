import { findPlan, parseCatalog } from "@slipway/crds";
import { KubeClient, loadKubeConfig, MountedFile } from "@slipway/kube";
import { connectLedger } from "@slipway/ledger";
import { buildApp } from "./app.ts";
import { LedgerAuditLog } from "./audit-log.ts";
import { Authenticator, ledgerCredentials } from "./auth/authenticator.ts";
import { anyVerifier, oidcVerifier } from "./auth/oidc.ts";
import { readTokenKey } from "./auth/token-key.ts";
import { ownTokenVerifier } from "./auth/user-token.ts";
import { type Config, ConfigError, loadConfig } from "./config.ts";
import { createLogger } from "./logger.ts";
import { ApiMetrics } from "./metrics.ts";
import { createOpsServer } from "./ops-server.ts";
import { ProjectStore } from "./projects/store.ts";
import { openShared } from "./rate-limit/open.ts";
import { shutdownInOrder } from "./shutdown.ts";

/** How long a client waits for the cluster's answer to one call. */
const KUBE_TIMEOUT_MS = 5_000;

/** Starts the process: wires the services, serves, and ends in order on SIGTERM or SIGINT. */
async function main(config: Config): Promise<void> {
  const logger = createLogger(config.logLevel);
  const metrics = new ApiMetrics({ processMetrics: true });
  const tokenKey = readTokenKey(config.tokenKeyFile);
  const catalog = await MountedFile.open(config.catalogFile, parseCatalog, logger);
  const kube = KubeClient.fromConfig(loadKubeConfig(), { timeoutMs: KUBE_TIMEOUT_MS });
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
    limitsOf: (plan) => findPlan(catalog.current, plan)?.resources.limits,
    writes,
  });
  const audit = new LedgerAuditLog(ledger, logger, () => metrics.auditLineLost());
  metrics.watchProjects(() => projects.size);

  const oidc = oidcVerifier(config.oidcIssuers, {
    onFailure: (issuer, error) => logger.warn({ issuer, err: error }, "keys of an issuer cannot be fetched"),
  });

  const app = buildApp({
    logger,
    metrics,
    authenticator: new Authenticator(
      ledgerCredentials(ledger),
      anyVerifier(ownTokenVerifier(tokenKey), oidc),
    ),
    rateLimiter,
    rateLimitScale: config.rateLimitScale,
    audit,
    catalog,
    projects,
    kube,
    ledger,
    domainZone: config.domainZone,
    reservedHostnames: config.reservedHostnames,
    trustedProxies: config.trustedProxies,
    now: () => new Date(),
  });

  let draining = false;
  const ops = createOpsServer({
    registry: metrics.registry,
    isReady: () => !draining && projects.hasSynced,
  });
  const stop = new AbortController();
  void catalog.run(stop.signal);
  projects.start();
  ops.listen(config.metricsPort, config.listenAddress);
  await app.listen({ port: config.port, host: config.listenAddress });
  logger.info({ port: config.port, metricsPort: config.metricsPort }, "serving");

  shutdownInOrder(logger, {
    drainMs: config.drainSeconds * 1000,
    beginDraining: () => {
      draining = true;
    },
    steps: [
      () => app.close(),
      () => audit.close(),
      () => shared.close(),
      () => projects.stop(),
      () => stop.abort(),
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
