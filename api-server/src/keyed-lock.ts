import { setTimeout as sleep } from "node:timers/promises";

export interface WaitLimit {
  waitMs: number;
  /** What is thrown when work waits longer. */
  refuse: () => Error;
}

/** Runs work of the same key one after the other, in the order of arrival; work of different keys side by side. */
export class KeyedLock {
  readonly #tails = new Map<string, Promise<unknown>>();

  /** @throws what the work throws, or the limit's error when its turn did not come in time: then it never runs */
  async run<T>(key: string, work: () => Promise<T>, limit?: WaitLimit): Promise<T> {
    const before = this.#tails.get(key) ?? Promise.resolve();
    const turn = Promise.withResolvers<void>();
    const tail = before.then(() => turn.promise);
    this.#tails.set(key, tail);
    try {
      if (limit && (await isLate(before, limit.waitMs))) throw limit.refuse();
      await before;
      return await work();
    } finally {
      turn.resolve();
      // Who gave up is followed by whoever comes next, but leaves the one before it in the queue.
      const forget = () => {
        if (this.#tails.get(key) === tail) this.#tails.delete(key);
      };
      void tail.then(forget);
    }
  }
}

async function isLate(turn: Promise<unknown>, ms: number): Promise<boolean> {
  const stop = new AbortController();
  const late = sleep(ms, true, { signal: stop.signal }).catch(() => true);
  const answer = await Promise.race([turn.then(() => false), late]);
  stop.abort();
  return answer;
}
