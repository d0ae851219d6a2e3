/** Brings charges into the ledger in batches, for as long as it takes. */

import { Backoff } from "@slipway/controller-runtime";
import type { Clock, Logger, Random, Timer } from "@slipway/process";
import type { ChargedRun, RecordedRun, RunLedger } from "./ports.ts";

export interface ChargeRecorderOptions {
  ledger: RunLedger;
  clock: Clock;
  random: Random;
  log: Logger;
  /** Rows of one batch: 500 unless given. */
  maxBatch?: number;
  /** How long a batch is gathered: 50 ms unless given. */
  gatherMs?: number;
  /** Runs that are kept, waiting and charged: 20,000 unless given. The rest asks again later. */
  maxKept?: number;
}

/** What became of a charge, and when that was read back. */
export interface Charge {
  outcome: Exclude<RecordedRun["outcome"], "refused">;
  at: Date;
}

interface Entry {
  key: string;
  row: ChargedRun;
  state: "waiting" | "sent" | "resting" | "settled";
  charge?: Charge;
  /** The rule by which the ledger refuses it, and when it is tried again. */
  refusal?: { reason: string; again: Timer };
}

/** A row that the ledger refuses by itself is tried again after so long. */
const REFUSED_MS = 60_000;

/**
 * Charges runs. What it is asked for it keeps until it is told to forget; asking again, also after a restart, records
 * nothing twice.
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

  /** Registers who is told that the charge of a run of a key is in, or was refused. Returns how to stop it. */
  onRecorded(listener: (key: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * The charge of a run, once it was read back; until then undefined, and the key's listener is called later. `full`: there
   * is no room, ask again.
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

  /** Why the ledger refuses a run's charge, as it said when it was last asked; undefined when it does not. */
  refusal(uid: string): string | undefined {
    return this.#entries.get(uid)?.refusal?.reason;
  }

  /** Drops a run that is settled, or gone. */
  forget(uid: string): void {
    this.#entries.get(uid)?.refusal?.again.cancel();
    this.#entries.delete(uid);
  }

  /** Sends nothing any more. What was not recorded is for whoever leads next. */
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
      const byRun = new Map(recorded.map((answer) => [runKey(answer), answer]));
      for (const entry of batch) {
        this.#settle(entry, byRun.get(runKey(entry.row)));
      }
    } finally {
      for (const entry of batch) {
        if (entry.state === "sent") {
          entry.state = "waiting";
        }
      }
    }
  }

  #settle(entry: Entry, answer: RecordedRun | undefined): void {
    const { clock, log } = this.#options;
    if (!answer) {
      throw new Error("the ledger did not answer for a run");
    }
    if (answer.outcome === "refused") {
      const { reason = "no rule given" } = answer;
      log.error({ run: entry.row.id, reason }, "the ledger refuses a charge");
      entry.state = "resting";
      entry.refusal = { reason, again: clock.setTimeout(() => this.#askAgain(entry), REFUSED_MS) };
      if (this.#stopped) {
        entry.refusal.again.cancel();
      }
    } else {
      entry.state = "settled";
      entry.refusal = undefined;
      entry.charge = { outcome: answer.outcome, at: clock.now() };
    }
    for (const listener of this.#listeners) {
      listener(entry.key);
    }
  }

  #askAgain(entry: Entry): void {
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
