export interface ConcurrencyLimits {
  /** Concurrent units of all keys together; unbounded when left out. */
  total?: number;
  /** Concurrent units of one key: its share, so that no key takes what the others need. */
  perKey: number;
  /** Calls that wait, of all keys together and of one key; unbounded when left out. */
  waiting?: number;
  waitingPerKey?: number;
  /** Milliseconds that a call waits at most; without end when left out. */
  waitMs?: number;
  /** What a call is refused with that does not get its turn; to be given where anything bounds who waits. */
  refuse?: () => Error;
}

/** Gives back what was acquired; a second call does nothing. */
export type Release = () => void;

interface Waiter {
  units: number;
  admit: () => void;
}

/**
 * Bounds concurrent work, shared fairly by key (an organization, mostly). Of the keys that wait, the one that
 * uses least goes first, and within a key the call that came first.
 */
export class ConcurrencyLimiter {
  readonly #limits: Required<ConcurrencyLimits>;
  readonly #used = new Map<string, number>();
  /** Those of a key in the order of arrival; a key without any is not in it. */
  readonly #waiters = new Map<string, Waiter[]>();
  #inUse = 0;
  #waiting = 0;

  constructor(limits: ConcurrencyLimits) {
    const { POSITIVE_INFINITY: unbounded } = Number;
    this.#limits = {
      total: unbounded,
      waiting: unbounded,
      waitingPerKey: unbounded,
      waitMs: unbounded,
      refuse: () => new RangeError("too much is under way"),
      ...limits,
    };
  }

  /** Units in use. */
  get inUse(): number {
    return this.#inUse;
  }

  /** Units that a key uses. */
  usedBy(key: string): number {
    return this.#used.get(key) ?? 0;
  }

  /** Takes units when they are free now; undefined when they are not. */
  tryAcquire(key: string, units = 1): Release | undefined {
    if (this.#waiters.has(key) || this.#isTotalAwaited() || !this.#fits(key, units)) {
      return undefined;
    }
    return this.#take(key, units);
  }

  /**
   * Takes units, and waits for them in turn.
   * @throws what `refuse` makes, when too many wait or the turn does not come in time
   */
  async acquire(key: string, units = 1): Promise<Release> {
    const { perKey, total, waiting, waitingPerKey } = this.#limits;
    const now = this.tryAcquire(key, units);
    if (now) {
      return now;
    }
    const ofKey = this.#waiters.get(key)?.length ?? 0;
    const never = units > Math.min(perKey, total);
    if (never || this.#waiting >= waiting || ofKey >= waitingPerKey) {
      throw this.#limits.refuse();
    }
    await this.#turn(key, units);
    return this.#releaseOf(key, units);
  }

  /**
   * Runs work in its turn: immediately, where there is a place. Work that is refused never runs.
   * @throws what `refuse` makes, or what the work throws
   */
  async run<T>(key: string, work: () => T | Promise<T>): Promise<T> {
    const release = this.tryAcquire(key) ?? (await this.acquire(key));
    try {
      return await work();
    } finally {
      release();
    }
  }

  #fits(key: string, units: number): boolean {
    const { perKey, total } = this.#limits;
    return this.#inUse + units <= total && this.usedBy(key) + units <= perKey;
  }

  /** Whether a call waits for the total alone: what comes after it does not take what it waits for. */
  #isTotalAwaited(): boolean {
    for (const [key, [waiter]] of this.#waiters) {
      if (waiter && this.usedBy(key) + waiter.units <= this.#limits.perKey) {
        return true;
      }
    }
    return false;
  }

  #take(key: string, units: number): Release {
    this.#inUse += units;
    this.#used.set(key, this.usedBy(key) + units);
    return this.#releaseOf(key, units);
  }

  #releaseOf(key: string, units: number): Release {
    let released = false;
    return () => {
      if (released) {
        return;
      }
      released = true;
      this.#inUse -= units;
      const left = this.usedBy(key) - units;
      if (left > 0) {
        this.#used.set(key, left);
      } else {
        this.#used.delete(key);
      }
      this.#admitWaiting();
    };
  }

  #turn(key: string, units: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const { waitMs, refuse } = this.#limits;
      const waiter: Waiter = {
        units,
        admit: () => {
          clearTimeout(timer);
          resolve();
        },
      };
      const giveUp = (): void => {
        this.#remove(key, waiter);
        reject(refuse());
        // It may have kept smaller ones of its key waiting behind it.
        this.#admitWaiting();
      };
      const timer = Number.isFinite(waitMs) ? setTimeout(giveUp, waitMs) : undefined;
      this.#waiters.set(key, [...(this.#waiters.get(key) ?? []), waiter]);
      this.#waiting += 1;
    });
  }

  #remove(key: string, waiter: Waiter): void {
    const left = (this.#waiters.get(key) ?? []).filter((one) => one !== waiter);
    if (left.length > 0) {
      this.#waiters.set(key, left);
    } else {
      this.#waiters.delete(key);
    }
    this.#waiting -= 1;
  }

  /** Admits whose turn it is. One that waits for the total alone is not overtaken, or a large one would never begin. */
  #admitWaiting(): void {
    for (;;) {
      let next: { key: string; waiter: Waiter } | undefined;
      for (const [key, [waiter]] of this.#waiters) {
        if (!waiter || this.usedBy(key) + waiter.units > this.#limits.perKey) {
          continue;
        }
        if (!next || this.usedBy(key) < this.usedBy(next.key)) {
          next = { key, waiter };
        }
      }
      if (!next || !this.#fits(next.key, next.waiter.units)) {
        return;
      }
      this.#remove(next.key, next.waiter);
      this.#take(next.key, next.waiter.units);
      next.waiter.admit();
    }
  }
}
