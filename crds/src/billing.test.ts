import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  billedMinutes,
  billingCycle,
  compareDecimal,
  durationSeconds,
  formatDecimal,
  minutePrice,
  parseDecimal,
  runAmount,
  settle,
  sumDecimals,
} from "./billing.ts";

const start = new Date("2026-01-31T23:59:50Z");
const after = (seconds: number) => new Date(start.getTime() + seconds * 1_000);

describe("billed minutes", () => {
  // Shows: docs/jobs.md#billing: minutes are rounded up, 1 to 60; the amount is minutes times the price
  it.each([
    [0, 1],
    [1, 1],
    [59, 1],
    [60, 1],
    [60.001, 2],
    [61, 2],
    [70, 2],
    [3_599, 60],
    [3_600, 60],
    [3_640, 60],
    [-5, 1],
  ])("%s s are %s minutes", (seconds, minutes) => {
    expect(billedMinutes(start, after(seconds))).toBe(minutes);
  });

  it("are never fewer than before for a longer run", () => {
    fc.assert(
      fc.property(fc.nat(4_000_000), fc.nat(4_000_000), (a, b) => {
        const [short, long] = a < b ? [a, b] : [b, a];
        expect(billedMinutes(start, after(short / 1_000))).toBeLessThanOrEqual(
          billedMinutes(start, after(long / 1_000)),
        );
      }),
    );
  });
});

describe("duration", () => {
  it("is whole seconds, and never negative", () => {
    expect(durationSeconds(start, after(69.9))).toBe(69);
    expect(durationSeconds(start, after(-1))).toBe(0);
  });
});

describe("amount", () => {
  it.each([
    ["0.02", 3, "0.06"],
    ["0.1", 10, "1"],
    ["0", 60, "0"],
    ["0.0000000001", 60, "0.000000006"],
  ])("%s x %s = %s", (price, minutes, amount) => {
    expect(runAmount(price, minutes)).toBe(amount);
  });
});

describe("price of a minute by that of an hour", () => {
  it.each([
    ["3", "0.05"],
    ["10", "0.166666666"],
    ["0", "0"],
    ["0.5", "0.008333333"],
    ["7.20", "0.12"],
  ])("%s an hour are %s a minute", (hour, minute) => {
    expect(minutePrice(hour)).toBe(minute);
  });

  it("makes no hour dearer than its price, nor cheaper by a millionth of a cent", () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 10n ** 12n), fc.integer({ min: 0, max: 9 }), (units, scale) => {
        const hour = { units, scale };
        const sixty = parseDecimal(runAmount(minutePrice(formatDecimal(hour)), 60));
        const more = { units: sixty.units * 10n ** 6n + 10n ** BigInt(sixty.scale), scale: sixty.scale + 6 };
        expect(compareDecimal(sixty, hour)).toBeLessThanOrEqual(0);
        expect(compareDecimal(more, hour)).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});

describe("cycle", () => {
  it.each([
    ["2026-01-31T23:59:59.999Z", "2026-01-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z"],
    ["2026-02-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z", "2026-03-01T00:00:00.000Z"],
    ["2026-12-31T12:00:00.000Z", "2026-12-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"],
  ])("%s lies in %s", (at, startedAt, nextResetAt) => {
    const cycle = billingCycle(new Date(at));
    expect([cycle.startedAt.toISOString(), cycle.nextResetAt.toISOString()]).toEqual([
      startedAt,
      nextResetAt,
    ]);
  });
});

describe("settlement", () => {
  it("splits an amount into whole cents and the rest, exactly", () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: 10n ** 24n }),
        fc.integer({ min: 0, max: 12 }),
        (units, scale) => {
          const { cents, carry } = settle({ units, scale });
          expect(cents * 10n ** BigInt(scale) + carry.units).toBe(units);
          expect(carry.units).toBeLessThan(10n ** BigInt(scale));
        },
      ),
    );
  });

  it("keeps the fraction", () => {
    const { cents, carry } = settle(parseDecimal("12.345"));
    expect([cents, formatDecimal(carry)]).toEqual([12n, "0.345"]);
  });
});

describe("a sum", () => {
  it.each([
    [[], "0"],
    [["0.1", "0.2"], "0.3"],
    [["10", "-2.50", "0.000000001"], "7.500000001"],
    [["1", "-1.5"], "-0.5"],
    [["-0", "5", "-5.0"], "0"],
  ])("of %j is %s", (amounts, sum) => {
    expect(sumDecimals(amounts)).toBe(sum);
  });

  it.each(["", "-", "--1", "1e3", "+1", "-.5"])("of %j is refused", (text) => {
    expect(() => sumDecimals([text])).toThrow(RangeError);
  });
});
