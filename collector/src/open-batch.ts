import { type AccessEvent, MinuteBounds } from "@slipway/analytics";
import type { Clock } from "@slipway/process";
import type { Position } from "./container-log.ts";
import type { CollectorMetrics } from "./metrics.ts";
import type { Spool } from "./spool.ts";
import type { Positions } from "./spool-files.ts";

/** Events of a batch; it is written before that when its first one has waited for so many milliseconds. */
const MAX_EVENTS = 5_000;
const FLUSH_MS = 1_000;
/** The same while the store is behind: fewer, longer batches. */
const FLUSH_BEHIND_MS = 2_000;
/** After how many milliseconds positions are recorded although no event came. */
const SAVE_POSITIONS_MS = 5_000;

interface OpenBatchOptions {
  spool: Spool;
  clock: Clock;
  metrics: CollectorMetrics;
}

/** Events that are read and in no batch on the disk yet, with where each log continues after them. */
export class OpenBatch {
  readonly #options: OpenBatchOptions;
  /** Before events are written: a batch that is sent again has to be the same. */
  readonly #bounds = new MinuteBounds();
  /** Those of removed folders are kept for a while. */
  #positions: Positions;
  #events: AccessEvent[] = [];
  #openedAt = 0;
  #savedAt = 0;
  #isMoved = false;

  constructor(options: OpenBatchOptions) {
    this.#options = options;
    this.#positions = { ...options.spool.positions };
  }

  get positions(): Readonly<Positions> {
    return this.#positions;
  }

  get isFull(): boolean {
    return this.#events.length >= MAX_EVENTS;
  }

  add(event: AccessEvent): void {
    if (this.#events.length === 0) {
      this.#openedAt = this.#options.clock.monotonic();
    }
    this.#events.push(this.#bounds.bound(event));
  }

  /** The log of a container's folder has been read up to this position. */
  moveTo(folder: string, position: Position): void {
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
