import { setTimeout as sleep } from "node:timers/promises";

export interface TurnLimits {
  /** Pieces of work at once, and of one key. */
  all: number;
  each: number;
  /** Milliseconds that one waits for its turn, and how many wait. */
  waitMs: number;
  waiting: number;
}

interface Waiting {
  key: string;
  begin: () => void;
}

/** Lets work begin in the order of its arrival, so much at once, and less of one key: nobody keeps all others waiting. */
export class Turns {
  readonly #limits: TurnLimits;
  readonly #running = new Map<string, number>();
  #all = 0;
  #waiting: Waiting[] = [];

  constructor(limits: TurnLimits) {
    this.#limits = limits;
  }

  /**
   * Runs work at its turn.
   * @param refuse makes what is thrown when that does not come in time: then the work never runs
   */
  async run<T>(key: string, work: () => Promise<T>, refuse: () => Error): Promise<T> {
    if (this.#mayBegin(key)) this.#begin(key);
    else await this.#wait(key, refuse);
    try {
      return await work();
    } finally {
      this.#end(key);
    }
  }

  #mayBegin(key: string): boolean {
    return this.#all < this.#limits.all && (this.#running.get(key) ?? 0) < this.#limits.each;
  }

  #begin(key: string): void {
    this.#all += 1;
    this.#running.set(key, (this.#running.get(key) ?? 0) + 1);
  }

  #end(key: string): void {
    this.#all -= 1;
    const left = (this.#running.get(key) ?? 1) - 1;
    if (left > 0) this.#running.set(key, left);
    else this.#running.delete(key);
    // Whoever may begin, the longest waiting first; others of a key that has all that it gets are passed over.
    this.#waiting = this.#waiting.filter((one) => {
      if (!this.#mayBegin(one.key)) return true;
      this.#begin(one.key);
      one.begin();
      return false;
    });
  }

  async #wait(key: string, refuse: () => Error): Promise<void> {
    // One key does not take all places to wait in either.
    const ofKey = this.#waiting.filter((one) => one.key === key).length;
    if (this.#waiting.length >= this.#limits.waiting || ofKey >= this.#limits.waiting / 4) throw refuse();
    const { promise, resolve } = Promise.withResolvers<void>();
    const mine: Waiting = { key, begin: resolve };
    this.#waiting.push(mine);
    const stop = new AbortController();
    const late = sleep(this.#limits.waitMs, true, { signal: stop.signal }).catch(() => false);
    const isLate = await Promise.race([promise.then(() => false), late]);
    stop.abort();
    if (!isLate || !this.#waiting.includes(mine)) return;
    this.#waiting = this.#waiting.filter((one) => one !== mine);
    throw refuse();
  }
}
