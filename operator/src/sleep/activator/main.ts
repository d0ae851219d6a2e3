/** Receives requests for projects that sleep, has them woken, and forwards the requests: a process of the platform. */

import { once } from "node:events";
import { KubeClient, loadClusterConfig } from "@slipway/controller-runtime";
import { createLogger, shutdownSignal, startOpsServer, systemClock } from "@slipway/process";
import { ActivatorCluster } from "./cluster.ts";
import { HOLD_MS } from "./connect.ts";
import { ActivatorMetrics } from "./metrics.ts";
import { activatorServer } from "./server.ts";
import { type ActivatorSettings, activatorSettings } from "./settings.ts";
import { Waker } from "./waker.ts";

/** Milliseconds after which the process ends although an exchange has not. */
const END_MS = HOLD_MS + 5_000;

async function main(settings: ActivatorSettings): Promise<void> {
  const log = createLogger("activator", settings.logLevel);
  const stopping = shutdownSignal(log);
  const metrics = new ActivatorMetrics().withProcess();
  const client = KubeClient.fromConfig(await loadClusterConfig(), {
    userAgent: "slipway",
    timeoutMs: 10_000,
  });
  const cluster = new ActivatorCluster({ client, clock: systemClock, log });
  // Requests that are held are answered after SIGTERM, too: what they need goes on until the last one has ended.
  const ended = new AbortController();
  const following = cluster.run(ended.signal);
  const waker = new Waker({
    ...{ clock: systemClock, log, metrics },
    current: (project) => cluster.current(project),
    requestWake: (project, signal) => cluster.requestWake(project, signal),
  });
  const server = activatorServer({
    ...{ metrics, log },
    find: (host) => cluster.find(host),
    current: (project) => cluster.current(project),
    addresses: (project) => cluster.addresses(project),
    changed: (project, signal) => cluster.changed(project, signal),
    wake: (project, isHeld) => waker.wake(project, isHeld, ended.signal),
  });
  const ops = await startOpsServer({
    registry: metrics.registry,
    port: settings.metricsPort,
    host: settings.listenAddress,
    health: new Map([["ping", () => true]]),
    ready: new Map([["watching", () => cluster.hasSynced && !stopping.aborted]]),
  });
  server.listen(settings.port, settings.listenAddress);
  await once(server, "listening");
  log.info({ port: settings.port }, "activator starts");
  if (!stopping.aborted) {
    await once(stopping, "abort");
  }
  setTimeout(() => process.exit(0), END_MS).unref();
  const closed = once(server, "close");
  server.close();
  await closed;
  ended.abort();
  await following;
  await Promise.all([client.close(), ops.close()]);
  log.info({}, "ended");
  process.exit(0);
}

try {
  await main(activatorSettings(process.env));
} catch (error) {
  console.error(`slipway activator: ${(error as Error).message}`);
  process.exit(1);
}
