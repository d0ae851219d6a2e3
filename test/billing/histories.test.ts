import {
  type BillableChange,
  type BillableHistory,
  checkpointOf,
  type PlanCharge,
  type PriceList,
  planAdjustments,
  planCharges,
  type RecordedPlanCharge,
} from "@slipway/crds";
import fc from "fast-check";
import { expect, test } from "vitest";
import { isLong } from "../kit/long.ts";
import { cents, recompute } from "./recomputation.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const RUNS = isLong ? 100_000 : 1_200;
const TIMEOUT_MS = isLong ? 1_800_000 : 90_000;

const price = fc.constantFrom(
  "0",
  "3",
  "8",
  "0.1",
  "0.000000000000000001",
  "333333333.333333333333333333",
  "4",
);
const planPrices = fc.record({
  hourly: price,
  monthly: price,
  yearly: price,
  refund: fc.constantFrom("none" as const, "prorated" as const),
});
/** Around the 29th of February, and the ends of months. */
const beginning = fc
  .tuple(
    fc.constantFrom("2023-12-31", "2024-02-29", "2025-02-28", "2026-01-30", "2026-03-31", "2027-10-05"),
    fc.integer({ min: 0, max: DAY - 1 }),
  )
  .map(([day, ms]) => Date.parse(day) + ms);

const state = fc.record({
  plan: fc.constantFrom("a", "b", "c"),
  paymentMode: fc.constantFrom("hourly" as const, "monthly" as const, "yearly" as const),
  renews: fc.oneof({ weight: 3, arbitrary: fc.constant(true) }, fc.constant(false)),
  instances: fc.integer({ min: 0, max: 3 }),
  paused: fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, fc.constant(true)),
  billedGb: fc.constantFrom(0, 1, 10),
});

/** One history, with prices that change within it: `gap` is the time between two changes. */
function histories(gap: fc.Arbitrary<number>) {
  // Most changes alter one thing.
  const alteration = fc.oneof(
    { weight: 1, arbitrary: state },
    ...(["plan", "paymentMode", "renews", "instances", "paused", "billedGb"] as const).map((field) => ({
      weight: 2,
      arbitrary: state.map((each) => ({ [field]: each[field] })),
    })),
  );
  return fc
    .record({
      beginning,
      first: state,
      steps: fc.array(fc.tuple(gap, alteration), { maxLength: 9 }),
      isDeleted: fc.boolean(),
      last: gap,
      lists: fc.array(fc.record({ a: planPrices, b: planPrices, gbHour: price, gap }), {
        minLength: 1,
        maxLength: 3,
      }),
      onlyLast: planPrices,
    })
    .map(({ beginning: from, first, steps, isDeleted, last, lists, onlyLast }) => {
      const changes: BillableChange[] = [{ at: from, ...first }];
      for (const [ms, altered] of steps) {
        const before = changes.at(-1) as BillableChange;
        changes.push({ ...before, ...altered, at: before.at + ms });
      }
      const end = (changes.at(-1)?.at ?? from) + last;
      let at = from - HOUR;
      const prices: PriceList[] = lists.map(({ a, b, gbHour, gap: ms }, index) => {
        at += index === 0 ? 0 : ms;
        return { from: at, gbHour, plans: { a, b, ...(index === lists.length - 1 ? { c: onlyLast } : {}) } };
      });
      const history: BillableHistory = {
        projectUid: "uid",
        changes,
        ...(isDeleted ? { deletedAt: end } : {}),
      };
      return { history, prices, end };
    });
}

const amounts = (charges: readonly PlanCharge[]): Map<string, bigint> =>
  new Map(charges.map(({ key, amount }) => [key.slice("uid/".length), cents(amount)]));

/** Some hours, within which all charges are compared. */
const hours = histories(
  fc.oneof(
    fc.constantFrom(0, 1, HOUR, HOUR - 1, 2 * HOUR),
    fc.integer({ min: 1, max: HOUR }),
    fc.integer({ min: 1, max: 6 * HOUR }),
  ),
);

