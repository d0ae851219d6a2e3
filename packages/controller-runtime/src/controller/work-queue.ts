import type { Clock, Random, Timer } from "@slipway/process";
import type { QueueView, RuntimeMetrics } from "../manager/runtime-metrics.ts";
import { type BackoffOptions, type BucketOptions, backoffDelay, TokenBucket } from "./rate-limiters.ts";

export interface WorkQueueOptions {
  /** Label of metrics: the controller's name. */
  name: string;
  clock: Clock;
  random: Random;
  /** Delay of a failing key: 5 ms doubling up to 5 min, unless given. */
  backoff?: BackoffOptions;
  /** Bound on failing keys together: 20 a second, 100 in a burst, unless given. */
  bucket?: BucketOptions;
  metrics?: RuntimeMetrics;
}

/** Of so many keys that are handed out, one has low priority while there are such: all others cannot starve them. */
const LOW_PRIORITY_EVERY = 4;

/**
 * A queue of keys. A key is in it once, however often it is added, and is handed to one worker at a time: added while
 * it is being worked on, it comes back when that is done.
 */
export class WorkQueue implements QueueView {
  readonly name: string;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #backoff: BackoffOptions;
  readonly #bucket: TokenBucket;
  readonly #metrics: RuntimeMetrics | undefined;
  /** Keys that wait for a worker, in order, with the time they came. */
  readonly #waiting = new Map<string, number>();
  /** The same for keys with low priority: after a start, those of all objects. */
  readonly #lowPriority = new Map<string, number>();
  #handedOut = 0;
  /** Keys under way, with the time they were handed out. */
  readonly #processing = new Map<string, number>();
  /** Keys added while under way. */
  readonly #dirty = new Set<string>();
  readonly #delayed = new Map<string, { at: number; timer: Timer }>();
  readonly #failures = new Map<string, number>();
  readonly #takers: ((key: string | undefined) => void)[] = [];
  #closed = false;

  constructor(options: WorkQueueOptions) {
    this.name = options.name;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#backoff = options.backoff ?? { baseMs: 5, maxMs: 300_000 };
    this.#bucket = new TokenBucket(
      options.bucket ?? { perSecond: 20, burst: 100 },
      options.clock.monotonic(),
    );
    this.#metrics = options.metrics;
    this.#metrics?.registerQueue(this);
  }

  /** Keys that wait for a worker now; delayed ones are not counted. */
  get length(): number {
    return this.#waiting.size + this.#lowPriority.size;
  }

  /** Whether nothing waits, nothing is under way and nothing is due later. */
  get idle(): boolean {
    return this.length === 0 && this.#processing.size === 0 && this.#delayed.size === 0;
  }

  /** Adds a key, unless it waits already. */
  add(key: string): void {
    if (this.#closed || this.#waiting.has(key) || this.#dirty.has(key)) {
      return;
    }
    this.#metrics?.queueAdds.inc(this.#labels);
    if (this.#processing.has(key)) {
      this.#dirty.add(key);
      return;
    }
    this.#waiting.set(key, this.#lowPriority.get(key) ?? this.#clock.monotonic());
    this.#lowPriority.delete(key);
    this.#handOut();
  }

  /** Adds a key that nothing has happened to: others do not wait for it. Adding it as usual raises it. */
  addWithLowPriority(key: string): void {
    const isKnown = this.#waiting.has(key) || this.#lowPriority.has(key) || this.#processing.has(key);
    if (this.#closed || isKnown) {
      return;
    }
    this.#metrics?.queueAdds.inc(this.#labels);
    this.#lowPriority.set(key, this.#clock.monotonic());
    this.#handOut();
  }

  /** Adds a key once `ms` have passed. An earlier requested time stays. */
  addAfter(key: string, ms: number): void {
    if (this.#closed) {
      return;
    }
    if (ms <= 0) {
      this.add(key);
      return;
    }
    const at = this.#clock.monotonic() + ms;
    const present = this.#delayed.get(key);
    if (present && present.at <= at) {
      return;
    }
    present?.timer.cancel();
    const timer = this.#clock.setTimeout(() => {
      this.#delayed.delete(key);
      this.add(key);
    }, ms);
    this.#delayed.set(key, { at, timer });
    this.#metrics?.queueRetries.inc(this.#labels);
  }

  /** Adds a key that failed: after its own backoff (jittered), or when the overall bucket allows, whichever is later. */
  addRateLimited(key: string): void {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    const own = backoffDelay(failures, this.#backoff) * (1 + this.#random() / 4);
    this.addAfter(key, Math.max(own, this.#bucket.reserve(this.#clock.monotonic())));
  }

  /** Forgets a key's failures, after a success. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** How often a key has failed in a row. */
  failures(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  /** The next key, as soon as there is one; undefined once the queue is shut down. Call `done` with it. */
  get(): Promise<string | undefined> {
    return new Promise((resolve) => {
      if (this.#closed) {
        resolve(undefined);
        return;
      }
      this.#takers.push(resolve);
      this.#handOut();
    });
  }

  /** A worker has finished with a key. */
  done(key: string): void {
    const since = this.#processing.get(key);
    if (since === undefined) {
      return;
    }
    this.#metrics?.workDuration.observe(this.#labels, (this.#clock.monotonic() - since) / 1000);
    this.#processing.delete(key);
    if (!this.#dirty.delete(key) || this.#closed) {
      return;
    }
    this.#waiting.set(key, this.#clock.monotonic());
    this.#handOut();
  }

  /** Hands out no more keys and drops those that wait. */
  shutDown(): void {
    this.#closed = true;
    this.#waiting.clear();
    this.#lowPriority.clear();
    this.#dirty.clear();
    for (const { timer } of this.#delayed.values()) {
      timer.cancel();
    }
    this.#delayed.clear();
    for (const taker of this.#takers.splice(0)) {
      taker(undefined);
    }
  }

  secondsInProgress(): number[] {
    const now = this.#clock.monotonic();
    return [...this.#processing.values()].map((since) => (now - since) / 1000);
  }

  #handOut(): void {
    while (this.#takers.length > 0) {
      const isTurnOfLowPriority = this.#handedOut % LOW_PRIORITY_EVERY === LOW_PRIORITY_EVERY - 1;
      const lanes = isTurnOfLowPriority
        ? [this.#lowPriority, this.#waiting]
        : [this.#waiting, this.#lowPriority];
      const lane = lanes.find(({ size }) => size > 0);
      const next = lane?.entries().next();
      if (lane === undefined || next === undefined || next.done) {
        return;
      }
      const [key, since] = next.value;
      const now = this.#clock.monotonic();
      this.#handedOut += 1;
      lane.delete(key);
      this.#processing.set(key, now);
      this.#metrics?.queueLatency.observe(this.#labels, (now - since) / 1000);
      this.#takers.shift()?.(key);
    }
  }

  get #labels(): { name: string; controller: string } {
    return { name: this.name, controller: this.name };
  }
}
