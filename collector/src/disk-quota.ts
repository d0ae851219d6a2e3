import type { Clock } from "@slipway/process";
import type { Disk } from "./disk.ts";
import type { CollectorMetrics } from "./metrics.ts";
import type { Spool } from "./spool.ts";

export interface RoomOptions {
  spool: Pick<Spool, "bytes">;
  disk: Pick<Disk, "free">;
  /** Folder of the batches. */
  folder: string;
  /** Bytes of batches on the disk from which on no more are made. */
  maxBufferBytes: number;
  /** Bytes of the disk that others on the node are left with, however much the batches may take. */
  keepFreeBytes: number;
  metrics: CollectorMetrics;
  clock: Clock;
}

/** How long the disk's own word is good for. */
const LOOK_MS = 1_000;

/** How much more may wait on the disk: the folder is on the node's own disk, where nothing else bounds it. */
export class Room {
  readonly #options: RoomOptions;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #free = 0;

  constructor(options: RoomOptions) {
    this.#options = options;
  }

  /** Bytes that may still be written; 0 or less when there is no room. */
  async left(): Promise<number> {
    const { spool, disk, folder, maxBufferBytes, keepFreeBytes, metrics, clock } = this.#options;
    const now = clock.monotonic();
    if (now - this.#lookedAt >= LOOK_MS) {
      this.#free = await disk.free(folder);
      this.#lookedAt = now;
    }
    const left = Math.min(maxBufferBytes - spool.bytes, this.#free - keepFreeBytes);
    metrics.roomLeft(left);
    return left;
  }

  /** Whether nothing more may be taken in for now. */
  async isFull(): Promise<boolean> {
    return (await this.left()) <= 0;
  }
}