test(
  "histories of hours are charged as the page says, to the fraction, and each charge once",
  () => {
    fc.assert(
      fc.property(hours, fc.double({ min: 0, max: 1.2, noNaN: true }), ({ history, prices, end }, part) => {
        const from = history.changes[0]?.at ?? 0;
        const until = from + Math.floor((end - from) * part) + 1;
        const found = planCharges(history, prices, { until });
        expect(new Set(found.map(({ key }) => key)).size).toBe(found.length);
        expect(amounts(found)).toEqual(recompute(history, prices, { knownUntil: until, hoursFrom: from }));
      }),
      { numRuns: RUNS },
    );
  },
  TIMEOUT_MS,
);

/** Some years: what is paid ahead, and the last hours. */
const years = histories(
  fc.oneof(
    fc.integer({ min: 0, max: 400 * DAY }),
    fc.integer({ min: 0, max: 40 * DAY }),
    fc.integer({ min: 0, max: 62 }).map((days) => days * DAY),
    fc.constantFrom(0, 1, HOUR),
  ),
);

const isOfHour = (key: string): boolean => key.includes("_hour/");

test(
  "histories of years are charged as the page says, to the fraction, also in windows of a millisecond",
  () => {
    fc.assert(
      fc.property(years, fc.double({ min: 0, max: 1.2, noNaN: true }), ({ history, prices, end }, part) => {
        const { changes, deletedAt = Number.POSITIVE_INFINITY } = history;
        const from = changes[0]?.at ?? 0;
        const until = from + Math.floor((end - from) * part) + 1;
        const again = recompute(history, prices, { knownUntil: until, hoursFrom: until - HOUR });

        // Terms and credits, each in the window of its own instant.
        const ahead = [...again].filter(([key]) => !isOfHour(key));
        const begun = ahead.map(([key]) => Number(key.split("/")[1]));
        const instants = [...new Set([...begun, ...changes.map(({ at }) => at), deletedAt])];
        const found = instants
          .filter((at) => at < until)
          .flatMap((at) => planCharges(history, prices, { since: at, until: at + 1 }))
          .filter(({ key, finalAt, from: at }) => !isOfHour(key) && finalAt === at);
        expect(amounts(found)).toEqual(new Map(ahead));

        // Hours that were not final an hour before.
        const late = planCharges(history, prices, { since: until - HOUR, until });
        const lastHours = [...again].filter(([key]) => {
          const over = from + (Number(key.split("/")[1]) + 1) * HOUR;
          return isOfHour(key) && Math.min(over, deletedAt < until ? deletedAt : over) >= until - HOUR;
        });
        expect(amounts(late.filter(({ key }) => isOfHour(key)))).toEqual(new Map(lastHours));
      }),
      { numRuns: RUNS },
    );
  },
  TIMEOUT_MS,
);

test(
  "windows that follow each other have each final charge once",
  () => {
    fc.assert(
      fc.property(hours, fc.array(fc.integer({ min: 0, max: 30 * HOUR }), { maxLength: 4 }), (made, cuts) => {
        const { history, prices } = made;
        const from = history.changes[0]?.at ?? 0;
        const ends = [...new Set([...cuts.map((ms) => from + ms), from + 31 * HOUR])].sort((a, b) => a - b);
        const final = (since: number, until: number) =>
          planCharges(history, prices, { since, until }).filter(({ finalAt }) => finalAt < until);
        const parts = ends.flatMap((until, index) => final(ends[index - 1] ?? from, until));
        const whole = planCharges(history, prices, { until: from + 31 * HOUR });
        expect(amounts(parts)).toEqual(amounts(whole.filter(({ finalAt }) => finalAt < from + 31 * HOUR)));
        expect(new Set(parts.map(({ key }) => key)).size).toBe(parts.length);
      }),
      { numRuns: RUNS },
    );
  },
  TIMEOUT_MS,
);

