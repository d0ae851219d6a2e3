import { billingCycle, type CostOfDay, forecastCost, type Renewal } from "@slipway/crds";
import { expect, it } from "vitest";
import { blocks, instant } from "./page.ts";

interface WrittenForecast {
  now: string;
  days: CostOfDay[];
  renewals: Renewal[];
  forecast: { kind: string; amount: string }[];
  amount: string;
}

const examples = blocks("yaml forecast") as WrittenForecast[];

// Shows: docs/billing.md#forecast: what the current cycle will have cost at its end if nothing changes
// Shows: docs/billing.md#forecast: each open or coming day costs what the last whole day did
// Shows: docs/billing.md#forecast: Terms that were charged count
it("the forecast of the page's example is the one that the page has", () => {
  expect(examples).toHaveLength(1);
  for (const { now, days, renewals, forecast, amount } of examples) {
    const at = new Date(instant(now));
    expect(forecastCost(days, { cycle: billingCycle(at), now: at, plansMetered: true, renewals })).toEqual({
      amount,
      kinds: forecast,
    });
  }
});
