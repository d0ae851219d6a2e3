import { setTimeout as sleep } from "node:timers/promises";
import { ClickHouseError } from "@clickhouse/client";
import type { AccessEvent } from "@slipway/analytics";
import { Backoff } from "@slipway/controller-runtime";
import type { CollectorMetrics } from "./metrics.ts";
import type { Spool } from "./spool.ts";
import type { Batch, Waiting } from "./spool-files.ts";

/** Where it reports; a pino logger is one. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The store, as far as batches go there. */
export interface Sink<Event = AccessEvent> {
  /** Creates or migrates the tables. Called until it succeeds, and again after failures. */
  prepare(): Promise<void>;
  /** @throws ClickHouseError when this batch will never be taken; anything else when it is to be sent again */
  insert(batch: Batch<Event>): Promise<void>;
}

export interface SenderOptions<Event extends object = AccessEvent> {
  spool: Spool<Event>;
  sink: Sink<Event>;
  /** When an event was over, in milliseconds since the epoch. */
  endOf: (event: Event) => number;
  metrics: CollectorMetrics;
  log: Log;
  random?: () => number;
  /** First and longest wait after a failure, in milliseconds. */
  backoffMs?: readonly [number, number];
}

/**
 * Sends batches, oldest first, one at a time, until the signal aborts; a batch that is being sent then is sent to its end. One
 * that fails is sent again as it is, after a growing wait, for as long as it takes. Never rejects.
 */
export async function sendBatches<Event extends object>(
  options: SenderOptions<Event>,
  signal: AbortSignal,
): Promise<void> {
  const { spool, sink, metrics, log } = options;
  const [baseMs, maxMs] = options.backoffMs ?? [200, 15_000];
  const backoff = new Backoff({ baseMs, maxMs }, options.random ?? Math.random);
  let isPrepared = false;
  let failures = 0;
  while (!signal.aborted) {
    await spool.untilWaiting(signal);
    const batch = spool.oldest;
    if (signal.aborted || !batch) {
      continue;
    }
    try {
      if (!isPrepared) {
        await sink.prepare();
      }
      isPrepared = true;
      await sendOne(batch, options);
      if (failures > 0) {
        log.info({ failures }, "the store takes batches again");
      }
      failures = 0;
      backoff.reset();
    } catch (error) {
      // The store may have come back without its tables.
      isPrepared = false;
      failures += 1;
      metrics.failed("send");
      const delayMs = backoff.next();
      if (failures === 1 || failures % 20 === 0) {
        log.warn({ err: error, failures, waiting: spool.count }, "a batch could not be sent");
      }
      await sleep(delayMs, undefined, { signal }).catch(() => undefined);
    }
  }
}

async function sendOne<Event extends object>(
  waiting: Waiting,
  { spool, sink, metrics, log, endOf }: SenderOptions<Event>,
): Promise<void> {
  let batch: Batch<Event>;
  try {
    batch = await spool.read(waiting);
  } catch (error) {
    log.error({ err: error, batch: waiting.sequence }, "a batch on the disk is damaged");
    metrics.batchLost("damaged");
    return spool.setAside(waiting);
  }
  try {
    await sink.insert(batch);
  } catch (error) {
    // All others would wait behind it for ever.
    if (!(error instanceof ClickHouseError)) {
      throw error;
    }
    log.error({ err: error, batch: batch.id }, "the store refuses a batch");
    metrics.batchLost("refused");
    return spool.setAside(waiting);
  }
  const ends = batch.events.map(endOf);
  metrics.batchSent((Date.now() - ends.reduce((a, b) => Math.min(a, b), Date.now())) / 1000);
  await spool.done(waiting);
}
