import { describe, expect, it } from "vitest";
import { linear, linePath, ticks, timeTicks } from "./scale.ts";

describe("the marks of an axis", () => {
  it.each([
    [0, [0, 1]],
    [Number.NaN, [0, 1]],
    [1, [0, 0.5, 1]],
    [4, [0, 1, 2, 3, 4]],
    [7, [0, 2, 4, 6, 8]],
    [100, [0, 50, 100]],
    [101, [0, 50, 100, 150]],
    [0.003, [0, 0.001, 0.002, 0.003]],
  ])("up to %d are %j", (max, marks) => {
    expect(ticks(max)).toEqual(marks);
  });

  it("are few, rise, and reach the highest value, whatever it is", () => {
    for (let power = -9; power <= 15; power += 1) {
      for (const factor of [1, 1.0001, 2.5, 3.3, 4.9999, 7, 9.99]) {
        const max = factor * 10 ** power;
        for (const base of [10, 1024] as const) {
          const marks = ticks(max, 4, base);
          expect(marks[0]).toBe(0);
          expect(marks.length).toBeGreaterThan(1);
          expect(marks.length).toBeLessThanOrEqual(6);
          expect(marks.at(-1)).toBeGreaterThanOrEqual(max * (1 - 1e-9));
          expect([...marks].sort((one, other) => one - other)).toEqual(marks);
        }
      }
    }
  });

  it("of sizes are powers of two apart", () => {
    expect(ticks(3 * 2 ** 20, 4, 1024)).toEqual([0, 2 ** 20, 2 ** 21, 3 * 2 ** 20]);
  });
});

describe("a scale", () => {
  it("maps ends to ends, and a range without length to the middle", () => {
    const scale = linear([0, 10], [100, 0]);
    expect([scale(0), scale(5), scale(10)]).toEqual([100, 50, 0]);
    expect(linear([5, 5], [0, 10])(5)).toBe(5);
  });
});

describe("the marks of a time axis", () => {
  it("are round in the time zone, inside the range, and few", () => {
    const from = Date.UTC(2026, 10, 22, 4, 7, 13);
    const hour = 3_600_000;
    for (const [span, offset] of [
      [60_000, 0],
      [5 * 60_000, hour],
      [hour, -3.5 * hour],
      [6 * hour, 5.75 * hour],
      [24 * hour, 0],
      [7 * 24 * hour, -5 * hour],
    ] as const) {
      const marks = timeTicks(from, from + span, 6, offset);
      expect(marks.length).toBeGreaterThan(1);
      expect(marks.length).toBeLessThanOrEqual(6);
      for (const mark of marks) {
        expect(mark >= from && mark <= from + span).toBe(true);
        expect((mark + offset) % 1_000).toBe(0);
      }
    }
    expect(timeTicks(from, from + hour, 6).map((mark) => new Date(mark).getUTCMinutes() % 10)).toEqual([
      0, 0, 0, 0, 0, 0,
    ]);
  });
});

it("a line has a gap where nothing is known", () => {
  expect(
    linePath([
      [0, 1],
      [1, 2.04],
      [2, null],
      [3, 4],
    ]),
  ).toBe("M0 1L1 2M3 4");
  expect(linePath([[0, null]])).toBe("");
});
