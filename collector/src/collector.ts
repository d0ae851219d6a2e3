import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "@slipway/process";
import type { DiskQuota } from "./disk-quota.ts";
import type { Input } from "./input.ts";
import type { CollectorMetrics } from "./metrics.ts";
import { OpenBatch, type Owned } from "./open-batch.ts";
import type { Log } from "./sender.ts";
import { firstOfMost, isWithinShare } from "./shares.ts";
import type { Spool } from "./spool.ts";
import { Tail } from "./tail.ts";

export interface CollectorOptions<Event extends Owned> {
  /** The kubelet's folder of pods' logs. */
  podLogs: string;
  input: Input<Event>;
  spool: Spool<Event>;
  /** While nothing remains, nothing more is read; while little does, nothing of an organization that has much in the buffer. */
  quota: Pick<DiskQuota, "remainingBytes">;
  metrics: CollectorMetrics;
  log: Log;
  clock: Clock;
}

/** Pause when the disk is full, and between searches for new containers. */
const FULL_MS = 500;
const SCAN_MS = 1_000;
/** Removed logs that stay open although they have not been read for so long: their files take room on the disk as long as they do. */
const MOST_UNREAD = 50;
const UNREAD_MS = 60_000;
/** How long the position of a log is kept whose folder is removed. */
const FORGET_MS = 3_600_000;
/** Logs that have not been read for so long are not being read. */
const READING_MS = 5_000;

/** Reads containers' logs into batches on the disk. Of each it reads a piece in turn: a long one delays no other. */
export class Collector<Event extends Owned> {
  readonly #options: CollectorOptions<Event>;
  readonly #tails = new Map<string, Tail<Event>>();
  readonly #batch: OpenBatch<Event>;
  readonly #goneSince = new Map<string, number>();
  #isStopped = false;
  /** Organizations whose logs were not read the last time. */
  #held: ReadonlySet<string> = new Set();
  #scannedAt = Number.NEGATIVE_INFINITY;
  #readAt = Number.NEGATIVE_INFINITY;

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
    for (const tail of this.#tails.values()) {
      await tail.close().catch((error: unknown) => log.warn({ err: error }, "a log could not be closed"));
    }
    this.#tails.clear();
  }

  /** Reads the logs once. @returns milliseconds to wait before the next time */
  async step(): Promise<number> {
    await this.#scan();
    // Events that a full disk did not accept are kept, and no more are read.
    if (this.#batch.isFull) {
      await this.#batch.flush(true);
    }
    const { input, quota, spool } = this.#options;
    if (this.#hasStopped((await quota.remainingBytes()) <= 0)) {
      await this.#batch.flush(true);
      return FULL_MS;
    }
    let found = 0;
    const held = new Set<string>();
    for (const [folder, tail] of this.#tails) {
      const organization = input.kept?.(folder).owner?.organization;
      if (organization !== undefined) {
        const unsent = spool.unsentBytesOf(organization);
        if (!isWithinShare(unsent, await quota.remainingBytes())) {
          held.add(organization);
          continue;
        }
      }
      const taken = await tail.read();
      if (taken === "removed") {
        this.#tails.delete(folder);
      } else {
        found += taken;
      }
      if (this.#batch.isFull) {
        await this.#batch.flush(true);
      }
    }
    await this.#batch.flush(false);
    this.#reportHeld(held);
    this.#readAt = this.#options.clock.monotonic();
    return found > 0 ? 0 : input.idleMs;
  }

  /** Whether there are logs, and all of them were read a moment ago: the buffer has room, and none of them fails. */
  get isReading(): boolean {
    const isRecent = this.#options.clock.monotonic() - this.#readAt < READING_MS;
    return isRecent && this.size > 0 && ![...this.#tails.values()].some(({ isFailing }) => isFailing);
  }

  /** Logs that are being read. */
  get size(): number {
    return this.#tails.size;
  }

  async #scan(): Promise<void> {
    const { podLogs, input, clock } = this.#options;
    const now = clock.monotonic();
    if (now - this.#scannedAt < SCAN_MS) {
      return;
    }
    this.#scannedAt = now;
    const folders = await input.folders(podLogs, this.#batch.positions);
    for (const folder of folders) {
      this.#goneSince.delete(folder);
      if (!this.#tails.has(folder)) {
        this.#tails.set(folder, new Tail(folder, { ...this.#options, batch: this.#batch }));
      }
    }
    for (const tail of this.#tails.values()) {
      await tail.observeFiles();
    }
    const there = new Set(folders);
    await this.#abandonUnread(there);
    this.#forget(there, now);
  }

  /** Closes removed logs beyond the bound, first the oldest of the organization that has the most. */
  async #abandonUnread(there: ReadonlySet<string>): Promise<void> {
    const { input } = this.#options;
    const unread = [...this.#tails.values()].filter(
      ({ folder, unreadMs }) => !there.has(folder) && unreadMs >= UNREAD_MS,
    );
    for (let left = unread; left.length > MOST_UNREAD; ) {
      const tail = firstOfMost(left, ({ folder }) => input.kept?.(folder).owner?.organization ?? "");
      left = left.filter((other) => other !== tail);
      if (tail) {
        this.#tails.delete(tail.folder);
        await tail.abandon();
      }
    }
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

  /** Logs each organization once when its logs are no longer read, and once when they are again. */
  #reportHeld(held: ReadonlySet<string>): void {
    const { metrics, log } = this.#options;
    for (const organization of held) {
      if (!this.#held.has(organization)) {
        log.warn({ organization }, "an organization has its share of the buffer: its logs are not read");
      }
    }
    for (const organization of this.#held) {
      if (!held.has(organization)) {
        log.info({ organization }, "an organization's logs are read again");
      }
    }
    this.#held = held;
    metrics.organizationsHeld(held.size);
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

  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    if (ms > 0) {
      await sleep(ms, undefined, { signal }).catch(() => undefined);
    }
  }
}
