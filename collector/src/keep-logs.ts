import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { AccessEvent, LogEvent } from "@slipway/analytics";
import { Backoff, type KubeClient, type ReflectorEvents } from "@slipway/controller-runtime";
import { systemClock } from "@slipway/process";
import { Collector } from "./collector.ts";
import { reservedFor } from "./disk-quota.ts";
import { LogBounds } from "./log-bounds.ts";
import { CollectorMetrics, LOG_REFUSALS } from "./metrics.ts";
import { openPipeline, type Pipeline } from "./pipeline.ts";
import { PodOwners } from "./pod-owners.ts";
import { ProjectLogs } from "./project-logs.ts";
import type { Log, Sink } from "./sender.ts";
import type { CollectorSettings, LogSettings } from "./settings.ts";
import { BATCH } from "./spool-files.ts";

export interface KeepLogsOptions {
  settings: CollectorSettings;
  /** The requests' buffer, which has precedence on the disk. */
  requests: Pick<Pipeline<AccessEvent>, "spool">;
  sink: Sink<LogEvent>;
  kube: KubeClient;
  events: ReflectorEvents;
  metrics: CollectorMetrics;
  log: Log;
}

/** Milliseconds between attempts to open the buffer, first and longest. */
const RETRY = { baseMs: 1_000, maxMs: 30_000 };

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
  const pipeline = await openRetrying(folder, { ...options, metrics }, signal);
  if (!pipeline) {
    return;
  }
  if (settings.logs) {
    await readLogs(settings.logs, pipeline, { ...options, metrics }, signal);
  } else {
    log.info({ batches: pipeline.spool.count }, "no logs are kept any more; those that wait are sent");
  }
  await pipeline.sending;
}

/** Whether something waits, or may: a folder that cannot be read is reported where it is opened. */
async function hasBatches(folder: string): Promise<boolean> {
  return readdir(folder).then(
    (names) => names.some((name) => BATCH.test(name)),
    (error: NodeJS.ErrnoException) => error.code !== "ENOENT",
  );
}

/** @returns undefined once the signal aborts */
async function openRetrying(
  folder: string,
  { settings, requests, sink, metrics, log }: KeepLogsOptions,
  signal: AbortSignal,
): Promise<Pipeline<LogEvent> | undefined> {
  const { maxBufferBytes, keepFreeBytes, logBufferBytes } = settings;
  const backoff = new Backoff(RETRY, Math.random);
  for (let failures = 1; !signal.aborted; failures += 1) {
    try {
      return await openPipeline<LogEvent>(
        {
          ...{ folder, maxBufferBytes: logBufferBytes, sink, metrics, log },
          keepFreeBytes: reservedFor({ spool: requests.spool, maxBufferBytes }, keepFreeBytes),
          endOf: ({ at }) => Number(at.slice(0, -6)),
        },
        signal,
      );
    } catch (error) {
      metrics.failed("write");
      if (failures === 1 || failures % 20 === 0) {
        log.error({ err: error, failures }, "the buffer of logs cannot be opened: logs cannot be read");
      }
      await sleep(backoff.next(), undefined, { signal }).catch(() => undefined);
    }
  }
  return undefined;
}

async function readLogs(
  { bounds, days, node }: LogSettings,
  { spool, quota }: Pipeline<LogEvent>,
  { settings, kube, events, metrics, log }: KeepLogsOptions,
  signal: AbortSignal,
): Promise<void> {
  const clock = systemClock;
  const pods = new PodOwners({ client: kube, clock, node, events });
  const following = pods.run(signal);
  // Until then no log has a known owner.
  while (!pods.hasSynced && !signal.aborted) {
    await sleep(50, undefined, { signal }).catch(() => undefined);
  }
  const find = (uid: string) => pods.find(uid);
  const input = new ProjectLogs({ find, bounds: new LogBounds(bounds), days, metrics, clock });
  const { podLogs } = settings;
  await new Collector<LogEvent>({ spool, quota, metrics, log, clock, podLogs, input }).run(signal);
  await following;
}
