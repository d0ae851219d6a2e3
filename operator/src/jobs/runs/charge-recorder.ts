/** Records charges in the ledger in batches, and retries until that succeeds. */

import { Backoff } from "@slipway/controller-runtime";
import type { Clock, Logger, Random, Timer } from "@slipway/process";
import type { ChargedRun, RecordedRun, RunLedger } from "./ports.ts";

export interface ChargeRecorderOptions {
  ledger: RunLedger;
  clock: Clock;
  random: Random;
  log: Logger;
  /** Rows of one batch: 500 by default. */
  maxBatch?: number;
  /** How long a batch is gathered: 50 ms by default. */
  gatherMs?: number;
  /** Runs in memory, waiting and charged: 20,000 by default. Others have to be requested again later. */
  maxKept?: number;
}

/** The outcome of a charge, and when it was read back. */
export interface Charge {
  outcome: Exclude<RecordedRun["outcome"], "refused">;
  at: Date;
}

interface Entry {
  key: string;
  row: ChargedRun;
  state: "waiting" | "sent" | "refused" | "recorded";
  charge?: Charge;
  /** The rule by which the ledger refuses it, and the timer of the next attempt. */
  refusal?: { reason: string; again: Timer };
}

/** After which a row that the ledger refuses is tried again. */
const REFUSED_MS = 60_000;

/**
 * Records charges of runs. A charge is in memory until `forget`; requesting it again, also after a restart, records nothing
 * twice.
 */
export class ChargeRecorder {
  readonly #options: Required<Omit<ChargeRecorderOptions, "random">>;
  readonly #entries = new Map<string, Entry>();
  readonly #listeners = new Set<(key: string) => void>();
  readonly #backoff: Backoff;
  #timer: Timer | undefined;
  #sending = false;
  #stopped = false;

  constructor(options: ChargeRecorderOptions) {
    this.#options = { maxBatch: 500, gatherMs: 50, maxKept: 20_000, ...options };
    this.#backoff = new Backoff({ baseMs: 250, maxMs: 5_000 }, options.random);
  }

  /** Registers a listener for keys with a run whose charge was recorded or refused. Returns how to remove it. */
  onRecorded(listener: (key: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * The charge of a run, once it was read back; until then undefined, and the listeners are called later. `full`: the limit is
   * reached, call again later.
   * @param uid of the JobRun
   */
  record(key: string, uid: string, row: ChargedRun): Charge | "full" | undefined {
    const entry = this.#entries.get(uid);
    if (entry) {
      return entry.charge;
    }
    if (this.#entries.size >= this.#options.maxKept) {
      return "full";
    }
    this.#entries.set(uid, { key, row, state: "waiting" });
    this.#gather(this.#options.gatherMs);
    return undefined;
  }

  /** Why the ledger refused a run's charge at the last attempt; undefined when it did not. */
  refusal(uid: string): string | undefined {
    return this.#entries.get(uid)?.refusal?.reason;
  }

  /** Drops a run that is charged or deleted. */
  forget(uid: string): void {
    this.#entries.get(uid)?.refusal?.again.cancel();
    this.#entries.delete(uid);
  }

  /** Stops sending. What was not recorded is left to the next leader. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    for (const { refusal } of this.#entries.values()) {
      refusal?.again.cancel();
    }
  }

  #gather(ms: number): void {
    if (this.#stopped || this.#sending || this.#timer) {
      return;
    }
    this.#timer = this.#options.clock.setTimeout(() => {
      this.#timer = undefined;
      void this.#send();
    }, ms);
  }

  async #send(): Promise<void> {
    const waiting = [...this.#entries.values()].filter(({ state }) => state === "waiting");
    const batch = waiting.slice(0, this.#options.maxBatch);
    if (batch.length === 0) {
      return;
    }
    this.#sending = true;
    let pauseMs = 0;
    try {
      await this.#record(batch);
      this.#backoff.reset();
    } catch (error) {
      pauseMs = this.#backoff.next();
      this.#options.log.warn(
        { err: error, runs: batch.length, pauseMs },
        "charges not recorded; trying again",
      );
    } finally {
      this.#sending = false;
    }
    if (this.#isWaiting()) {
      this.#gather(pauseMs);
    }
  }

  async #record(batch: Entry[]): Promise<void> {
    for (const entry of batch) {
      entry.state = "sent";
    }
    try {
      const recorded = await this.#options.ledger.record(batch.map(({ row }) => row));
      const byRun = new Map(recorded.map((result) => [runKey(result), result]));
      for (const entry of batch) {
        this.#apply(entry, byRun.get(runKey(entry.row)));
      }
    } finally {
      for (const entry of batch) {
        if (entry.state === "sent") {
          entry.state = "waiting";
        }
      }
    }
  }

  #apply(entry: Entry, result: RecordedRun | undefined): void {
    const { clock, log } = this.#options;
    if (!result) {
      throw new Error("the ledger did not answer for a run");
    }
    if (result.outcome === "refused") {
      const { reason = "no rule given" } = result;
      log.error({ run: entry.row.id, reason }, "the ledger refuses a charge");
      entry.state = "refused";
      entry.refusal = { reason, again: clock.setTimeout(() => this.#retry(entry), REFUSED_MS) };
      if (this.#stopped) {
        entry.refusal.again.cancel();
      }
    } else {
      entry.state = "recorded";
      entry.refusal = undefined;
      entry.charge = { outcome: result.outcome, at: clock.now() };
    }
    for (const listener of this.#listeners) {
      listener(entry.key);
    }
  }

  #retry(entry: Entry): void {
    entry.state = "waiting";
    this.#gather(0);
  }

  #isWaiting(): boolean {
    for (const { state } of this.#entries.values()) {
      if (state === "waiting") {
        return true;
      }
    }
    return false;
  }
}

const runKey = ({ organization_id, id }: { organization_id: string; id: string }) =>
  `${organization_id}/${id}`;
