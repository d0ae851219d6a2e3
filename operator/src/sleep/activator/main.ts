/** Receives requests for projects that sleep, has them woken, and forwards the requests: a process of the platform. */

import { once } from "node:events";
import type { Server } from "node:http";
import { KubeClient, loadClusterConfig } from "@slipway/controller-runtime";
import { createLogger, shutdownSignal, sleep, startOpsServer, systemClock } from "@slipway/process";
import { ActivatorCluster } from "./cluster.ts";
import { ActivatorMetrics } from "./metrics.ts";
import { activatorServer } from "./server.ts";
import { type ActivatorSettings, activatorSettings } from "./settings.ts";
import { Waker } from "./waker.ts";

/** Milliseconds after which the process ends although an exchange has not: longer than the ingress keeps a connection that it does not use. */
const END_MS = 100_000;
const POLL_MS = 500;

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
    isStopping: () => stopping.aborted,
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
  // Connections are not closed here, which the ingress may be using for a request just now: each ends with its next answer, or by the ingress.
  const endsAt = systemClock.monotonic() + END_MS;
  while (systemClock.monotonic() < endsAt && (await connectionsOf(server)) > 0) {
    await sleep(systemClock, POLL_MS, ended.signal);
  }
  server.closeAllConnections();
  server.close();
  ended.abort();
  await following;
  await Promise.all([client.close(), ops.close()]);
  log.info({}, "ended");
  process.exit(0);
}

const connectionsOf = (server: Server): Promise<number> =>
  new Promise((resolve) => server.getConnections((_, count) => resolve(count)));

try {
  await main(activatorSettings(process.env));
} catch (error) {
  console.error(`slipway activator: ${(error as Error).message}`);
  process.exit(1);
}
