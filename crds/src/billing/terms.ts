/** What one instance is charged by: terms that are paid ahead, and times that are paid by the hour. docs/billing.md#terms. */

import {
  type Contract,
  type ContractState,
  hasInstance,
  isSameContract,
  type PlanPaymentMode,
  type RunningTerm,
  type Stretch,
} from "./history.ts";
import { type PlanPrices, type PriceList, planPrices } from "./prices.ts";

/** Months of a term, and so its rank: a longer one replaces a shorter one. */
const MONTHS: Readonly<Record<PlanPaymentMode, number>> = { hourly: 0, monthly: 1, yearly: 12 };

/** A term of an instance. */
export interface Term extends RunningTerm {
  readonly prices: PlanPrices;
}

/** The unused part of a term, from the instant at which it was ended. */
export interface UnusedTerm {
  readonly term: Term;
  readonly at: number;
}

/** A time in which an instance is paid by the hour. */
export interface HourlyTime {
  readonly plan: string;
  readonly from: number;
  readonly to: number;
}

export interface InstanceContracts {
  readonly terms: readonly Term[];
  readonly unused: readonly UnusedTerm[];
  readonly hourly: readonly HourlyTime[];
  /** What the instance is paid by at the end of the last stretch. */
  readonly end: ContractState;
}

/**
 * Follows one instance through its project's stretches.
 * @param deletedAt when the project was deleted, if it was by the end of the last stretch
 * @param start what it was paid by when the first stretch began; terms that began before are not among those that are returned
 */
export function contractsOf(
  stretches: readonly Stretch[],
  instance: number,
  lists: readonly PriceList[],
  { deletedAt, start = {} }: { deletedAt?: number | undefined; start?: ContractState | undefined } = {},
): InstanceContracts {
  const terms: Term[] = [];
  const unused: UnusedTerm[] = [];
  const hourly: HourlyTime[] = [];
  let term: Term | undefined = start.term && {
    ...start.term,
    prices: planPrices(lists, start.term.plan, start.term.from),
  };
  /** What the project had when a term ended and was not renewed: it is paid by the hour for as long as that stays so. */
  let lapsed: Contract | undefined = start.lapsed;
  const begin = (plan: string, paymentMode: PlanPaymentMode, from: number, before?: Term) => {
    const [first, number] = before === undefined ? [from, 1] : [before.first, before.number + 1];
    const to = addMonths(first, number * MONTHS[paymentMode]);
    term = { plan, paymentMode, from, to, prices: planPrices(lists, plan, from), first, number };
    terms.push(term);
  };
  for (const stretch of stretches) {
    const { plan, paymentMode, renews } = stretch;
    const exists = hasInstance(stretch, instance);
    if (lapsed !== undefined && !isSameContract(lapsed, stretch)) {
      lapsed = undefined;
    }
    let at = stretch.from;
    while (at < stretch.to) {
      const running: Term | undefined = term;
      if (running !== undefined && running.to === at) {
        term = undefined;
        lapsed = renews ? undefined : stretch;
        const isSame = running.plan === plan && running.paymentMode === paymentMode;
        if (renews && exists && isSame) {
          begin(plan, paymentMode, at, running);
        }
      } else if (running !== undefined && exists && isReplaced(running, stretch)) {
        unused.push({ term: running, at });
        begin(plan, longer(running.paymentMode, paymentMode), at);
      }
      if (term === undefined && exists && lapsed === undefined && paymentMode !== "hourly") {
        begin(plan, paymentMode, at);
      }
      const to = Math.min(stretch.to, term?.to ?? stretch.to);
      if (term === undefined && exists) {
        hourly.push({ plan, from: at, to });
      }
      at = to;
    }
  }
  if (
    deletedAt !== undefined &&
    term !== undefined &&
    term.to > deletedAt &&
    term.prices.refund === "prorated"
  ) {
    unused.push({ term, at: deletedAt });
  }
  return { terms, unused, hourly, end: { term: term && running(term), lapsed: lapsed && contract(lapsed) } };
}

const running = ({ prices: _, ...term }: Term): RunningTerm => term;

const contract = ({ plan, paymentMode, renews }: Contract): Contract => ({ plan, paymentMode, renews });

const isReplaced = (term: Term, { plan, paymentMode }: Stretch): boolean =>
  term.plan !== plan || MONTHS[paymentMode] > MONTHS[term.paymentMode];

const longer = (a: PlanPaymentMode, b: PlanPaymentMode): PlanPaymentMode => (MONTHS[a] < MONTHS[b] ? b : a);

/** The same time of day so many months later, in UTC; where the month has no such day, on its last one. */
export function addMonths(at: number, months: number): number {
  const date = new Date(at);
  const day = date.getUTCDate();
  date.setUTCDate(1);
  date.setUTCMonth(date.getUTCMonth() + months);
  const lastDay = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
  date.setUTCDate(Math.min(day, lastDay));
  return date.getTime();
}
