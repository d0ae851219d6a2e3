/** Requests a second by project, out of the counts of several processes. Pure. */

/** What one process has counted since its start. */
export interface Reading {
  /** Another one after each start. */
  process: string;
  /** When it has answered, by its own monotonic clock, in milliseconds. */
  at: number;
  /** Whether it has counted everything up to now. */
  complete: boolean;
  /** Requests, by `<organization>/<project>`. */
  counts: ReadonlyMap<string, number>;
}

/** All processes, read together. */
export interface Round {
  /** Monotonic time, in milliseconds. */
  at: number;
  readings: readonly Reading[];
  /** Whether every process has answered that counts requests. */
  complete: boolean;
  /** Those that have not. */
  failures?: readonly { node: string; error: unknown }[];
}

/** What was requested between two rounds. */
interface Step {
  seconds: number;
  /** Requests a second. */
  rates: ReadonlyMap<string, number>;
  complete: boolean;
}

/** Steps whose mean is the rate. */
const STEPS = 2;
/** Counts further apart say nothing about now. */
const MAX_STEP_MS = 60_000;

/** The mean rate over the last two steps. A process that has restarted, was not read, or had not counted everything is a gap: the rate is then without its requests. */
export class RequestRates {
  #last: Round | undefined;
  #steps: Step[] = [];

  add(round: Round): void {
    const before = this.#last;
    this.#last = round;
    if (before === undefined || round.at <= before.at || round.at - before.at > MAX_STEP_MS) {
      this.#steps = [];
      return;
    }
    this.#steps = [...this.#steps, stepBetween(before, round)].slice(-STEPS);
  }

  /** Whether nothing is missing in the rates. */
  get isComplete(): boolean {
    return this.#steps.length === STEPS && this.#steps.every(({ complete }) => complete);
  }

  /** Requests a second; 0 of a project without requests, and where nothing is known. */
  of(key: string): number {
    const seconds = this.#steps.reduce((sum, step) => sum + step.seconds, 0);
    const requests = this.#steps.reduce((sum, step) => sum + (step.rates.get(key) ?? 0) * step.seconds, 0);
    return seconds === 0 ? 0 : requests / seconds;
  }
}

function stepBetween(before: Round, after: Round): Step {
  const rates = new Map<string, number>();
  const earlier = new Map(before.readings.map((reading) => [reading.process, reading]));
  let known = 0;
  for (const reading of after.readings) {
    const base = earlier.get(reading.process);
    // What it had not counted then may be in the count of now: the difference is no load of this step.
    if (!base?.complete || reading.at <= base.at) {
      continue;
    }
    known += 1;
    addRates(rates, base, reading);
  }
  const isKnown = known === after.readings.length && known === before.readings.length;
  return {
    seconds: (after.at - before.at) / 1000,
    rates,
    complete: isKnown && after.complete && after.readings.every(({ complete }) => complete),
  };
}

/** By the time that has passed for the process itself: its answers may have taken longer or less. */
function addRates(rates: Map<string, number>, base: Reading, reading: Reading): void {
  const seconds = (reading.at - base.at) / 1000;
  for (const [key, count] of reading.counts) {
    const counted = base.counts.get(key) ?? 0;
    // A project without requests for long is forgotten, and counted from 0 again.
    const more = count >= counted ? count - counted : count;
    rates.set(key, (rates.get(key) ?? 0) + more / seconds);
  }
}
