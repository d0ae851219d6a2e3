import { expect, test } from "vitest";
import { type PriceList, priceListOf } from "./prices.ts";
import { buildCharge } from "./resource-charges.ts";

const list = (from: number, buildMinute?: string): PriceList => ({
  from,
  gbHour: "0",
  plans: {},
  ...(buildMinute === undefined ? {} : { resources: { buildMinute } }),
});
const build = { projectUid: "u1", buildId: "b1", ranFrom: 100_000, ranUntil: 220_001 };

test("a build is charged for each begun minute, of the time in which it ran, by the price of its start", () => {
  expect(buildCharge(build, [list(0, "0.25"), list(100_001, "9")])).toEqual({
    key: "u1/build_minute/b1",
    kind: "build_minute",
    from: 100_000,
    to: 280_000,
    finalAt: 220_001,
    quantity: "3",
    price: "0.25",
    amount: "0.75",
  });
});

test.each([
  ["that ends as it begins", 100_000, 1],
  ["whose clock was set back", 7, 1],
  ["of a full minute", 160_000, 1],
  ["whose clock was set by a century", 100 * 365 * 86_400_000, 1_440],
])("one %s", (_, ranUntil, minutes) => {
  const charge = buildCharge({ ...build, ranUntil }, [list(0, "1")]);
  expect(charge).toMatchObject({ quantity: `${minutes}`, amount: `${minutes}` });
  const { from = 0, to = 0, finalAt = 0 } = charge ?? {};
  expect(from < to && from <= finalAt && finalAt <= to).toBe(true);
});

test.each([
  ["before there is a price", build, [list(100_001, "1")]],
  ["without a price", build, [list(0)]],
  ["of the price 0", build, [list(0, "0.00")]],
  ["that the platform failed", { ...build, errorCode: "BUILD_ENGINE_FAILED" }, [list(0, "1")]],
])("one %s costs nothing", (_, one, lists) => {
  expect(buildCharge(one, lists)).toBeUndefined();
});

test("prices of 0 are in no list", () => {
  const catalog = { httpPlans: [], databasePlans: [], storagePlans: [] } as unknown as Parameters<
    typeof priceListOf
  >[0];
  const priced = { ...catalog, resourcePrices: { buildMinute: "0.50" } };
  expect(priceListOf(priced, 1).resources).toEqual({ buildMinute: "0.50" });
  expect(priceListOf({ ...catalog, resourcePrices: { buildMinute: "0.0" } }, 1).resources).toBeUndefined();
  expect(priceListOf(catalog, 1)).toEqual({ from: 1, plans: {}, gbHour: "0" });
});
