import { setTimeout as sleep } from "node:timers/promises";

/** One row that a server said it has. Times are milliseconds of this process's monotonic clock. */
export interface Acknowledged {
  readonly id: number;
  readonly sentAt: number;
  readonly at: number;
  /** Which server said so. */
  readonly by: string;
  /** Counts the primaries that there were, as the engine does; 0 where it does not. */
  readonly term: number;
}

/** One connection that writes rows. After any failure the connection is abandoned. */
export interface WriteSession {
  /** Writes the row and resolves once the server has acknowledged it. */
  insert(id: number): Promise<Pick<Acknowledged, "by" | "term">>;
  close(): Promise<void>;
}

/** Acknowledged rows that are not there. Pure. */
export function lostRows(acknowledged: readonly Acknowledged[], found: ReadonlySet<number>): number[] {
  return acknowledged.filter(({ id }) => !found.has(id)).map(({ id }) => id);
}

/**
 * Rows that an earlier primary acknowledged although a later one had acknowledged before they were sent: two primaries
 * at once. Pure.
 */
export function secondPrimaries(acknowledged: readonly Acknowledged[]): Acknowledged[] {
  const ended = [...acknowledged].sort((a, b) => a.at - b.at);
  let term = 0;
  let next = 0;
  const wrong: Acknowledged[] = [];
  for (const row of [...acknowledged].sort((a, b) => a.sentAt - b.sentAt)) {
    for (let one = ended[next]; one && one.at <= row.sentAt; one = ended[next]) {
      term = Math.max(term, one.term);
      next += 1;
    }
    if (row.term < term) {
      wrong.push(row);
    }
  }
  return wrong;
}

/** The longest time without an acknowledged row, in milliseconds, from one to the next. Pure. */
export function longestGap(acknowledged: readonly Acknowledged[]): number {
  const times = acknowledged.map(({ at }) => at).sort((a, b) => a - b);
  return Math.max(0, ...times.slice(1).map((at, index) => at - (times[index] ?? at)));
}

let lastId = 0;

/**
 * Writes rows one after the other, each under an id that no other row of this process has, and remembers those that were
 * acknowledged. Reconnects after any failure.
 */
export class Writer {
  readonly acknowledged: Acknowledged[] = [];
  /** Why connections ended, the newest last. */
  readonly failures: string[] = [];
  readonly #stop = new AbortController();
  readonly #done: Promise<void>;

  /** @param every milliseconds between rows; a connection that cannot be had is tried again after as long */
  constructor(open: () => Promise<WriteSession>, every = 50) {
    this.#done = this.#run(open, every);
  }

  async #run(open: () => Promise<WriteSession>, every: number): Promise<void> {
    while (!this.#stop.signal.aborted) {
      let session: WriteSession | undefined;
      try {
        session = await open();
        while (!this.#stop.signal.aborted) {
          lastId += 1;
          const id = lastId;
          const sentAt = performance.now();
          const said = await session.insert(id);
          this.acknowledged.push({ id, sentAt, at: performance.now(), ...said });
          await sleep(every);
        }
      } catch (error) {
        this.failures.push(error instanceof Error ? error.message : String(error));
        await sleep(every);
      } finally {
        await session?.close().catch(() => undefined);
      }
    }
  }

  /** Resolves once a row was acknowledged that was sent after this call. @throws after `within` milliseconds */
  async untilWrites(within = 180_000): Promise<void> {
    const from = performance.now();
    while (!this.acknowledged.some(({ sentAt }) => sentAt > from)) {
      if (performance.now() - from > within) {
        throw new Error(`nothing was acknowledged in ${within} ms; ${this.failures.slice(-3).join("; ")}`);
      }
      await sleep(50);
    }
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#done;
  }
}
