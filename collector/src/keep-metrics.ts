import { uptime } from "node:os";
import { join } from "node:path";
import type { AccessEvent, InstanceSample } from "@slipway/analytics";
import {
  type ClusterConfig,
  clusterCredentials,
  Kubelets,
  kubeletTrust,
  type TokenSource,
} from "@slipway/controller-runtime";
import { systemClock } from "@slipway/process";
import { reservedFor } from "./disk-quota.ts";
import { InstanceSampler } from "./instance-sampler.ts";
import { CollectorMetrics } from "./metrics.ts";
import { hasBatches, openRetrying, type Pipeline } from "./pipeline.ts";
import type { PodOwners } from "./pod-owners.ts";
import type { Log, Sink } from "./sender.ts";
import type { CollectorSettings } from "./settings.ts";
import { untilSynced } from "./synced.ts";

export interface KeepMetricsOptions {
  settings: CollectorSettings;
  /** The requests' buffer, which has precedence on the disk. */
  requests: Pick<Pipeline<AccessEvent>, "spool">;
  sink: Sink<InstanceSample>;
  /** Of this node, where instances are sampled. */
  pods: PodOwners | undefined;
  cluster: ClusterConfig;
  metrics: CollectorMetrics;
  log: Log;
}

/**
 * Keeps what projects' instances use until the signal aborts, beside requests and logs and apart from them. Where that is not to be
 * kept any more, what waits of it is sent. Never rejects.
 */
export async function keepMetrics(options: KeepMetricsOptions, signal: AbortSignal): Promise<void> {
  const { settings, log, pods, cluster } = options;
  const folder = join(settings.stateFolder, "metrics");
  if (!settings.metrics && !(await hasBatches(folder))) {
    return;
  }
  const metrics = new CollectorMetrics(options.metrics.registry, "slipway_collector_metrics", []);
  const { maxBufferBytes, keepFreeBytes, metricsBufferBytes } = settings;
  const pipeline = await openRetrying<InstanceSample>(
    {
      ...{ folder, maxBufferBytes: metricsBufferBytes, sink: options.sink, metrics, log },
      keepFreeBytes: reservedFor({ spool: options.requests.spool, maxBufferBytes }, keepFreeBytes),
      endOf: ({ at }) => at,
    },
    signal,
  );
  if (!pipeline) {
    return;
  }
  if (settings.metrics && pods) {
    const { intervalMs, kubelet: address, trust } = settings.metrics;
    // Until then whose pods the kubelet reports is not known.
    await untilSynced(pods, signal);
    const clock = systemClock;
    const kubelets = new Kubelets({
      trust: kubeletTrust(trust, cluster),
      token: ownToken(cluster),
      ...{ clock, userAgent: "slipway.dev/collector", container: "" },
    });
    const { spool, quota } = pipeline;
    const sampler = new InstanceSampler({
      ...{ kubelets, address, pods, intervalMs, spool, quota, metrics, log, clock, uptime },
    });
    await sampler.run(signal);
    await kubelets.close(address);
  } else {
    log.info({ batches: pipeline.spool.count }, "instances are not sampled any more; what waits is sent");
  }
  await pipeline.sending;
}

/** The collector's own token. Its node has it already: the kubelet mounted it, and it goes to no other node. */
function ownToken(cluster: ClusterConfig): TokenSource {
  const credentials = clusterCredentials(cluster, systemClock);
  return {
    async get() {
      const { authorization = "" } = (await credentials.get()).headers;
      return authorization.replace(/^Bearer /, "");
    },
    invalidate: () => credentials.invalidate(),
  };
}
