import { systemClock } from "@slipway/process";
import { realDisk } from "./disk.ts";
import { DiskQuota } from "./disk-quota.ts";
import type { CollectorMetrics } from "./metrics.ts";
import { type Log, type Sink, sendBatches } from "./sender.ts";
import { Spool } from "./spool.ts";

export interface PipelineOptions<Event extends object> {
  /** Where the batches are. */
  folder: string;
  maxBufferBytes: number;
  keepFreeBytes: () => number;
  sink: Sink<Event>;
  endOf: (event: Event) => number;
  metrics: CollectorMetrics;
  log: Log;
}

/** Batches of one kind of event on the disk, and their way to the store. Each kind has its own: none fills another's. */
export interface Pipeline<Event extends object> {
  spool: Spool<Event>;
  quota: DiskQuota;
  /** Resolves when nothing is being sent any more. */
  sending: Promise<void>;
}

/** Finds what an earlier process left, and sends it and what comes until the signal aborts. */
export async function openPipeline<Event extends object>(
  { folder, maxBufferBytes, keepFreeBytes, sink, endOf, metrics, log }: PipelineOptions<Event>,
  signal: AbortSignal,
): Promise<Pipeline<Event>> {
  const spool = await Spool.open<Event>(realDisk, folder, Date.now, (file) => {
    metrics.batchLost("damaged");
    log.error({ file }, "a file of the buffer cannot be read");
  });
  const quota = new DiskQuota({
    ...{ spool, disk: realDisk, folder, maxBufferBytes, keepFreeBytes },
    ...{ metrics, clock: systemClock },
  });
  const remainingBytes = await quota.remainingBytes();
  log.info({ batches: spool.count, bytes: spool.bytes, maxBufferBytes, remainingBytes }, "buffer opened");
  if (remainingBytes < maxBufferBytes - spool.bytes) {
    log.warn({ remainingBytes }, "the disk has less room than the buffer may take");
  }
  // Last: where something fails before it, it is tried again, and registers these once.
  metrics.watch(() => spool);
  return { spool, quota, sending: sendBatches({ spool, sink, endOf, metrics, log }, signal) };
}
