/** The collector: reads the ingress's access log of this node and writes it to the store. */

import { setTimeout as sleep } from "node:timers/promises";
import { insertEvents, migrate, openStore } from "@slipway/analytics";
import { KubeClient, loadClusterConfig } from "@slipway/controller-runtime";
import { createLogger, shutdownSignal, startOpsServer, systemClock } from "@slipway/process";
import type { AccessLine } from "./access-line.ts";
import { Collector } from "./collector.ts";
import { realDisk } from "./disk.ts";
import { DiskQuota } from "./disk-quota.ts";
import { CollectorMetrics } from "./metrics.ts";
import { createReceiver } from "./otlp-receiver.ts";
import { Resolver } from "./resolver.ts";
import { sendBatches } from "./sender.ts";
import { type CollectorSettings, collectorSettings } from "./settings.ts";
import { Spool } from "./spool.ts";

/** Milliseconds after which the process ends although a batch is still being sent: the next process sends it again. */
const END_MS = 8_000;

async function main(settings: CollectorSettings): Promise<void> {
  const log = createLogger("collector", settings.logLevel);
  const stopping = shutdownSignal(log);
  stopping.addEventListener("abort", () => setTimeout(() => process.exit(0), END_MS).unref());
  const metrics = new CollectorMetrics().withProcess();
  let spool: Spool | undefined;
  let isReading = false;
  metrics.watch(() => spool);
  const ops = await startOpsServer({
    registry: metrics.registry,
    port: settings.metricsPort,
    host: settings.listenAddress,
    health: new Map([["ping", () => true]]),
    ready: new Map([["reading", () => isReading]]),
  });

  spool = await Spool.open(realDisk, settings.stateFolder, Date.now, (file) => {
    metrics.batchLost("damaged");
    log.error({ file }, "a file of the buffer cannot be read");
  });
  const { maxBufferBytes, keepFreeBytes, stateFolder: folder } = settings;
  const quota = new DiskQuota({
    ...{ spool, disk: realDisk, folder, maxBufferBytes, keepFreeBytes },
    ...{ metrics, clock: systemClock },
  });
  const remainingBytes = await quota.remainingBytes();
  log.info({ batches: spool.count, bytes: spool.bytes, maxBufferBytes, remainingBytes }, "buffer opened");
  if (remainingBytes < maxBufferBytes - spool.bytes) {
    log.warn({ remainingBytes }, "the disk has less room than the buffer may take");
  }
  const store = openStore(settings.store);
  const sink = {
    prepare: async () => {
      const applied = await migrate(store);
      if (applied.length > 0) {
        log.info({ applied }, "applied migrations of the store");
      }
    },
    insert: (batch: Parameters<typeof insertEvents>[1]) => insertEvents(store, batch),
  };
  const sending = sendBatches({ spool, sink, metrics, log }, stopping);

  const kube = KubeClient.fromConfig(await loadClusterConfig(), { userAgent: "slipway", timeoutMs: 10_000 });
  const resolver = new Resolver({
    client: kube,
    clock: systemClock,
    systemNamespace: settings.systemNamespace,
    events: {
      onError: ({ resource, error }) => {
        metrics.failed("resolve");
        log.warn({ resource: resource.plural, err: error }, "objects of the cluster cannot be watched");
      },
    },
  });
  const resolving = resolver.run(stopping);
  // Until then a request has no known owner.
  while (!resolver.hasSynced && !stopping.aborted) {
    await sleep(50, undefined, { signal: stopping }).catch(() => undefined);
  }
  const shared = {
    spool,
    quota,
    resolve: (line: AccessLine) => resolver.resolve(line),
    isTrusted: settings.isTrusted,
    metrics,
    log,
    clock: systemClock,
  };
  const { podLogs, source, otlpPort, otlpTokenFile: tokenFile } = settings;
  const collector = new Collector({ ...shared, podLogs, source });
  const receiver = otlpPort === undefined ? undefined : createReceiver({ ...shared, tokenFile });
  receiver?.listen(otlpPort, settings.listenAddress);
  isReading = !stopping.aborted;
  log.info({}, "reading");
  await collector.run(stopping);
  isReading = false;
  receiver?.close();
  await Promise.all([sending, resolving]);
  await Promise.all([store.client.close(), kube.close()]);
  await ops.close();
  log.info({ batches: spool.count }, "ended");
  process.exit(0);
}

try {
  await main(collectorSettings(process.env));
} catch (error) {
  console.error(`slipway collector: ${(error as Error).message}`);
  process.exit(1);
}
