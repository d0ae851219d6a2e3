/** Hours of a project, counted from the beginning of its history: docs/billing.md#hours. */

import { compareDecimal, parseDecimal } from "../billing.ts";
import type { Stretch } from "./history.ts";
import { type PriceList, planPrices } from "./prices.ts";
import type { HourlyTime } from "./terms.ts";

export const HOUR_MS = 3_600_000;

/** Hours of a project from its first instant on, of which those are wanted that have not ended before an instant. */
export class ProjectHours {
  readonly #origin: number;
  readonly #first: number;

  /**
   * @param origin the beginning of hour 0, in milliseconds
   * @param since in milliseconds; hours that end before are left out
   */
  constructor(origin: number, since: number) {
    this.#origin = origin;
    this.#first = Math.max(0, Math.ceil((since - origin) / HOUR_MS) - 1);
  }

  start(index: number): number {
    return this.#origin + index * HOUR_MS;
  }

  /** The wanted hours that share an instant with a time that is not empty. */
  *of({ from, to }: { from: number; to: number }): Generator<number> {
    const last = Math.ceil((to - this.#origin) / HOUR_MS) - 1;
    for (
      let index = Math.max(this.#first, Math.floor((from - this.#origin) / HOUR_MS));
      index <= last;
      index += 1
    ) {
      yield index;
    }
  }
}

/** What an instance is charged for an hour. */
export interface HourOfInstance {
  readonly plan: string;
  readonly price: string;
}

/** The dearest plan of each begun hour; of equally dear ones the first. By index. */
export function hoursOfInstance(
  hours: ProjectHours,
  times: readonly HourlyTime[],
  lists: readonly PriceList[],
): Map<number, HourOfInstance> {
  const charged = new Map<number, HourOfInstance>();
  for (const time of times) {
    for (const index of hours.of(time)) {
      const price = planPrices(lists, time.plan, hours.start(index)).hourly;
      const other = charged.get(index);
      if (other === undefined || compareDecimal(parseDecimal(price), parseDecimal(other.price)) > 0) {
        charged.set(index, { plan: time.plan, price });
      }
    }
  }
  return charged;
}

/** The most GB of each begun hour, where there were any. By index. */
export function gbOfHours(hours: ProjectHours, stretches: readonly Stretch[]): Map<number, number> {
  const most = new Map<number, number>();
  for (const stretch of stretches.filter(({ billedGb }) => billedGb > 0)) {
    for (const index of hours.of(stretch)) {
      most.set(index, Math.max(stretch.billedGb, most.get(index) ?? 0));
    }
  }
  return most;
}
