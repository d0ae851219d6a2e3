import fc from "fast-check";
import { expect, test } from "vitest";
import { partsOf, type Window } from "./window.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const units = [{ ms: HOUR }, { ms: MINUTE }];
const every = ({ full, edges }: ReturnType<typeof partsOf>): Window[] =>
  [...edges, ...full.flatMap(({ windows }) => windows)].sort((one, other) => one.from - other.from);

// Shows: docs/analytics.md#the-api: the parts of a window cover it, no moment twice
test("a window's parts are the window, no moment twice, and units are full", () => {
  const moment = fc.oneof(
    fc.integer({ min: 0, max: 4 * HOUR }),
    fc.integer({ min: 0, max: 240 }).map((minute) => minute * MINUTE),
    fc.integer({ min: 0, max: 4 }).map((hour) => hour * HOUR),
  );
  const which = fc.constantFrom(units, units.slice(1), units.slice(0, 1), []);
  fc.assert(
    fc.property(moment, moment, which, (from, to, some) => {
      const parts = partsOf({ from, to }, some);
      let at = from;
      for (const part of every(parts)) {
        expect(part.from).toBe(at);
        expect(part.to).toBeGreaterThan(part.from);
        at = part.to;
      }
      expect(at).toBe(Math.max(from, to));
      for (const { unit, windows } of parts.full) {
        for (const { from: first, to: last } of windows) {
          expect([first % unit.ms, last % unit.ms]).toEqual([0, 0]);
        }
      }
    }),
    { numRuns: 1_000 },
  );
});

test("a long window is hours, minutes around them, and what is left at both ends", () => {
  const from = HOUR - 90_500;
  const to = 3 * HOUR + 60_001;
  expect(partsOf({ from, to }, units)).toEqual({
    full: [
      { unit: units[0], windows: [{ from: HOUR, to: 3 * HOUR }] },
      {
        unit: units[1],
        windows: [
          { from: HOUR - MINUTE, to: HOUR },
          { from: 3 * HOUR, to: 3 * HOUR + MINUTE },
        ],
      },
    ],
    edges: [
      { from, to: HOUR - MINUTE },
      { from: 3 * HOUR + MINUTE, to },
    ],
  });
});

test("a window without a full unit is an edge, and an empty one nothing", () => {
  expect(partsOf({ from: 10, to: MINUTE + 10 }, units)).toEqual({
    full: [],
    edges: [{ from: 10, to: MINUTE + 10 }],
  });
  expect(partsOf({ from: MINUTE, to: MINUTE }, units)).toEqual({ full: [], edges: [] });
});
