/** The collector: reads the ingress's access log and projects' logs of this node, and writes them to the store. */

import { randomUUID } from "node:crypto";
import {
  type AccessEvent,
  insertEvents,
  insertLogs,
  insertSamples,
  type LogBatch,
  migrate,
  openStore,
  type SampleBatch,
} from "@slipway/analytics";
import { KubeClient, loadClusterConfig, type ReflectorEvents } from "@slipway/controller-runtime";
import { createLogger, shutdownSignal, startOpsServer, systemClock } from "@slipway/process";
import type { AccessLine } from "./access-line.ts";
import { accessLog } from "./access-log.ts";
import { Collector } from "./collector.ts";
import { keepLogs } from "./keep-logs.ts";
import { keepMetrics } from "./keep-metrics.ts";
import { CollectorMetrics } from "./metrics.ts";
import { createReceiver } from "./otlp-receiver.ts";
import { openPipeline } from "./pipeline.ts";
import { PodOwners } from "./pod-owners.ts";
import { RequestCounts } from "./request-counts.ts";
import { Resolver } from "./resolver.ts";
import { type CollectorSettings, collectorSettings } from "./settings.ts";
import { untilSynced } from "./synced.ts";
import type { Owner } from "./traefik-names.ts";

/** Milliseconds after which the process ends although a batch is still being sent: the next process sends it again. */
const END_MS = 8_000;

async function main(settings: CollectorSettings): Promise<void> {
  const log = createLogger("collector", settings.logLevel);
  const stopping = shutdownSignal(log);
  stopping.addEventListener("abort", () => setTimeout(() => process.exit(0), END_MS).unref());
  const metrics = new CollectorMetrics().withProcess();
  let isReading = false;
  let collector: Collector<AccessEvent> | undefined;
  const counts = new RequestCounts({
    process: randomUUID(),
    clock: systemClock,
    isReading: () => isReading && collector?.isReading === true,
  });
  const ops = await startOpsServer({
    registry: metrics.registry,
    port: settings.metricsPort,
    host: settings.listenAddress,
    health: new Map([["ping", () => true]]),
    ready: new Map([["reading", () => isReading]]),
    json: new Map([["/requests", () => counts.answer()]]),
  });

  const store = openStore(settings.store);
  const prepare = async () => {
    const applied = await migrate(store);
    if (applied.length > 0) {
      log.info({ applied }, "applied migrations of the store");
    }
  };
  const { maxBufferBytes, keepFreeBytes, stateFolder: folder, podLogs, source } = settings;
  const requests = await openPipeline<AccessEvent>(
    {
      ...{ folder, maxBufferBytes, keepFreeBytes: () => keepFreeBytes, metrics, log },
      sink: { prepare, insert: (batch) => insertEvents(store, batch) },
      endOf: ({ at, latencyUs }) => at + latencyUs / 1000,
    },
    stopping,
  );

  const cluster = await loadClusterConfig();
  const kube = KubeClient.fromConfig(cluster, { userAgent: "slipway", timeoutMs: 10_000 });
  const events: ReflectorEvents = {
    onError: ({ resource, error }) => {
      metrics.failed("resolve");
      log.warn({ resource: resource.plural, err: error }, "objects of the cluster cannot be watched");
    },
  };
  const { systemNamespace, isTrusted, otlpPort, otlpTokenFile: tokenFile } = settings;
  const resolver = new Resolver({ client: kube, clock: systemClock, systemNamespace, events });
  const resolving = resolver.run(stopping);
  const pods = podsOf(settings, kube, events);
  const beside = { settings, requests, pods, metrics, log };
  const keeping = [
    pods?.run(stopping),
    keepLogs(
      { ...beside, sink: { prepare, insert: (batch: LogBatch) => insertLogs(store, batch) } },
      stopping,
    ),
    keepMetrics(
      { ...beside, cluster, sink: { prepare, insert: (batch: SampleBatch) => insertSamples(store, batch) } },
      stopping,
    ),
  ];
  // Until then a request has no known owner.
  await untilSynced(resolver, stopping);
  const shared = { ...requests, metrics, log, clock: systemClock };
  const resolve = (line: AccessLine) => resolver.resolve(line);
  const onRequest = (owner: Owner, endedAt: number) => counts.add(owner, endedAt);
  const onGap = () => counts.behind();
  const input = accessLog({ source, resolve, isTrusted, metrics, clock: systemClock, onRequest, onGap });
  collector = new Collector({ ...shared, podLogs, input });
  const receiver =
    otlpPort === undefined ? undefined : createReceiver({ ...shared, resolve, isTrusted, tokenFile });
  receiver?.listen(otlpPort, settings.listenAddress);
  isReading = !stopping.aborted;
  log.info({}, "reading");
  await collector.run(stopping);
  isReading = false;
  receiver?.close();
  await Promise.all([requests.sending, resolving, ...keeping]);
  await Promise.all([store.client.close(), kube.close()]);
  await ops.close();
  log.info({ batches: requests.spool.count }, "ended");
  process.exit(0);
}

/** The instances of this node; undefined where neither their logs nor what they use is kept. */
function podsOf(
  { node, logs, metrics }: CollectorSettings,
  client: KubeClient,
  events: ReflectorEvents,
): PodOwners | undefined {
  if (node === undefined || !(logs || metrics)) {
    return undefined;
  }
  return new PodOwners({ client, clock: systemClock, node, events, withRestarts: metrics !== undefined });
}

try {
  await main(collectorSettings(process.env));
} catch (error) {
  console.error(`slipway collector: ${(error as Error).message}`);
  process.exit(1);
}
