import type { Clock } from "@slipway/process";
import type { CollectorMetrics } from "./metrics.ts";
import type { Spool } from "./spool.ts";
import type { KeptPosition, Positions } from "./spool-files.ts";

/**
 * Events of a batch, and their bytes as JSON; it is written before that when its first one has waited for so many milliseconds.
 * A batch within these bounds is one insert: rows are no longer than events, and an insert is only cut above 6 MiB.
 */
const MAX_EVENTS = 5_000;
const MAX_BYTES = 4 * 1024 * 1024;
const FLUSH_MS = 1_000;
/** The same while the store is behind: fewer, longer batches. */
const FLUSH_BEHIND_MS = 2_000;
/** After how many milliseconds positions are recorded although no event came. */
const SAVE_POSITIONS_MS = 5_000;

/** Whose an event is: all kinds of events have an organization's id. */
export interface Owned {
  organization: string;
}

interface OpenBatchOptions<Event extends Owned> {
  spool: Spool<Event>;
  clock: Clock;
  metrics: CollectorMetrics;
}

/** Events that are read and in no batch on the disk yet, with where each log continues after them. */
export class OpenBatch<Event extends Owned> {
  readonly #options: OpenBatchOptions<Event>;
  /** Those of removed folders are kept for a while. */
  #positions: Positions;
  #events: Event[] = [];
  #bytes = 0;
  /** The same by organization. */
  #weights = new Map<string, number>();
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

  add(event: Event): void {
    if (this.#events.length === 0) {
      this.#openedAt = this.#options.clock.monotonic();
    }
    this.#events.push(event);
    // Not of its texts: of a control character JSON makes six.
    const bytes = Buffer.byteLength(JSON.stringify(event));
    this.#bytes += bytes;
    this.#weights.set(event.organization, (this.#weights.get(event.organization) ?? 0) + bytes);
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
        await spool.add(this.#events, this.#positions, undefined, this.#weights);
      } catch (error) {
        metrics.failed("write");
        throw error;
      }
      metrics.batchMade(this.#events.length);
      this.#events = [];
      this.#bytes = 0;
      this.#weights = new Map();
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
