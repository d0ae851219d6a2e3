/** Requests a second by project, out of the counts of several processes. Pure. */

/** What one process has counted since its start. */
export interface Reading {
  /** Another one after each start. */
  process: string;
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
  requests: ReadonlyMap<string, number>;
  complete: boolean;
}

/** Steps whose mean is the rate. */
const STEPS = 2;
/** Counts further apart say nothing about now. */
const MAX_STEP_MS = 60_000;

/** The mean rate over the last two steps. A process that has restarted, or was not read, is a gap: the rate is then at least what it says. */
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
    const requests = this.#steps.reduce((sum, step) => sum + (step.requests.get(key) ?? 0), 0);
    return seconds === 0 ? 0 : requests / seconds;
  }
}

function stepBetween(before: Round, after: Round): Step {
  const requests = new Map<string, number>();
  const earlier = new Map(before.readings.map((reading) => [reading.process, reading]));
  let known = 0;
  for (const { process, counts } of after.readings) {
    const base = earlier.get(process);
    if (base === undefined) {
      continue;
    }
    known += 1;
    for (const [key, count] of counts) {
      const counted = base.counts.get(key) ?? 0;
      // A project without requests for long is forgotten, and counted from 0 again.
      const more = count >= counted ? count - counted : count;
      requests.set(key, (requests.get(key) ?? 0) + more);
    }
  }
  const isKnown = known === after.readings.length && known === before.readings.length;
  return {
    seconds: (after.at - before.at) / 1000,
    requests,
    complete: isKnown && after.complete && after.readings.every(({ complete }) => complete),
  };
}
