import type { Clock } from "@slipway/process";
import type { CollectorMetrics } from "./metrics.ts";
import type { Spool } from "./spool.ts";
import type { KeptPosition, Positions } from "./spool-files.ts";

/** Events of a batch, and bytes of their texts; it is written before that when its first one has waited for so many milliseconds. */
const MAX_EVENTS = 5_000;
const MAX_BYTES = 4 * 1024 * 1024;
const FLUSH_MS = 1_000;
/** The same while the store is behind: fewer, longer batches. */
const FLUSH_BEHIND_MS = 2_000;
/** After how many milliseconds positions are recorded although no event came. */
const SAVE_POSITIONS_MS = 5_000;

interface OpenBatchOptions<Event extends object> {
  spool: Spool<Event>;
  clock: Clock;
  metrics: CollectorMetrics;
}

/** Events that are read and in no batch on the disk yet, with where each log continues after them. */
export class OpenBatch<Event extends object> {
  readonly #options: OpenBatchOptions<Event>;
  /** Those of removed folders are kept for a while. */
  #positions: Positions;
  #events: Event[] = [];
  #bytes = 0;
  #number = 0;
  #openedAt = 0;
  #savedAt = 0;
  #isMoved = false;

  constructor(options: OpenBatchOptions<Event>) {
    this.#options = options;
    this.#positions = { ...options.spool.positions };
  }

  get positions(): Readonly<Positions> {
    return this.#positions;
  }

  get isFull(): boolean {
    return this.#events.length >= MAX_EVENTS || this.#bytes >= MAX_BYTES;
  }

  /** Another one for each batch: an event that was added may be changed while this is the same. */
  get number(): number {
    return this.#number;
  }

  /** @param bytes of its texts, where these are long */
  add(event: Event, bytes = 0): void {
    if (this.#events.length === 0) {
      this.#openedAt = this.#options.clock.monotonic();
    }
    this.#events.push(event);
    this.#bytes += bytes;
  }

  /** The log of a container's folder has been read up to this position. */
  moveTo(folder: string, position: KeptPosition): void {
    this.#positions = { ...this.#positions, [folder]: position };
    this.#isMoved = true;
  }

  /** Drops the position of a removed folder. */
  forget(folder: string): void {
    const { [folder]: _, ...others } = this.#positions;
    this.#positions = others;
  }

  /** Writes the batch if it is due. @param now writes it in any case */
  async flush(now: boolean): Promise<void> {
    const { spool, clock, metrics } = this.#options;
    const time = clock.monotonic();
    if (this.#events.length > 0) {
      const limit = spool.count > 4 ? FLUSH_BEHIND_MS : FLUSH_MS;
      if (!now && !this.isFull && time - this.#openedAt < limit) {
        return;
      }
      try {
        await spool.add(this.#events, this.#positions);
      } catch (error) {
        metrics.failed("write");
        throw error;
      }
      metrics.batchMade(this.#events.length);
      this.#events = [];
      this.#bytes = 0;
      this.#number += 1;
    } else {
      if (!this.#isMoved || (!now && time - this.#savedAt < SAVE_POSITIONS_MS)) {
        return;
      }
      await spool.savePositions(this.#positions);
    }
    this.#isMoved = false;
    this.#savedAt = time;
  }
}
