/** Gathers samples for a moment and writes them together; what cannot be written is tried again. */

import type { MetricSampleRow } from "@slipway/ledger";
import type { Clock, Logger, Timer } from "@slipway/process";

export interface OutboxOptions {
  write(rows: readonly MetricSampleRow[]): Promise<unknown>;
  clock: Clock;
  log: Logger;
}

/** Milliseconds from the first sample to the write, and until a failed one is tried again. */
const GATHER_MS = 1_000;
const AGAIN_MS = 5_000;

/** Of an instance only the newest sample is kept, so it never grows beyond one for each instance. */
export class Outbox {
  readonly #options: OutboxOptions;
  #pending = new Map<string, MetricSampleRow>();
  #timer: Timer | undefined;
  #writing: Promise<void> | undefined;

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  put(row: MetricSampleRow): void {
    this.#pending.set(keyOf(row), row);
    this.#schedule(GATHER_MS);
  }

  /** Stops writing; what is pending is dropped: the next sampler starts without it. */
  async close(): Promise<void> {
    this.#timer?.cancel();
    this.#pending.clear();
    await this.#writing;
  }

  #schedule(ms: number): void {
    if (this.#timer || this.#writing || this.#pending.size === 0) {
      return;
    }
    this.#timer = this.#options.clock.setTimeout(() => {
      this.#timer = undefined;
      this.#writing = this.#write();
    }, ms);
  }

  /** Never rejects. */
  async #write(): Promise<void> {
    const rows = this.#pending;
    this.#pending = new Map();
    let pause = GATHER_MS;
    try {
      await this.#options.write([...rows.values()]);
    } catch (error) {
      pause = AGAIN_MS;
      this.#options.log.warn({ err: error, samples: rows.size }, "samples of databases were not written");
      this.#pending = new Map([...rows, ...this.#pending]);
    }
    this.#writing = undefined;
    this.#schedule(pause);
  }
}

const keyOf = ({ organizationId, projectId, instance }: MetricSampleRow): string =>
  `${organizationId}/${projectId}/${instance}`;
