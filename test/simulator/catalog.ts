/** Plans and prices of the model, and when each price applied. Money is decimal text in BRL cents. */

import type { Catalog } from "@slipway/crds";
import type { Timeline } from "./timeline.ts";

/** Plans of the model. */
export const PLANS = ["job-basic", "job-premium", "job-business"] as const;

/** Prices that a plan may get, some with fractions that no float represents. */
const PRICES = ["0.1", "0.35", "1", "1.005", "2.3333", "7", "12.75", "0.0001"] as const;

export class ModelCatalog {
  readonly #timeline: Timeline;
  /** Every price of a plan, newest last. */
  readonly #history = new Map<string, { since: number; price: string }[]>();

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
    for (const [index, plan] of PLANS.entries()) {
      this.#history.set(plan, [{ since: Number.NEGATIVE_INFINITY, price: PRICES[index] as string }]);
    }
    this.jobPlans = this.#plansNow();
  }

  /** Every plan with its price of now, as the operator reads the catalog. */
  jobPlans: Catalog["jobPlans"];

  #plansNow(): Catalog["jobPlans"] {
    return [...this.#history].map(([plan, prices]) => ({
      plan,
      pricePerMinute: prices.at(-1)?.price ?? "",
      free: false,
      resources: { requests: { cpu: "10m", memory: "16Mi" }, limits: { cpu: "100m", memory: "64Mi" } },
      features: [],
      permissions: {},
    }));
  }

  /** Sets another price. @param draw a number in [0, 1) */
  change(plan: string, draw: number): void {
    const price = PRICES[Math.floor(draw * PRICES.length)] as string;
    this.#history.get(plan)?.push({ since: this.#timeline.now, price });
    this.jobPlans = this.#plansNow();
  }

  /** Prices that applied at some moment of [from, to]. */
  pricesWithin(plan: string, from: number, to: number): string[] {
    const all = this.#history.get(plan) ?? [];
    return all
      .filter(
        ({ since }, index) => since <= to && (all[index + 1]?.since ?? Number.POSITIVE_INFINITY) >= from,
      )
      .map(({ price }) => price);
  }
}
