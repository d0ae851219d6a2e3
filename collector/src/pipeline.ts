import { readdir } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { Backoff } from "@slipway/controller-runtime";
import { systemClock } from "@slipway/process";
import { realDisk } from "./disk.ts";
import { DiskQuota } from "./disk-quota.ts";
import type { CollectorMetrics } from "./metrics.ts";
import { type Log, type Sink, sendBatches } from "./sender.ts";
import { Spool } from "./spool.ts";
import { BATCH } from "./spool-files.ts";

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

/** Milliseconds between attempts to open the buffer, first and longest. */
const RETRY = { baseMs: 1_000, maxMs: 30_000 };

/** The same beside the requests' pipeline, which a buffer that cannot be opened must not stop. @returns undefined once the signal aborts */
export async function openRetrying<Event extends object>(
  options: PipelineOptions<Event>,
  signal: AbortSignal,
): Promise<Pipeline<Event> | undefined> {
  const { folder, metrics, log } = options;
  const backoff = new Backoff(RETRY, Math.random);
  for (let failures = 1; !signal.aborted; failures += 1) {
    try {
      return await openPipeline(options, signal);
    } catch (error) {
      metrics.failed("write");
      if (failures === 1 || failures % 20 === 0) {
        log.error({ err: error, folder, failures }, "a buffer cannot be opened: nothing is read for it");
      }
      await sleep(backoff.next(), undefined, { signal }).catch(() => undefined);
    }
  }
  return undefined;
}

/** Whether something waits, or may: a folder that cannot be read is reported where it is opened. */
export async function hasBatches(folder: string): Promise<boolean> {
  return readdir(folder).then(
    (names) => names.some((name) => BATCH.test(name)),
    (error: NodeJS.ErrnoException) => error.code !== "ENOENT",
  );
}
