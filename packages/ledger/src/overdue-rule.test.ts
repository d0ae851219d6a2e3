import { expect, test } from "vitest";
import { type OverdueTerms, overdueStep, type UnpaidInvoice } from "./overdue-rule.ts";

const TERMS: OverdueTerms = { noticeDays: [7, 1], blockDays: 14 };
const dueAt = new Date("2026-03-15T12:00:00Z");
const day = (days: number) => new Date(dueAt.getTime() + days * 86_400_000);

/** What is recorded of an invoice that is read on these days. */
function recorded(days: readonly number[], change: Partial<UnpaidInvoice> = {}, terms = TERMS): string[] {
  const notices = new Map(change.notices ?? []);
  const steps: string[] = [];
  for (const at of days) {
    const invoice: UnpaidInvoice = {
      organizationId: "acme",
      number: "2026-000001",
      currency: "brl",
      openCents: 100n,
      dueAt,
      reversals: 0,
      isWaived: false,
      isBlocked: false,
      ...change,
      notices,
    };
    const step = overdueStep(invoice, terms, day(at));
    if (step) {
      steps.push(
        `${at} ${step.step} ${step.notice} ${(step.blocksAt.getTime() - dueAt.getTime()) / 86_400_000}`,
      );
      notices.set(step.notice, { recordedAt: day(at), blocksAt: step.blocksAt });
    }
  }
  return steps;
}
const span = (from: number, to: number) =>
  Array.from({ length: (to - from) * 2 + 1 }, (_, n) => from + n / 2);

// Shows: docs/invoices.md#overdue: `invoice.due` comes so many days before
test("notices come once each, before an invoice is due, when it is overdue, and before it blocks", () => {
  expect(recorded(span(-14, 14))).toEqual([
    "-7 due due/7/0 14",
    "-1 due due/1/0 14",
    "0.5 overdue overdue/0 14",
    "7 overdue block/7/0 14",
    "13 overdue block/1/0 14",
    "14 block  14",
  ]);
});

test("of notices that are late the last one alone is sent", () => {
  expect(recorded([-0.5, -0.4])).toEqual(["-0.5 due due/1/0 14"]);
});

// Shows: docs/invoices.md#overdue: no organization is blocked sooner than the latest `blocks_at`
test("an invoice that is long overdue blocks a day after the notice that says so", () => {
  expect(recorded([40, 40.1, 40.9, 41])).toEqual(["40 overdue overdue/0 41", "41 block  41"]);
});

test("other days than an organization was notified of count where they are more", () => {
  const notices = new Map([["overdue/0", { recordedAt: day(0.1), blocksAt: day(14) }]]);
  expect(recorded([3], { notices }, { noticeDays: [], blockDays: 2 })).toEqual([]);
  expect(recorded([14, 20], { notices }, { noticeDays: [], blockDays: 20 })).toEqual(["20 block  20"]);
});

// Shows: docs/invoices.md#overdue: no organization is blocked sooner than the latest `blocks_at`
test("what a later notice, or one before it was due, has said holds when fewer days are set", () => {
  const overdue = { recordedAt: day(0.1), blocksAt: day(14) };
  const deferred = new Map([
    ["overdue/0", overdue],
    ["block/7/0", { recordedAt: day(13), blocksAt: day(20) }],
  ]);
  expect(recorded([14, 19.9, 20], { notices: deferred }, { ...TERMS, noticeDays: [] })).toEqual([
    "20 block  20",
  ]);
  const due = new Map([["due/7/0", { recordedAt: day(-7), blocksAt: day(14) }]]);
  expect(recorded([0.5, 2, 13.9, 14], { notices: due }, { noticeDays: [], blockDays: 1 })).toEqual([
    "0.5 overdue overdue/0 14",
    "14 block  14",
  ]);
});

test("what was said before a payment was taken back counts no more", () => {
  const notices = new Map([["overdue/0", { recordedAt: day(0.1), blocksAt: day(90) }]]);
  expect(recorded([20], { notices, reversals: 1 })).toEqual(["20 overdue overdue/1 21"]);
});

test("an invoice that an administrator has waived does not block, and a payment that is taken back is notified of again", () => {
  expect(recorded(span(0.5, 20), { isWaived: true })).toEqual(["0.5 overdue overdue/0 14"]);
  const notices = new Map([["overdue/0", { recordedAt: day(0.1), blocksAt: day(14) }]]);
  expect(recorded([20, 20.5, 21], { notices, reversals: 1 })).toEqual([
    "20 overdue overdue/1 21",
    "21 block  21",
  ]);
});

test("an organization that is blocked is not blocked again", () => {
  const notices = new Map([["overdue/0", { recordedAt: day(0.1), blocksAt: day(14) }]]);
  expect(recorded([15], { notices, isBlocked: true })).toEqual([]);
});
