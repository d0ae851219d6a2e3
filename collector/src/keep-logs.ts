import { join } from "node:path";
import type { AccessEvent, LogEvent } from "@slipway/analytics";
import { systemClock } from "@slipway/process";
import { Collector } from "./collector.ts";
import { reservedFor } from "./disk-quota.ts";
import { LogBounds } from "./log-bounds.ts";
import { CollectorMetrics, LOG_REFUSALS } from "./metrics.ts";
import { hasBatches, openRetrying, type Pipeline } from "./pipeline.ts";
import type { PodOwners } from "./pod-owners.ts";
import { ProjectLogs } from "./project-logs.ts";
import type { Log, Sink } from "./sender.ts";
import type { CollectorSettings, LogSettings } from "./settings.ts";
import { untilSynced } from "./synced.ts";

export interface KeepLogsOptions {
  settings: CollectorSettings;
  /** The requests' buffer, which has precedence on the disk. */
  requests: Pick<Pipeline<AccessEvent>, "spool">;
  sink: Sink<LogEvent>;
  /** Of this node, where logs are kept. */
  pods: PodOwners | undefined;
  metrics: CollectorMetrics;
  log: Log;
}

/**
 * Keeps the logs of projects' instances until the signal aborts, beside the requests and apart from them: what fails here stops
 * none of those. Where no logs are to be kept any more, what waits of them is sent. Never rejects.
 */
export async function keepLogs(options: KeepLogsOptions, signal: AbortSignal): Promise<void> {
  const { settings, log } = options;
  const folder = join(settings.stateFolder, "logs");
  if (!settings.logs && !(await hasBatches(folder))) {
    return;
  }
  const metrics = new CollectorMetrics(options.metrics.registry, "slipway_collector_logs", LOG_REFUSALS);
  const { maxBufferBytes, keepFreeBytes, logBufferBytes } = settings;
  const pipeline = await openRetrying<LogEvent>(
    {
      ...{ folder, maxBufferBytes: logBufferBytes, sink: options.sink, metrics, log },
      keepFreeBytes: reservedFor({ spool: options.requests.spool, maxBufferBytes }, keepFreeBytes),
      endOf: ({ at }) => Number(at.slice(0, -6)),
    },
    signal,
  );
  if (!pipeline) {
    return;
  }
  if (settings.logs && options.pods) {
    await readLogs(settings.logs, pipeline, options.pods, { ...options, metrics }, signal);
  } else {
    log.info({ batches: pipeline.spool.count }, "no logs are kept any more; those that wait are sent");
  }
  await pipeline.sending;
}

async function readLogs(
  { bounds, days }: LogSettings,
  { spool, quota }: Pipeline<LogEvent>,
  pods: PodOwners,
  { settings, metrics, log }: KeepLogsOptions,
  signal: AbortSignal,
): Promise<void> {
  const clock = systemClock;
  // Until then no log has a known owner.
  await untilSynced(pods, signal);
  const find = (uid: string) => pods.find(uid);
  const input = new ProjectLogs({ find, bounds: new LogBounds(bounds), days, metrics, clock });
  const { podLogs } = settings;
  await new Collector<LogEvent>({ spool, quota, metrics, log, clock, podLogs, input }).run(signal);
}
