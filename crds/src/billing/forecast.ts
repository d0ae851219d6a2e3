/** What a billing cycle will have cost at its end, if nothing changes: docs/billing.md#forecast. Pure and exact. */

import {
  type BillingCycle,
  compareDecimal,
  formatDecimal,
  parseDecimal,
  sumDecimals,
  timesDecimal,
} from "../billing.ts";

/** Kinds of charges in sums. A credit's amount is negative there. */
export const costKinds = [
  "job_run",
  "job_storage",
  "instance_hour",
  "storage_hour",
  "build_minute",
  "term",
  "credit",
] as const;
export type CostKind = (typeof costKinds)[number];

/** What all charges of a kind come to. BRL cents, exact. */
export interface CostAmount {
  readonly kind: CostKind;
  readonly amount: string;
}

/** The same of a day. */
export interface CostOfDay extends CostAmount {
  /** `YYYY-MM-DD`, in UTC. */
  readonly day: string;
}

/** Terms that end before the cycle does, and are followed by another one. */
export interface Renewal {
  /** Of the next term, in BRL cents. */
  readonly price: string;
  readonly count: number;
}

export interface CostForecast {
  /** The sum of `kinds`. */
  readonly amount: string;
  readonly kinds: CostAmount[];
}

const DAY_MS = 86_400_000;
/** How long after its end a day may still be charged: hours that it began, and the time until charges are recorded. */
const REST_MS = 2 * 3_600_000;
/** Kinds of charges that arise where plans are not metered, too. */
const UNMETERED: readonly CostKind[] = ["job_run", "job_storage"];
/** Whole days whose mean a day to come is expected to cost. Runs and builds differ from day to day; hours do not, unless something changes. */
const MEAN_OF_DAYS: Readonly<Partial<Record<CostKind, number>>> = {
  job_run: 7,
  job_storage: 1,
  instance_hour: 1,
  storage_hour: 1,
  build_minute: 7,
};
const MOST_DAYS = 7;
/** Decimals of a cent of a mean. */
const MEAN_SCALE = 9;

/** The name of a day in UTC. */
const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

/** The first day that may still be charged, and the first one that a forecast reads. */
export function forecastDays(now: Date): { open: string; from: string } {
  const open = dayOf(now.getTime() - REST_MS);
  return { open, from: dayOf(Date.parse(open) - MOST_DAYS * DAY_MS) };
}

/**
 * The forecast of a cycle.
 * @param days what was charged, from the first day that {@link forecastDays} says, or of the cycle
 * @param adjustments what of that late changes made hours of plans cost more: days to come do not
 * @param now an instant of the cycle
 * @param plansMetered if not, nothing more is charged of plans: what was charged of them counts as it is
 */
export function forecastCost(
  days: readonly CostOfDay[],
  {
    cycle,
    now,
    plansMetered,
    renewals,
    adjustments = [],
  }: {
    cycle: BillingCycle;
    now: Date;
    plansMetered: boolean;
    renewals: readonly Renewal[];
    adjustments?: readonly CostOfDay[];
  },
): CostForecast {
  const { open } = forecastDays(now);
  const begin = cycle.startedAt.getTime();
  const all = Math.round((cycle.nextResetAt.getTime() - begin) / DAY_MS);
  const names = Array.from({ length: all }, (_, index) => dayOf(begin + index * DAY_MS));
  const next = (plansMetered ? renewals : []).map(({ price, count }) =>
    formatDecimal(timesDecimal(parseDecimal(price), BigInt(count))),
  );
  const kinds = costKinds.flatMap((kind): CostAmount[] => {
    const own = days.filter((day) => day.kind === kind);
    const adjusted = new Map(
      adjustments.filter((day) => day.kind === kind).map((one) => [one.day, one.amount]),
    );
    const charged = new Map(own.map(({ day, amount }) => [day, minus(amount, adjusted.get(day))]));
    const count = plansMetered || UNMETERED.includes(kind) ? MEAN_OF_DAYS[kind] : undefined;
    const mean = count === undefined ? undefined : meanOf(charged, { open, count });
    const amounts = names.map((day) => {
      const amount = charged.get(day) ?? "0";
      const expected = mean === undefined || day < open ? amount : dearer(amount, mean);
      return sumDecimals([expected, adjusted.get(day) ?? "0"]);
    });
    const amount = sumDecimals(kind === "term" ? [...amounts, ...next] : amounts);
    return amount === "0" ? [] : [{ kind, amount }];
  });
  return { amount: sumDecimals(kinds.map(({ amount }) => amount)), kinds };
}

/** The mean of the whole days before a day, rounded down to a thousand-millionth of a cent. */
function meanOf(charged: ReadonlyMap<string, string>, { open, count }: { open: string; count: number }) {
  const before = Array.from({ length: count }, (_, index) => dayOf(Date.parse(open) - (index + 1) * DAY_MS));
  const { units, scale } = parseDecimal(sumDecimals(before.map((day) => charged.get(day) ?? "0")));
  const scaled = units * 10n ** BigInt(MEAN_SCALE);
  return formatDecimal({ units: scaled / (BigInt(count) * 10n ** BigInt(scale)), scale: MEAN_SCALE });
}

const dearer = (a: string, b: string): string =>
  compareDecimal(parseDecimal(a), parseDecimal(b)) < 0 ? b : a;

function minus(amount: string, other: string | undefined): string {
  const { units, scale } = parseDecimal(other ?? "0");
  return sumDecimals([amount, formatDecimal({ units: -units, scale })]);
}
