import type { Clock } from "@slipway/process";
import type { Disk } from "./disk.ts";
import type { CollectorMetrics } from "./metrics.ts";
import type { Spool } from "./spool.ts";

export interface DiskQuotaOptions {
  spool: Pick<Spool, "bytes">;
  disk: Pick<Disk, "free">;
  /** Folder of the batches. */
  folder: string;
  /** Bytes of batches on the disk from which on no more are made. */
  maxBufferBytes: number;
  /** Bytes of the disk that others on the node are left with, however much the batches may take. */
  keepFreeBytes: () => number;
  metrics: CollectorMetrics;
  clock: Clock;
}

/** How long a reading of the disk's free space is used. */
const REFRESH_MS = 1_000;

/** Bytes that a buffer leaves free beside `keepFreeBytes`, so that another one on the same disk can become as long as it may. */
export function reservedFor(
  { spool, maxBufferBytes }: Pick<DiskQuotaOptions, "spool" | "maxBufferBytes">,
  keepFreeBytes: number,
): () => number {
  return () => keepFreeBytes + Math.max(0, maxBufferBytes - spool.bytes);
}

/** How much more the buffer may write: its folder is on the node's own disk, where nothing else bounds it. */
export class DiskQuota {
  readonly #options: DiskQuotaOptions;
  #readAt = Number.NEGATIVE_INFINITY;
  #free = 0;

  constructor(options: DiskQuotaOptions) {
    this.#options = options;
  }

  /** Bytes that may still be written; 0 or less when the quota is used up. */
  async remainingBytes(): Promise<number> {
    const { spool, disk, folder, maxBufferBytes, keepFreeBytes, metrics, clock } = this.#options;
    const now = clock.monotonic();
    if (now - this.#readAt >= REFRESH_MS) {
      this.#free = await disk.free(folder);
      this.#readAt = now;
    }
    const remaining = Math.min(maxBufferBytes - spool.bytes, this.#free - keepFreeBytes());
    metrics.quotaRemaining(remaining);
    return remaining;
  }

  /** Whether nothing more may be written for now. */
  async isFull(): Promise<boolean> {
    return (await this.remainingBytes()) <= 0;
  }
}
