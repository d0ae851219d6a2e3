/** Delivers lines of logs to receivers of organizations: one process of the platform, elected among those that run. */

import { hostname } from "node:os";
import { migrate, openStore } from "@slipway/analytics";
import { KubeClient, LeaderElector, loadClusterConfig } from "@slipway/controller-runtime";
import { LOG_DRAINS } from "@slipway/crds";
import { createLogger, shutdownSignal, sleep, startOpsServer, systemClock } from "@slipway/process";
import { DrainCluster } from "./cluster.ts";
import { Deliverer } from "./deliverer.ts";
import { DrainMetrics } from "./metrics.ts";
import { openReceiver } from "./open-receiver.ts";
import { type DrainSettings, drainSettings } from "./settings.ts";

/** Milliseconds after which the process ends although something is being sent: it is sent again. */
const END_MS = 8_000;

async function main(settings: DrainSettings): Promise<void> {
  const log = createLogger("log-drains", settings.logLevel);
  const stopping = shutdownSignal(log);
  stopping.addEventListener("abort", () => setTimeout(() => process.exit(0), END_MS).unref());
  const metrics = new DrainMetrics().withProcess();
  const kube = KubeClient.fromConfig(await loadClusterConfig(), { userAgent: "slipway", timeoutMs: 10_000 });
  const store = openStore(settings.store);
  const cluster = new DrainCluster({ kube, clock: systemClock, metrics, log });
  const ops = await startOpsServer({
    registry: metrics.registry,
    port: settings.metricsPort,
    host: settings.listenAddress,
    health: new Map([["ping", () => true]]),
    ready: new Map([["watching", () => cluster.hasSynced]]),
  });
  const following = cluster.run(stopping);
  while (!cluster.hasSynced && !stopping.aborted) {
    await sleep(systemClock, 50, stopping);
  }
  const elector = new LeaderElector({
    ...{ client: kube, clock: systemClock, random: Math.random, log, namespace: settings.namespace },
    name: LOG_DRAINS,
    identity: `${hostname()}_${process.pid}`,
  });
  while (!stopping.aborted && (await elector.acquire(stopping))) {
    const leading = new AbortController();
    const signal = AbortSignal.any([stopping, leading.signal]);
    const deliverer = new Deliverer({
      ...{ store, metrics, log, bounds: settings.bounds },
      // The collectors may not have done so yet.
      prepare: async () => void (await migrate(store)),
      drains: () => cluster.list(),
      open: async (drain) => openReceiver(drain, await cluster.credentials(drain), settings),
      nameOf: (organization, project) => cluster.nameOf(organization, project),
      report: (drain, lagMs) => cluster.report(drain, lagMs),
    });
    const delivering = deliverer.run(signal);
    await elector.hold(stopping);
    leading.abort();
    await delivering;
  }
  await elector.release();
  await following;
  await Promise.all([store.client.close(), kube.close(), ops.close()]);
  log.info({}, "ended");
  process.exit(0);
}

try {
  await main(drainSettings(process.env));
} catch (error) {
  console.error(`slipway log-drains: ${(error as Error).message}`);
  process.exit(1);
}
