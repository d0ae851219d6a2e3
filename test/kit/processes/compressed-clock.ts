/**
 * A clock that is set by steps: it begins behind the real one, and has caught up with it after the last step, so that hours pass within minutes
 * and nothing is ever recorded ahead of the real time. A process that is started with `--import` of this file, and with the schedule in
 * `SLIPWAY_TEST_CLOCK`, lives by it. The file imports nothing of the repository: on a stack it is mounted alone.
 *
 * Between two steps time passes as it does, and monotonic time always does: leases and timeouts are as they are. What a process is told of the time
 * of others must agree with its own, or it neither decides nor charges anything. So an HTTP `Date` header, which is how it reads the apiserver's time,
 * is read by this clock; for the ledger's see {@link ledgerClock}.
 */

export interface ClockSchedule {
  /** Real time of the first step, in milliseconds. */
  began: number;
  /** Real time between two steps. */
  everyMs: number;
  /** By how much the clock is behind before each step; after the last one it is not. */
  behindMs: readonly number[];
  /** Pauses of a minute and more are divided by it, as what is done by the minute or the hour is to be done in these hours. */
  pauseDivisor: number;
}

/** Name of the variable with the schedule, as JSON. */
export const CLOCK_VARIABLE = "SLIPWAY_TEST_CLOCK";

/** By how much the clock is behind at a real instant. Pure. */
export function behindAt({ began, everyMs, behindMs }: ClockSchedule, real: number): number {
  const step = Math.max(0, Math.ceil((real - began) / everyMs));
  return behindMs[step] ?? 0;
}

/** When the clock has caught up, in real time. Pure. */
export const caughtUpAt = ({ began, everyMs, behindMs }: ClockSchedule): number =>
  began + behindMs.length * everyMs;

/** A schedule of steps of the same length, which has caught up after so many. Pure. */
export const evenSteps = (stepMs: number, steps: number): number[] =>
  Array.from({ length: steps }, (_, index) => stepMs * (steps - index));

const SCHEMA = "slipway_test_clock";
/** What an operator asks the ledger when it compares clocks. */
const COMPARISON = "select clock_timestamp() as now";

/**
 * Statements by which the ledger answers by this clock where a process compares its own with it, and by the real time everywhere else: only a function
 * of the session's search path, which the owner of a role sets for its new sessions.
 * @param role of the processes
 */
export function ledgerClock({ began, everyMs, behindMs }: ClockSchedule, role: string) {
  const values = behindMs.map((ms) => Math.round(ms)).join(",");
  const step = `greatest(0, ceil((extract(epoch from pg_catalog.clock_timestamp()) * 1000 - ${began}) / ${everyMs}))::int + 1`;
  return {
    set: [
      `create schema if not exists ${SCHEMA}`,
      `grant usage on schema ${SCHEMA} to public`,
      `create or replace function ${SCHEMA}.clock_timestamp() returns timestamptz language sql volatile as $$
        select pg_catalog.clock_timestamp() - case when current_query() = '${COMPARISON}'
          then coalesce((array[${values}]::bigint[])[${step}], 0) else 0 end * interval '1 millisecond' $$`,
      `alter role ${role} set search_path = ${SCHEMA}, pg_catalog, public`,
    ],
    reset: [`alter role ${role} reset search_path`, `drop schema if exists ${SCHEMA} cascade`],
  };
}

/** From which pause on it is shortened, in milliseconds. */
const LONG_PAUSE_MS = 60_000;
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** Has this process live by the clock. */
function install(schedule: ClockSchedule): void {
  const RealDate = Date;
  const realNow = Date.now;
  const realSetTimeout = globalThis.setTimeout;
  const now = (): number => realNow() - behindAt(schedule, realNow());
  const given = (args: unknown[]): unknown[] => {
    const [first] = args;
    if (args.length === 0) {
      return [now()];
    }
    return typeof first === "string" && HTTP_DATE.test(first)
      ? [RealDate.parse(first) - behindAt(schedule, realNow())]
      : args;
  };
  RealDate.now = now;
  const ofClock: DateConstructor = new Proxy(RealDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, given(args), newTarget === ofClock ? target : newTarget),
  });
  globalThis.Date = ofClock;
  globalThis.setTimeout = new Proxy(realSetTimeout, {
    apply: (target, self, [callback, ms, ...args]: [() => void, number | undefined, ...unknown[]]) => {
      const isLong = ms !== undefined && ms >= LONG_PAUSE_MS;
      return Reflect.apply(target, self, [callback, isLong ? ms / schedule.pauseDivisor : ms, ...args]);
    },
  });
}

const written = process.env[CLOCK_VARIABLE];
if (written !== undefined) {
  install(JSON.parse(written) as ClockSchedule);
}
