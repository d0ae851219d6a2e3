import { expect, test } from "vitest";
import { type Reading, RequestRates } from "./request-rates.ts";

const KEY = "acme/pshop";

/** Read when its round is, unless it says when. */
type Unread = Omit<Reading, "at"> & { at?: number };

const reading = (process: string, count?: number, complete = true): Unread => ({
  process,
  complete,
  counts: new Map(count === undefined ? [] : [[KEY, count]]),
});

const roundAt = (at: number, readings: readonly Unread[], complete = true) => ({
  at,
  readings: readings.map((one) => ({ at, ...one })),
  complete,
});

/** Rounds ten seconds apart. */
function ratesOf(...rounds: (readonly Unread[])[]): RequestRates {
  const rates = new RequestRates();
  rounds.forEach((readings, index) => {
    rates.add(roundAt(index * 10_000, readings));
  });
  return rates;
}

const stateOf = (rates: RequestRates) => [rates.of(KEY), rates.isComplete];

// Shows: docs/applications.md#scaling-by-requests: the requests of all pods of the ingress are counted together
test("the mean of two steps, of all processes together", () => {
  expect(stateOf(ratesOf([reading("a", 100), reading("b", 7)]))).toEqual([0, false]);
  expect(stateOf(ratesOf([reading("a", 100), reading("b")], [reading("a", 200), reading("b", 100)]))).toEqual(
    [20, false],
  );
  const rates = ratesOf(
    [reading("a", 0), reading("b", 0)],
    [reading("a", 100), reading("b", 100)],
    [reading("a", 300), reading("b", 200)],
    [reading("a", 700), reading("b", 200)],
  );
  expect(stateOf(rates)).toEqual([35, true]);
  expect(rates.of("acme/other")).toBe(0);
});

// Shows: docs/applications.md#scaling-by-requests: requests that a collector has not counted in time start no instances
test.each<[string, (readonly Unread[])[], [number, boolean]]>([
  [
    "a process that has restarted begins again, and what it counted before is no rate",
    [[reading("a", 0)], [reading("a", 1_000)], [reading("a2", 1_000)], [reading("a2", 1_100)]],
    [5, false],
  ],
  [
    "two steps after a restart the rate is complete again",
    [[reading("a", 900)], [reading("a2", 5)], [reading("a2", 105)], [reading("a2", 205)]],
    [10, true],
  ],
  [
    "a count that is forgotten begins at 0",
    [[reading("a", 1_000)], [reading("a", 50)], [reading("a", 150)]],
    [7.5, true],
  ],
  [
    "a process that does not answer leaves a gap, and its next count is no jump",
    [
      [reading("a", 0), reading("b", 0)],
      [reading("a", 100)],
      [reading("a", 200), reading("b", 5_000)],
      [reading("a", 300), reading("b", 5_000)],
    ],
    [10, false],
  ],
  [
    "one that has not read its logs to their end is a gap",
    [[reading("a", 0)], [reading("a", 100, false)], [reading("a", 200)]],
    [5, false],
  ],
  [
    "what it has read late is no load of the step in which it was read",
    [[reading("a", 0, false)], [reading("a", 3_500)], [reading("a", 3_600)]],
    [5, false],
  ],
  [
    "two steps after that the rate is complete again",
    [[reading("a", 0, false)], [reading("a", 3_500)], [reading("a", 3_600)], [reading("a", 3_700)]],
    [10, true],
  ],
])("%s", (_, rounds, expected) => {
  expect(stateOf(ratesOf(...rounds))).toEqual(expected);
});

test("counts that are a minute apart, or of a moment, are no rate", () => {
  const rates = ratesOf([reading("a", 0)], [reading("a", 100)], [reading("a", 200)]);
  rates.add(roundAt(20_000, [reading("a", 900)]));
  expect(stateOf(rates)).toEqual([0, false]);
  rates.add(roundAt(80_001, [reading("a", 100_000)]));
  expect(stateOf(rates)).toEqual([0, false]);
});

test("a round in which not all have answered is a gap", () => {
  const rates = ratesOf([reading("a", 0)], [reading("a", 100)]);
  rates.add(roundAt(20_000, [reading("a", 200)], false));
  expect(stateOf(rates)).toEqual([10, false]);
});

test("the seconds of a rate are those between two answers of a process, however long the round took", () => {
  const early = { ...reading("b", 0), at: 500_000 };
  const late = { ...reading("b", 70), at: 507_000 };
  const rates = ratesOf([reading("a", 0), early], [reading("a", 100), late]);
  expect(rates.of(KEY)).toBeCloseTo(20);
  rates.add(roundAt(20_000, [reading("a", 200), { ...reading("b", 200), at: 520_000 }]));
  expect(stateOf(rates)).toEqual([expect.closeTo(20), true]);
});

test("an answer of the same moment as the last is a gap", () => {
  const rates = ratesOf([{ ...reading("a", 0), at: 5 }], [{ ...reading("a", 50), at: 5 }]);
  expect(stateOf(rates)).toEqual([0, false]);
});
