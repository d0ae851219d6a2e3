/** Whether this process's clock may be acted on: it is compared with clocks of others, all the time. */

import { type Clock, type Logger, sleep } from "@slipway/process";
import { Gauge, type Registry } from "prom-client";
import type { RuntimeCatalog } from "../controller/errors.ts";
import { WaitingError } from "../controller/errors.ts";

/** Another clock. */
export interface ClockReference {
  /** Label of the metric. */
  name: string;
  /** By how much what it says may be too early, in milliseconds: 1,000 for whole seconds. */
  resolutionMs: number;
  /** What it says now. Throws when it cannot be read. */
  read(signal: AbortSignal): Promise<Date>;
}

export interface ClockGuardOptions {
  clock: Clock;
  log: Logger;
  references: readonly ClockReference[];
  /** From which skew on the clock is not acted on, in milliseconds. */
  limitMs: number;
}

/** The least and the most that a reference can have been ahead of this process's monotonic clock, and when that was read. */
interface Reading {
  from: number;
  to: number;
  readAt: number;
}

/** Time between two readings, and until another reading while the clock is not trusted. */
const PERIOD_MS = 15_000;
const TICK_MS = 1_000;
const TIMEOUT_MS = 5_000;
/** What was read before says nothing any more. */
const MAX_AGE_MS = 600_000;

/**
 * Compares the wall clock with references. Between two readings it is the monotonic clock that is believed, so that a clock that
 * is set is noticed as soon as it is queried, not with the next reading.
 */
export class ClockGuard {
  readonly #options: ClockGuardOptions;
  readonly #readings = new Map<string, Reading>();

  constructor(options: ClockGuardOptions) {
    this.#options = options;
  }

  /**
   * Whether the time of day may be acted on: every reference that was read in the last ten minutes agrees, and there is one. Always
   * true without references.
   */
  get trusted(): boolean {
    const { references, limitMs } = this.#options;
    if (references.length === 0) {
      return true;
    }
    const skews = references.map(({ name }) => this.skewMs(name)).filter((skew) => skew !== undefined);
    return skews.length > 0 && skews.every((skew) => Math.abs(skew) <= limitMs);
  }

  /**
   * By how many milliseconds this process's clock is ahead of a reference (behind when negative), as far as it is sure; undefined when the
   * reference could not be read for ten minutes.
   */
  skewMs(name: string): number | undefined {
    const reading = this.#readings.get(name);
    const monotonic = this.#options.clock.monotonic();
    if (!reading || monotonic - reading.readAt > MAX_AGE_MS) {
      return undefined;
    }
    const here = this.#options.clock.now().getTime() - monotonic;
    if (here > reading.to) {
      return here - reading.to;
    }
    return here < reading.from ? here - reading.from : 0;
  }

  /** Reads every reference once. Never rejects: one that does not answer keeps its last reading. */
  async measure(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#options.references.map((reference) => this.#read(reference, signal)));
  }

  /** Measures until the signal aborts; `onDistrust` is called after each measurement that finds the clock wrong. */
  async run(signal: AbortSignal, onDistrust: () => void): Promise<void> {
    const { clock } = this.#options;
    let due = Number.NEGATIVE_INFINITY;
    while (!signal.aborted) {
      if (clock.monotonic() >= due || !this.trusted) {
        await this.measure(signal);
        due = clock.monotonic() + PERIOD_MS;
        if (!this.trusted && !signal.aborted) {
          onDistrust();
        }
      }
      await sleep(clock, TICK_MS, signal);
    }
  }

  /** Waits for a measurement that finds the clock right; false when the signal aborted first. */
  async untilTrusted(signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted && !this.trusted) {
      await sleep(this.#options.clock, 100, signal);
    }
    return !signal.aborted;
  }

  /** The clock as those see it who act on the time of day: `now` throws while it is not trusted. */
  get clock(): Clock {
    const { clock } = this.#options;
    return {
      ...clock,
      monotonic: () => clock.monotonic(),
      setTimeout: (callback, ms) => clock.setTimeout(callback, ms),
      now: () => {
        // Read first: a clock that is set in between is noticed.
        const now = clock.now();
        if (!this.trusted) {
          throw new WaitingError<RuntimeCatalog>("ClockSkew", this.describe(), { requeueAfterMs: 5_000 });
        }
        return now;
      },
    };
  }

  /** What is wrong with the clock, for logs. */
  describe(): string {
    const skews = this.#options.references.map(({ name }) => {
      const skew = this.skewMs(name);
      return `${name}: ${skew === undefined ? "unknown" : `${(skew / 1_000).toFixed(1)} s`}`;
    });
    return `this process's clock is ahead of others by more than it may (${skews.join(", ")})`;
  }

  /** Registers the metrics, whose names begin with the prefix. */
  register(registry: Registry, prefix: string): void {
    const { references } = this.#options;
    const skewMs = (name: string) => this.skewMs(name);
    const isTrusted = () => this.trusted;
    new Gauge({
      name: `${prefix}_clock_skew_seconds`,
      help: "Seconds by which the clock of this process is ahead of another clock; absent while that cannot be read.",
      labelNames: ["reference"],
      registers: [registry],
      collect() {
        this.reset();
        for (const { name } of references) {
          const skew = skewMs(name);
          if (skew !== undefined) {
            this.set({ reference: name }, skew / 1_000);
          }
        }
      },
    });
    new Gauge({
      name: `${prefix}_clock_trusted`,
      help: "1 while the clock of this process agrees with the others, else 0: then it neither leads nor charges.",
      registers: [registry],
      collect() {
        this.set(isTrusted() ? 1 : 0);
      },
    });
  }

  async #read(reference: ClockReference, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    const started = clock.monotonic();
    const limit = new AbortController();
    const timer = clock.setTimeout(() => limit.abort(), TIMEOUT_MS);
    try {
      const said = (await reference.read(AbortSignal.any([signal, limit.signal]))).getTime();
      const readAt = clock.monotonic();
      // It was that moment at the other some time between the question and the answer.
      this.#readings.set(reference.name, {
        from: said - readAt,
        to: said + reference.resolutionMs - started,
        readAt,
      });
    } catch (error) {
      if (!signal.aborted) {
        log.debug({ err: error, reference: reference.name }, "clock not read");
      }
    } finally {
      timer.cancel();
    }
  }
}
