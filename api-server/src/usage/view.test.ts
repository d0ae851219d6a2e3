import { billingCycle } from "@slipway/crds";
import type { OneProjectCost } from "@slipway/ledger";
import { expect, it } from "vitest";
import { projectCostView } from "./view.ts";

const now = new Date("2026-02-10T12:00:00Z");
const context = { cycle: billingCycle(now), now, plansMetered: true, id: "pshop", name: "Shop" };
const nothing: OneProjectCost = {
  kinds: [],
  days: [],
  adjustments: [],
  hasDays: true,
  renewing: [],
  prices: [],
};
const price = { hourly: "3", monthly: "2160", yearly: "25920", refund: "none" as const };

it("a term that renews has the price of now, and one of a plan without prices none", () => {
  const cost: OneProjectCost = {
    ...nothing,
    renewing: [
      { plan: "basic", paymentMode: "monthly", count: 2 },
      { plan: "constructor", paymentMode: "monthly", count: 1 },
    ],
    prices: [
      { from: 0, plans: { basic: price }, gbHour: "0" },
      { from: now.getTime(), plans: { basic: { ...price, monthly: "2880.5" } }, gbHour: "0" },
      { from: now.getTime() + 1, plans: { basic: { ...price, monthly: "9999" } }, gbHour: "0" },
    ],
  };
  const { forecast } = projectCostView(cost, context);
  expect(forecast).toEqual({ amount: "5761", kinds: [{ kind: "term", amount: "5761" }] });
});

it("days before the cycle are in the forecast alone", () => {
  const days = ["2026-01-31", "2026-02-03"].map((day) => ({ day, kind: "job_run" as const, amount: "7" }));
  const kinds = [{ kind: "job_run" as const, amount: "7", charges: 1 }];
  const found = projectCostView(
    { ...nothing, kinds, days },
    { ...context, now: new Date("2026-02-04T12:00:00Z") },
  );
  expect(found.days).toEqual([{ day: "2026-02-03", amount: "7", kinds: [{ kind: "job_run", amount: "7" }] }]);
  // Two sevens in seven days, so two for each of 25.
  expect(found.forecast?.amount).toBe("57");
});

it("without its charges a project has no days, and a cycle that has ended no forecast", () => {
  const found = projectCostView({ ...nothing, hasDays: false }, { ...context, now: undefined });
  expect(found).toMatchObject({ amount: "0", days: null, forecast: null });
});