// Shows: docs/billing.md#metering: equal to the fraction
test(
  "windows that read what came since a checkpoint have the charges of windows that read everything",
  () => {
    const made = fc.oneof(hours, years);
    const cutting = fc.array(fc.double({ min: 0, max: 1.1, noNaN: true }), { maxLength: 6 });
    fc.assert(
      fc.property(made, cutting, ({ history, prices, end }, cuts) => {
        const from = history.changes[0]?.at ?? 0;
        const ends = [...cuts, 1.2].map((part) => from + Math.floor((end - from) * part) + 1);
        let since = from;
        let known: BillableHistory = { ...history, changes: [] };
        for (const until of ends.sort((a, b) => a - b)) {
          // As it is in the ledger: a checkpoint in place of what was before it.
          const checkpoint = checkpointOf({ ...known, ...rest(history, known) }, prices, since);
          known = JSON.parse(JSON.stringify({ ...history, changes: [], checkpoint })) as BillableHistory;
          expect(checkpoint).toEqual(checkpointOf(history, prices, since));
          const window = { since, hoursSince: Math.max(since, until - 30 * HOUR), until };
          expect(planCharges({ ...known, ...rest(history, known) }, prices, window)).toEqual(
            planCharges(history, prices, window),
          );
          since = until;
        }
      }),
      { numRuns: RUNS },
    );
  },
  TIMEOUT_MS,
);

/** The changes that a checkpoint does not stand for. */
const rest = ({ changes }: BillableHistory, { checkpoint }: BillableHistory) => ({
  changes: changes.filter(({ at }) => at >= (checkpoint?.at ?? 0)),
});

/** What is recorded of each fact in all, in 10^-18 cents; facts of which nothing is left are not among them. */
function netOf(recorded: readonly RecordedPlanCharge[]): Map<string, bigint> {
  const nets = new Map<string, bigint>();
  for (const { key, adjusts = key, kind, amount } of recorded) {
    nets.set(adjusts, (nets.get(adjusts) ?? 0n) + (kind === "credit" ? -cents(amount) : cents(amount)));
  }
  return new Map([...nets].filter(([, net]) => net !== 0n));
}

// Shows: docs/billing.md#late-changes: The sum of a fact's own row and of those that adjust it
test(
  "what is recorded, and then adjusted to changes that came late, is what the whole history costs",
  () => {
    const isLate = fc.array(fc.boolean(), { minLength: 11, maxLength: 11 });
    const made = fc.oneof(hours, years);
    const most = fc.integer({ min: 1, max: 40 * HOUR });
    fc.assert(
      fc.property(made, isLate, fc.boolean(), most, ({ history, prices }, late, isEndLate, time) => {
        const { changes, deletedAt, projectUid } = history;
        const until = (changes[0]?.at ?? 0) + time;
        const isThere = changes.map((_, index) => index === 0 || !late[index]);
        let known: BillableHistory = {
          projectUid,
          changes: changes.filter((_, index) => isThere[index]),
          ...(isEndLate || deletedAt === undefined ? {} : { deletedAt }),
        };
        const final = (of: BillableHistory, hoursSince?: number) =>
          planCharges(of, prices, { hoursSince, until }).filter(({ finalAt }) => finalAt < until);
        const recorded: RecordedPlanCharge[] = final(known);
        const come = (at: number, pass: number) => {
          const own = recorded.filter(({ key, adjusts = key, to }) => !isOfHour(adjusts) || to >= at);
          recorded.push(...planAdjustments(final(known, at), own, pass));
        };
        for (const [index, { at }] of changes.entries()) {
          if (!isThere[index]) {
            isThere[index] = true;
            known = { ...known, changes: changes.filter((_, place) => isThere[place]) };
            come(at, index + 1);
          }
        }
        if (isEndLate && deletedAt !== undefined) {
          known = history;
          come(deletedAt, changes.length + 1);
        }
        expect(netOf(recorded)).toEqual(netOf(final(history)));
        expect(new Set(recorded.map(({ key }) => key)).size).toBe(recorded.length);
      }),
      { numRuns: RUNS },
    );
  },
  TIMEOUT_MS,
);
