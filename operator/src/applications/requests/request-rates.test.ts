import { expect, test } from "vitest";
import { type Reading, RequestRates } from "./request-rates.ts";

const KEY = "acme/pshop";

const reading = (process: string, count?: number, complete = true): Reading => ({
  process,
  complete,
  counts: new Map(count === undefined ? [] : [[KEY, count]]),
});

/** Rounds ten seconds apart. */
function ratesOf(...rounds: (readonly Reading[])[]): RequestRates {
  const rates = new RequestRates();
  rounds.forEach((readings, index) => {
    rates.add({ at: index * 10_000, readings, complete: true });
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

test.each<[string, (readonly Reading[])[], [number, boolean]]>([
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
    [10, false],
  ],
])("%s", (_, rounds, expected) => {
  expect(stateOf(ratesOf(...rounds))).toEqual(expected);
});

test("counts that are a minute apart, or of a moment, are no rate", () => {
  const rates = ratesOf([reading("a", 0)], [reading("a", 100)], [reading("a", 200)]);
  rates.add({ at: 20_000, readings: [reading("a", 900)], complete: true });
  expect(stateOf(rates)).toEqual([0, false]);
  rates.add({ at: 80_001, readings: [reading("a", 100_000)], complete: true });
  expect(stateOf(rates)).toEqual([0, false]);
});

test("a round in which not all have answered is a gap", () => {
  const rates = ratesOf([reading("a", 0)], [reading("a", 100)]);
  rates.add({ at: 20_000, readings: [reading("a", 200)], complete: false });
  expect(stateOf(rates)).toEqual([10, false]);
});
