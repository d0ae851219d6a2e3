import { KubeError } from "@slipway/controller-runtime";

/** Concurrent calls: in parallel up to a maximum, within a deadline, or shared by callers. */

/**
 * `work` on every item, at most `maxConcurrent` at a time; the results are in the order of the items.
 * @throws what the first failing `work` threw; what has begun by then is not waited for
 */
export async function mapConcurrently<Item, Result>(
  items: readonly Item[],
  maxConcurrent: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results = new Array<Result>(items.length);
  const waiting = items.entries();
  const worker = async (): Promise<void> => {
    for (const [index, item] of waiting) {
      results[index] = await work(item);
    }
  };
  await Promise.all(Array.from({ length: Math.min(maxConcurrent, items.length) }, worker));
  return results;
}

/**
 * Runs work whose calls to the cluster share one deadline: its signal aborts after `ms` with the error of a call that got no
 * answer, a KubeError of status 0. Unlike `withTimeout` it cancels what is under way, so nothing is written afterwards.
 */
export async function withDeadline<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const deadline = new AbortController();
  const message = `not done within ${ms} ms`;
  const abort = () => deadline.abort(new KubeError({ status: 0, reason: "Timeout", message }));
  const timer = setTimeout(abort, ms);
  try {
    return await work(deadline.signal);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Reads that are shared by callers with the same key, so that many concurrent calls cost two reads. Each caller gets a read that began after it
 * called, and so sees what was written before.
 */
export class SharedReads<Value> {
  readonly #running = new Map<string, Promise<Value>>();
  readonly #next = new Map<string, Promise<Value>>();

  /** The value of `read` for the key, or of an equal call. @throws what that read throws */
  read(key: string, read: () => Promise<Value>): Promise<Value> {
    const running = this.#running.get(key);
    if (running === undefined) {
      return this.#begin(key, read);
    }
    const waiting = this.#next.get(key);
    if (waiting !== undefined) {
      return waiting;
    }
    const begin = () => {
      this.#next.delete(key);
      return this.#begin(key, read);
    };
    const next = running.then(begin, begin);
    this.#next.set(key, next);
    return next;
  }

  #begin(key: string, read: () => Promise<Value>): Promise<Value> {
    const running = read().finally(() => {
      if (this.#running.get(key) === running) {
        this.#running.delete(key);
      }
    });
    this.#running.set(key, running);
    return running;
  }
}
