import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "@slipway/process";
import { ContainerLog, type ContainerLogOptions, type LogLine } from "./container-log.ts";
import type { DiskQuota } from "./disk-quota.ts";
import type { CollectorMetrics } from "./metrics.ts";
import { OpenBatch } from "./open-batch.ts";
import type { Log } from "./sender.ts";
import type { Spool } from "./spool.ts";
import type { Positions } from "./spool-files.ts";
import type { Owner } from "./traefik-names.ts";

/** Which containers' logs are read, and what becomes of their lines. */
export interface Input<Event extends object> {
  /** Containers whose logs are there, as `pod's folder/container`. @param kept positions that earlier processes recorded */
  folders(podLogs: string, kept: Readonly<Positions>): Promise<string[]>;
  lines: ContainerLogOptions["lines"];
  /** Takes a line into the batch, or drops it. @returns false for a line that is to be evaluated again later */
  take(line: LogLine, folder: string, batch: OpenBatch<Event>): boolean;
  /** Files of a log were removed or damaged before they were read. */
  onGap(folder: string, files: number, batch: OpenBatch<Event>): void;
  /** A log is removed and read to its end. */
  closed?(folder: string): void;
  /** Whose the log is, which is recorded with its position. */
  ownerOf?(folder: string): Owner | undefined;
  /** Pause when nothing new was found, in milliseconds. */
  idleMs: number;
}

export interface CollectorOptions<Event extends object> {
  /** The kubelet's folder of pods' logs. */
  podLogs: string;
  input: Input<Event>;
  spool: Spool<Event>;
  /** While it is full nothing more is read. */
  quota: Pick<DiskQuota, "isFull">;
  metrics: CollectorMetrics;
  log: Log;
  clock: Clock;
}

/** Pause when the disk is full, and between searches for new containers. */
const FULL_MS = 500;
const SCAN_MS = 1_000;
/** How long the position of a log is kept whose folder is removed. */
const FORGET_MS = 3_600_000;

/** A container's log and what was read of it that is in no batch yet. */
interface Tail {
  log: ContainerLog;
  lines: LogLine[];
}

/** Reads containers' logs into batches on the disk. Of each it reads a piece in turn: a long one delays no other. */
export class Collector<Event extends object> {
  readonly #options: CollectorOptions<Event>;
  readonly #tails = new Map<string, Tail>();
  readonly #batch: OpenBatch<Event>;
  readonly #goneSince = new Map<string, number>();
  #isStopped = false;
  #scannedAt = Number.NEGATIVE_INFINITY;

  constructor(options: CollectorOptions<Event>) {
    this.#options = options;
    this.#batch = new OpenBatch(options);
  }

  /** Reads until the signal aborts; then writes what it holds. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { metrics, log } = this.#options;
    let failures = 0;
    while (!signal.aborted) {
      try {
        await this.#pause(await this.step(), signal);
        failures = 0;
      } catch (error) {
        failures += 1;
        metrics.failed("read");
        if (failures === 1 || failures % 60 === 0) {
          log.error({ err: error, failures }, "logs cannot be read");
        }
        await this.#pause(1_000, signal);
      }
    }
    await this.#batch.flush(true).catch((error: unknown) => {
      // Nothing of it is lost: it is read again.
      log.warn({ err: error }, "the last batch could not be written");
    });
    for (const { log } of this.#tails.values()) {
      await log.close();
    }
    this.#tails.clear();
  }

  /** Reads the logs once. @returns milliseconds to wait before the next time */
  async step(): Promise<number> {
    // Reported after all others were read: one log that cannot be read delays none.
    const failed: unknown[] = [];
    await this.#scan(failed);
    // Events that a full disk did not accept are kept, and no more are read.
    if (this.#batch.isFull) {
      await this.#batch.flush(true);
    }
    if (this.#hasStopped(await this.#options.quota.isFull())) {
      await this.#batch.flush(true);
      return FULL_MS;
    }
    let found = 0;
    for (const [folder, tail] of this.#tails) {
      try {
        found += await this.#readTail(folder, tail);
      } catch (error) {
        failed.push(error);
      }
      if (this.#batch.isFull) {
        await this.#batch.flush(true);
      }
    }
    await this.#batch.flush(false);
    if (failed.length > 0) {
      throw failed[0];
    }
    return found > 0 ? 0 : this.#options.input.idleMs;
  }

  /** Logs that are being read. */
  get size(): number {
    return this.#tails.size;
  }

  async #scan(failed: unknown[]): Promise<void> {
    const { podLogs, input, clock, metrics, log } = this.#options;
    const now = clock.monotonic();
    if (now - this.#scannedAt < SCAN_MS) {
      return;
    }
    this.#scannedAt = now;
    const folders = await input.folders(podLogs, this.#batch.positions);
    for (const folder of folders) {
      this.#goneSince.delete(folder);
      if (this.#tails.has(folder)) {
        continue;
      }
      const onGap = (files: number) => {
        metrics.gap(files);
        log.error(
          { folder, files },
          "files of a log were removed or damaged before they were read: what they had is lost",
        );
        input.onGap(folder, files, this.#batch);
      };
      const options = { lines: input.lines, clock, onGap };
      const file = new ContainerLog(join(podLogs, folder), this.#batch.positions[folder], options);
      this.#tails.set(folder, { log: file, lines: [] });
    }
    for (const { log } of this.#tails.values()) {
      await log.observeFiles().catch((error: unknown) => void failed.push(error));
    }
    this.#forget(new Set(folders), now);
  }

  /** Logs once when reading stops, and once when it continues. */
  #hasStopped(isFull: boolean): boolean {
    if (isFull === this.#isStopped) {
      return isFull;
    }
    const { metrics, log, spool } = this.#options;
    this.#isStopped = isFull;
    metrics.readingStopped(isFull);
    const fields = { batches: spool.count, bytes: spool.bytes };
    if (isFull) {
      log.error(fields, "the buffer is full: no logs are read");
    } else {
      log.info(fields, "the buffer has room again: logs are read");
    }
    return isFull;
  }

  #forget(there: Set<string>, now: number): void {
    for (const folder of Object.keys(this.#batch.positions)) {
      if (there.has(folder)) {
        continue;
      }
      const since = this.#goneSince.get(folder) ?? now;
      this.#goneSince.set(folder, since);
      if (now - since < FORGET_MS || this.#tails.has(folder)) {
        continue;
      }
      this.#goneSince.delete(folder);
      this.#batch.forget(folder);
    }
  }

  async #readTail(folder: string, tail: Tail): Promise<number> {
    if (tail.lines.length === 0) {
      const read = await tail.log.read();
      if (read === "removed") {
        await tail.log.close();
        this.#tails.delete(folder);
        this.#options.input.closed?.(folder);
        return 0;
      }
      this.#options.metrics.linesRead(read.length);
      tail.lines = read;
    }
    const { input } = this.#options;
    const later = tail.lines.findIndex((line) => !input.take(line, folder, this.#batch));
    const taken = later < 0 ? tail.lines.length : later;
    const last = tail.lines[taken - 1];
    if (last) {
      const owner = input.ownerOf?.(folder);
      this.#batch.moveTo(folder, owner ? { ...last.next, owner } : last.next);
    }
    tail.lines = tail.lines.slice(taken);
    return taken;
  }

  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    if (ms > 0) {
      await sleep(ms, undefined, { signal }).catch(() => undefined);
    }
  }
}
