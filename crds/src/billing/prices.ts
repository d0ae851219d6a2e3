/** Prices by date: docs/billing.md#prices. */

import type { Catalog, Prices, Refund } from "../catalog.ts";

/** What is priced beside plans and storage. */
export const resourcePrices = ["buildMinute"] as const;
export type ResourcePrice = (typeof resourcePrices)[number];

export interface PlanPrices extends Prices {
  /** What is given back of a term when its project is deleted. */
  readonly refund: Refund;
}

/** What all costs from an instant on, in BRL cents. */
export interface PriceList {
  /** Milliseconds. */
  readonly from: number;
  readonly plans: Readonly<Record<string, PlanPrices>>;
  /** A GB of billed storage for an hour. */
  readonly gbHour: string;
  /** What is missing costs nothing. */
  readonly resources?: Readonly<Partial<Record<ResourcePrice, string>>>;
}

/**
 * The prices of a plan at an instant: of the newest list by then that has the plan, else of the first one after.
 * @param lists oldest first
 * @throws RangeError when no list has it
 */
export function planPrices(lists: readonly PriceList[], plan: string, at: number): PlanPrices {
  const having = lists.filter(({ plans }) => Object.hasOwn(plans, plan));
  const prices = inForce(having, at)?.plans[plan];
  if (prices === undefined) {
    throw new RangeError("a plan that no price list has");
  }
  return prices;
}

/**
 * The price of a GB for an hour at an instant.
 * @throws RangeError without a list
 */
export function gbHourPrice(lists: readonly PriceList[], at: number): string {
  const list = inForce(lists, at);
  if (list === undefined) {
    throw new RangeError("no price list");
  }
  return list.gbHour;
}

/** The price of what is used beside plans at an instant; 0 before the first list. */
export function resourcePrice(lists: readonly PriceList[], name: ResourcePrice, at: number): string {
  return lists.findLast(({ from }) => from <= at)?.resources?.[name] ?? "0";
}

const inForce = (lists: readonly PriceList[], at: number): PriceList | undefined =>
  lists.findLast(({ from }) => from <= at) ?? lists[0];

/** The prices of a catalog, from an instant on. Without a persistent storage plan a GB costs nothing. */
export function priceListOf(catalog: Catalog, from: number): PriceList {
  const { httpPlans, databasePlans, storagePlans } = catalog;
  const plans = [...httpPlans, ...databasePlans].map(
    ({ plan, prices, refund = "none" }) => [plan, { ...prices, refund }] as const,
  );
  const storage = storagePlans.find(({ persistent }) => persistent);
  const resources = pricedResources(catalog);
  return {
    from,
    plans: Object.fromEntries(plans),
    gbHour: storage?.prices.hourly ?? "0",
    ...(Object.keys(resources).length === 0 ? {} : { resources }),
  };
}

/** What a catalog has a price for beside plans, but for what costs nothing. */
export function pricedResources({
  resourcePrices: given = {},
}: Pick<Catalog, "resourcePrices">): Partial<Record<ResourcePrice, string>> {
  const priced = resourcePrices.flatMap((name): [ResourcePrice, string][] => {
    const price = given[name];
    return price === undefined || /^[0.]*$/.test(price) ? [] : [[name, price]];
  });
  return Object.fromEntries(priced);
}
