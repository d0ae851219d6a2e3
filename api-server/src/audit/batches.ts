import { setTimeout as sleep } from "node:timers/promises";
import { isRefusedRow } from "@slipway/ledger";

export interface BatchOptions<T> {
  /** Writes all of them or none. */
  write: (batch: readonly T[]) => Promise<void>;
  /** Whose an item is, such as an organization. */
  keyOf: (item: T) => string;
  /** Pending items, in all and of one key. */
  maxItems: number;
  maxItemsPerKey: number;
  retryMs: number;
  onRetry: (error: unknown, waiting: number) => void;
  /** An item that was not written, and will not be. */
  onLost: (item: T) => void;
}

/** Items of one write. */
const BATCH = 500;

/**
 * Writes items in batches, in the order of their arrival, and keeps them while that fails. A key that has as many pending as
 * it may loses its own newest; at the maximum, the key with most loses its newest.
 */
export class BatchWriter<T extends object> {
  readonly #options: BatchOptions<T>;
  readonly #waiting: T[] = [];
  readonly #counts = new Map<string, number>();
  #writing: Promise<void> | undefined;
  #closing = false;

  constructor(options: BatchOptions<T>) {
    this.#options = options;
  }

  /** Never throws. */
  add(item: T): void {
    const { keyOf, maxItems, maxItemsPerKey, onLost } = this.#options;
    const key = keyOf(item);
    const count = this.#counts.get(key) ?? 0;
    if (count >= maxItemsPerKey) {
      onLost(item);
      return;
    }
    if (this.#waiting.length >= maxItems) {
      const [largest = key, largestCount = 0] = [...this.#counts].reduce((a, b) => (b[1] > a[1] ? b : a));
      if (largestCount <= count) {
        onLost(item);
        return;
      }
      const last = this.#waiting.findLastIndex((one) => keyOf(one) === largest);
      for (const lost of this.#waiting.splice(last, 1)) {
        onLost(lost);
      }
      this.#counts.set(largest, largestCount - 1);
    }
    this.#waiting.push(item);
    this.#counts.set(key, count + 1);
    this.#start();
  }

  #start(): void {
    this.#writing ??= this.#drain().finally(() => {
      this.#writing = undefined;
      // Added after the last check.
      if (this.#waiting.length > 0) {
        this.#start();
      }
    });
  }

  /** Writes what waits, trying each once more at most. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.#writing;
  }

  async #drain(): Promise<void> {
    // What is added in the same turn is one batch.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const { left, error } = await this.#write(this.#take());
      if (left.length === 0) {
        continue;
      }
      if (this.#closing) {
        for (const lost of [...left, ...this.#take(this.#waiting.length)]) {
          this.#options.onLost(lost);
        }
        return;
      }
      this.#putBack(left);
      this.#options.onRetry(error, this.#waiting.length);
      await sleep(this.#options.retryMs);
    }
  }

  /**
   * Writes a batch; an item that is refused for what is in it is lost alone.
   * @returns what is left to be written, and why: never what was written with another part of the batch
   */
  async #write(batch: readonly T[]): Promise<{ left: readonly T[]; error?: unknown }> {
    try {
      await this.#options.write(batch);
      return { left: [] };
    } catch (error) {
      const [first] = batch;
      if (!isRefusedRow(error) || !first) {
        return { left: batch, error };
      }
      if (batch.length === 1) {
        this.#options.onLost(first);
        return { left: [] };
      }
      const half = Math.ceil(batch.length / 2);
      const [before, after] = [batch.slice(0, half), batch.slice(half)];
      const failed = await this.#write(before);
      return failed.left.length > 0 ? { ...failed, left: [...failed.left, ...after] } : this.#write(after);
    }
  }

  #take(most = BATCH): T[] {
    const batch = this.#waiting.splice(0, most);
    for (const item of batch) {
      this.#count(item, -1);
    }
    return batch;
  }

  #putBack(batch: readonly T[]): void {
    this.#waiting.unshift(...batch);
    for (const item of batch) {
      this.#count(item, 1);
    }
  }

  #count(item: T, change: number): void {
    const key = this.#options.keyOf(item);
    const left = (this.#counts.get(key) ?? 0) + change;
    if (left > 0) {
      this.#counts.set(key, left);
    } else {
      this.#counts.delete(key);
    }
  }
}
