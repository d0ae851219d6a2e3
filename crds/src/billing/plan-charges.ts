/** What a project's plan and storage cost: a pure function of its recorded history and of prices by date. docs/billing.md has the rules. */

import { formatDecimal, parseDecimal, timesDecimal } from "../billing.ts";
import { type BillableHistory, instancesOf, originOf, stretchesOf } from "./history.ts";
import { gbOfHours, hoursOfInstance, ProjectHours } from "./hours.ts";
import { gbHourPrice, type PriceList } from "./prices.ts";
import { contractsOf, type UnusedTerm } from "./terms.ts";

export const planChargeKinds = ["instance_hour", "storage_hour", "term", "credit"] as const;
export type PlanChargeKind = (typeof planChargeKinds)[number];

/** One fact and what it costs. Instants are milliseconds, money is BRL cents as a plain decimal. */
export interface PlanCharge {
  /** Follows from the fact: computed again it is the same. */
  readonly key: string;
  /** A `credit` is to be subtracted. */
  readonly kind: PlanChargeKind;
  /** It belongs to the cycle of this instant. */
  readonly from: number;
  readonly to: number;
  /** From when on no change can alter it. */
  readonly finalAt: number;
  readonly plan?: string;
  /** Number of the instance, from 0 up. */
  readonly instance?: number;
  readonly gb?: number;
  /** Of the hour, of a GB for an hour, or of the whole term. */
  readonly price: string;
  readonly amount: string;
}

/** A time of which charges are wanted, in milliseconds. */
export interface ChargeWindow {
  /** Those that were final before are left out; none are unless given. */
  readonly since?: number | undefined;
  /** Hours that end before are left out, and nothing else is for this. As `since` unless given. */
  readonly hoursSince?: number | undefined;
  /** What the history has from then on is left out, so that a charge with `finalAt` from then on may still change. */
  readonly until: number;
}

/** Decimals of a cent of a credit. */
const CREDIT_SCALE = 9;

/**
 * The charges of a project, by their beginning. Of windows that follow each other, each has other final charges.
 * @param lists prices by date, oldest first
 * @throws RangeError when the history is not in order, or no list has a plan
 */
export function planCharges(
  history: BillableHistory,
  lists: readonly PriceList[],
  { since = Number.NEGATIVE_INFINITY, hoursSince = since, until }: ChargeWindow,
): PlanCharge[] {
  const stretches = stretchesOf(history, until);
  const { checkpoint } = history;
  const origin = originOf(history) ?? 0;
  const deletedAt =
    history.deletedAt !== undefined && history.deletedAt < until ? history.deletedAt : undefined;
  const hours = new ProjectHours(origin, hoursSince);
  const charges: PlanCharge[] = [];
  const add = (kind: PlanChargeKind, fact: string, charge: Omit<PlanCharge, "key" | "kind">) => {
    if (charge.finalAt >= since && !/^[0.]*$/.test(charge.amount)) {
      charges.push({ key: `${history.projectUid}/${kind}/${fact}`, kind, ...charge });
    }
  };
  /** Of an hour: nothing follows a deletion. */
  const span = (index: number) => {
    const [from, to] = [hours.start(index), hours.start(index + 1)];
    return { from, to, finalAt: Math.min(to, deletedAt ?? to) };
  };
  for (const [index, gb] of gbOfHours(hours, stretches)) {
    const price = gbHourPrice(lists, hours.start(index));
    const amount = formatDecimal(timesDecimal(parseDecimal(price), BigInt(gb)));
    add("storage_hour", `${index}`, { ...span(index), gb, price, amount });
  }
  for (let instance = 0; instance < instancesOf(history, stretches); instance += 1) {
    const start = checkpoint?.contracts[instance];
    const { terms, unused, hourly } = contractsOf(stretches, instance, lists, { deletedAt, start });
    for (const [index, { plan, price }] of hoursOfInstance(hours, hourly, lists)) {
      add("instance_hour", `${index}/${instance}`, { ...span(index), plan, instance, price, amount: price });
    }
    for (const { plan, from, to, prices, paymentMode } of terms) {
      const price = prices[paymentMode];
      add("term", `${from}/${instance}`, { from, to, finalAt: from, plan, instance, price, amount: price });
    }
    for (const { term, at: from } of unused) {
      const { plan, to, prices, paymentMode } = term;
      const amount = creditOf({ term, at: from });
      const price = prices[paymentMode];
      add("credit", `${term.from}/${instance}`, { from, to, finalAt: from, plan, instance, price, amount });
    }
  }
  return charges.sort(inOrder);
}

/** The part of a term's price for the whole seconds that are left, rounded down. */
function creditOf({ term: { from, to, prices, paymentMode }, at }: UnusedTerm): string {
  const { units, scale } = parseDecimal(prices[paymentMode]);
  const left = BigInt(Math.floor((to - at) / 1_000));
  const all = BigInt((to - from) / 1_000);
  const scaled = units * left * 10n ** BigInt(CREDIT_SCALE);
  return formatDecimal({ units: scaled / (all * 10n ** BigInt(scale)), scale: CREDIT_SCALE });
}

const KIND_ORDER: Readonly<Record<PlanChargeKind, number>> = {
  instance_hour: 0,
  storage_hour: 1,
  credit: 2,
  term: 3,
};

const inOrder = (a: PlanCharge, b: PlanCharge): number =>
  a.from - b.from || KIND_ORDER[a.kind] - KIND_ORDER[b.kind] || (a.instance ?? 0) - (b.instance ?? 0);
