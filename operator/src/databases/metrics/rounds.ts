/** Samples many instances again and again, so that one that hangs delays no other. */

import { type Clock, ConcurrencyLimiter, sleep } from "@slipway/process";

export interface RoundsOptions<Target, Sample> {
  /** Whom to sample now. */
  targets(): Iterable<Target>;
  /** Names a target; it is sampled once at a time. */
  keyOf(target: Target): string;
  /** Whose share of what is sampled concurrently a target uses. */
  organizationOf(target: Target): string;
  /** Has to give up when the signal aborts; it is not waited for any longer. */
  sample(target: Target, signal: AbortSignal): Promise<Sample>;
  onSample(target: Target, sample: Sample): void;
  onFailure(target: Target, error: unknown): void;
  clock: Clock;
  periodMs: number;
  /** Longest time of one sample, in milliseconds. */
  limitMs: number;
}

/**
 * Samples under way, and those of one organization: of instances that answered the last time, or are new; and of those that
 * did not, which would keep the others waiting for as long as a sample may take.
 */
const ANSWERING = { total: 32, perKey: 8 };
const SILENT = { total: 8, perKey: 2 };

export class TookTooLong extends Error {
  override readonly name = "TookTooLong";
}

export class Rounds<Target, Sample> {
  readonly #options: RoundsOptions<Target, Sample>;
  readonly #answeringLimiter = new ConcurrencyLimiter(ANSWERING);
  readonly #silentLimiter = new ConcurrencyLimiter(SILENT);
  readonly #underWay = new Map<string, Promise<void>>();
  #silent = new Set<string>();

  constructor(options: RoundsOptions<Target, Sample>) {
    this.#options = options;
  }

  /** Ends when the signal aborts, and with it what is under way. Rounds begin a period apart, however long they take. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, periodMs } = this.#options;
    while (!signal.aborted) {
      const begun = clock.monotonic();
      void this.round(signal);
      await sleep(clock, Math.max(0, begun + periodMs - clock.monotonic()), signal);
    }
    await Promise.all(this.#underWay.values());
  }

  /** Samples everyone who is not being sampled, and ends with the last of them. Never rejects. */
  async round(signal: AbortSignal): Promise<void> {
    const { keyOf, organizationOf, targets } = this.#options;
    const known = new Set<string>();
    const begun: Promise<void>[] = [];
    for (const target of targets()) {
      const key = keyOf(target);
      known.add(key);
      if (this.#underWay.has(key)) {
        continue;
      }
      const limiter = this.#silent.has(key) ? this.#silentLimiter : this.#answeringLimiter;
      const work = limiter
        .run(organizationOf(target), () => this.#one(key, target, signal))
        .finally(() => this.#underWay.delete(key));
      this.#underWay.set(key, work);
      begun.push(work);
    }
    this.#silent = new Set([...this.#silent].filter((key) => known.has(key)));
    await Promise.all(begun);
  }

  async #one(key: string, target: Target, signal: AbortSignal): Promise<void> {
    if (signal.aborted) {
      return;
    }
    const { onFailure, onSample } = this.#options;
    try {
      const sample = await this.#limited(target, signal);
      this.#silent.delete(key);
      onSample(target, sample);
    } catch (error) {
      if (signal.aborted) {
        return;
      }
      this.#silent.add(key);
      onFailure(target, error);
    }
  }

  /** What comes after the limit, be it an error, is dropped. */
  async #limited(target: Target, signal: AbortSignal): Promise<Sample> {
    const { clock, limitMs, sample } = this.#options;
    const stop = new AbortController();
    const over = Promise.withResolvers<never>();
    const give = (error: Error) => {
      over.reject(error);
      stop.abort(error);
    };
    const timer = clock.setTimeout(() => give(new TookTooLong(`no sample within ${limitMs} ms`)), limitMs);
    const end = () => give(new TookTooLong("stopped"));
    signal.addEventListener("abort", end, { once: true });
    try {
      return await Promise.race([sample(target, stop.signal), over.promise]);
    } finally {
      timer.cancel();
      signal.removeEventListener("abort", end);
    }
  }
}
