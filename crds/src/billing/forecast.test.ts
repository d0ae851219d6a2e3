import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { billingCycle, sumDecimals } from "../billing.ts";
import { type CostKind, type CostOfDay, costKinds, forecastCost, forecastDays } from "./forecast.ts";

const cycle = billingCycle(new Date("2026-11-10T00:00:00Z"));
const forecast = (
  now: string,
  days: readonly CostOfDay[],
  renewals: { price: string; count: number }[] = [],
  plansMetered = true,
) => forecastCost(days, { cycle, now: new Date(now), plansMetered, renewals });
const day = (name: string, kind: CostKind, amount: string): CostOfDay => ({ day: name, kind, amount });

describe("the days of a forecast", () => {
  it.each([
    ["2026-11-10T02:00:00Z", "2026-11-10", "2026-11-03"],
    ["2026-11-10T01:59:59Z", "2026-11-09", "2026-11-02"],
    ["2026-11-01T01:00:00Z", "2026-10-31", "2026-10-24"],
    ["2026-03-01T12:00:00Z", "2026-03-01", "2026-02-22"],
  ])("at %s begin with %s, and with %s for the mean", (now, open, from) => {
    expect(forecastDays(new Date(now))).toEqual({ open, from });
  });
});

describe("a forecast", () => {
  it("has each day to come cost what the last whole day did", () => {
    const days = [day("2026-11-08", "instance_hour", "99"), day("2026-11-09", "instance_hour", "72")];
    expect(forecast("2026-11-10T12:00:00Z", days)).toEqual({
      amount: String(99 + 72 * 22),
      kinds: [{ kind: "instance_hour", amount: String(99 + 72 * 22) }],
    });
  });

  it("has the open day cost what it did already, where that is more", () => {
    const days = [day("2026-11-09", "storage_hour", "2"), day("2026-11-10", "storage_hour", "5")];
    expect(forecast("2026-11-10T12:00:00Z", days).amount).toBe(String(2 + 5 + 2 * 20));
  });

  it("counts what late changes charged once, and has no day to come cost it", () => {
    const days = [
      day("2026-11-09", "instance_hour", "172"),
      day("2026-11-10", "instance_hour", "40"),
      day("2026-11-09", "storage_hour", "2"),
    ];
    const adjustments = [day("2026-11-09", "instance_hour", "100"), day("2026-11-10", "instance_hour", "10")];
    const now = new Date("2026-11-10T12:00:00Z");
    expect(forecastCost(days, { cycle, now, plansMetered: true, renewals: [], adjustments }).kinds).toEqual([
      { kind: "instance_hour", amount: String(172 + 10 + 72 * 21) },
      { kind: "storage_hour", amount: String(2 * 22) },
    ]);
  });

  it("counts a day as whole two hours after its end", () => {
    const days = [day("2026-11-08", "job_storage", "2"), day("2026-11-09", "job_storage", "1")];
    expect(forecast("2026-11-10T01:59:00Z", days).amount).toBe(String(2 + 2 + 2 * 21));
    expect(forecast("2026-11-10T02:00:00Z", days).amount).toBe(String(2 + 1 + 1 * 21));
  });

  it("has runs cost the mean of seven whole days, also of the cycle before, rounded down", () => {
    const days = [day("2026-10-30", "job_run", "1"), day("2026-11-01", "job_run", "1")];
    // Two sevenths for each of 29 days.
    expect(forecast("2026-11-02T12:00:00Z", days).amount).toBe("9.285714265");
    expect(forecast("2026-11-08T12:00:00Z", days).amount).toBe(
      sumDecimals(["1", ...Array(23).fill("0.142857142")]),
    );
    expect(forecast("2026-11-09T12:00:00Z", days).amount).toBe("1");
  });

  it("adds terms that renew, and takes off credits", () => {
    const days = [day("2026-11-03", "term", "2160"), day("2026-11-04", "credit", "-1080.5")];
    expect(forecast("2026-11-10T12:00:00Z", days, [{ price: "0.25", count: 3 }])).toEqual({
      amount: "1080.25",
      kinds: [
        { kind: "term", amount: "2160.75" },
        { kind: "credit", amount: "-1080.5" },
      ],
    });
  });

  it("has plans that are not metered any more cost what was charged of them", () => {
    const days = costKinds.map((kind) => day("2026-11-09", kind, kind === "credit" ? "-1" : "7"));
    expect(forecast("2026-11-10T12:00:00Z", days, [{ price: "2160", count: 1 }], false).kinds).toEqual([
      { kind: "job_run", amount: String(7 + 21) },
      { kind: "job_storage", amount: String(7 + 7 * 21) },
      { kind: "instance_hour", amount: "7" },
      { kind: "storage_hour", amount: "7" },
      { kind: "build_minute", amount: "7" },
      { kind: "term", amount: "7" },
      { kind: "credit", amount: "-1" },
    ]);
  });

  it("of nothing is nothing", () => {
    expect(forecast("2026-11-10T12:00:00Z", [])).toEqual({ amount: "0", kinds: [] });
  });

  it("is the sum of its parts, and of hours and runs never less than what was charged", () => {
    const dates = fc.integer({ min: 0, max: 36 }).map((index) => new Date(Date.UTC(2026, 9, 25 + index)));
    const sums = fc.uniqueArray(
      fc.record({
        day: dates.map((date) => date.toISOString().slice(0, 10)),
        kind: fc.constantFrom(...costKinds.filter((kind) => kind !== "credit")),
        amount: fc.tuple(fc.nat(999), fc.nat(999)).map(([whole, part]) => `${whole}.${part}`),
      }),
      { selector: ({ day: name, kind }) => `${name} ${kind}` },
    );
    fc.assert(
      fc.property(sums, fc.integer({ min: 0, max: 30 * 24 - 1 }), (days, hour) => {
        const now = new Date(cycle.startedAt.getTime() + hour * 3_600_000).toISOString();
        const found = forecast(now, days);
        expect(found.amount).toBe(sumDecimals(found.kinds.map(({ amount }) => amount)));
        for (const kind of costKinds) {
          const charged = days.filter((each) => each.kind === kind && each.day.startsWith("2026-11"));
          const rest = sumDecimals([
            found.kinds.find((each) => each.kind === kind)?.amount ?? "0",
            ...charged.map(({ amount }) => `-${amount}`),
          ]);
          expect(rest).not.toMatch(/^-/);
        }
      }),
    );
  });
});
