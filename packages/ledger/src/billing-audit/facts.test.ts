import type { PlanCharge } from "@slipway/crds";
import { expect, test } from "vitest";
import { instanceHour } from "../../../../test/kit/ledger/charged-rows.ts";
import { type AuditedCharge, compareFacts, isSameCharge } from "./facts.ts";

const HOUR = 3_600_000;
const BEGIN = Date.UTC(2026, 0, 31, 22);

const hour = (index: number, facts?: Partial<PlanCharge>): PlanCharge => instanceHour(BEGIN, index, facts);
const row = (charge: PlanCharge, facts: Partial<AuditedCharge> = {}): AuditedCharge => ({
  ...charge,
  cycle: charge.from < Date.UTC(2026, 1) ? "2026-01-01" : "2026-02-01",
  ...facts,
});
const byKey = (charges: readonly PlanCharge[]) => new Map(charges.map((charge) => [charge.key, charge]));
const compare = (
  wanted: readonly PlanCharge[],
  recorded: readonly AuditedCharge[],
  {
    earlier = [],
    ...facts
  }: { earlier?: readonly PlanCharge[]; isPending?: boolean; isPartial?: boolean } = {},
) =>
  compareFacts({
    projectUid: "u1",
    wanted: byKey(wanted),
    earlier: Map.groupBy(earlier, ({ key }) => key),
    recorded,
    passes: 1,
    isPending: false,
    isPartial: false,
    ...facts,
  }).map(({ code, key }) => [code, key]);

const hours = [hour(0), hour(1), hour(2)];
const rows = hours.map((charge) => row(charge));
const [first, second, third] = rows as [AuditedCharge, AuditedCharge, AuditedCharge];

test("what is recorded as it is computed is right", () => {
  expect(compare(hours, rows)).toEqual([]);
  expect(compare(hours, [row(hour(0, { amount: "3.00", price: "3.0" })), second, third])).toEqual([]);
});

test("a charge that is missing, and one that follows from nothing, are found", () => {
  expect(compare(hours, [first, third])).toEqual([["CHARGE_MISSING", second.key]]);
  expect(compare(hours.slice(0, 2), rows)).toEqual([["CHARGE_UNEXPECTED", third.key]]);
});

test.each<[string, Partial<AuditedCharge>]>([
  ["kind", { kind: "term" }],
  ["beginning", { from: BEGIN + 0.001 }],
  ["beginning that is no instant", { from: Number.NEGATIVE_INFINITY }],
  ["end", { to: BEGIN + 2 * HOUR }],
  ["instant of being final", { finalAt: BEGIN }],
  ["plan", { plan: "premium" }],
  ["instance", { instance: 1 }],
  ["storage", { gb: 1 }],
  ["price", { price: "4" }],
  ["amount", { amount: "4" }],
  ["cycle", { cycle: "2026-02-01" }],
  ["time of an adjustment", { lateAt: BEGIN }],
])("a charge with another %s is found", (_, facts) => {
  expect(compare(hours, [row(hour(0), facts), second, third])).toEqual([["CHARGE_DIFFERS", first.key]]);
});

const late = (facts: Partial<AuditedCharge> = {}): AuditedCharge => ({
  ...hour(0),
  key: "u1/instance_hour/late/0/instance_hour/0/0",
  amount: "5",
  adjusts: first.key,
  cycle: "2026-02-01",
  lateAt: Date.UTC(2026, 1, 3),
  ...facts,
});
const dearer = hour(0, { price: "8", amount: "8", plan: "premium" });

test("a charge from before a late change is right as it was then, with what adjusts it", () => {
  expect(compare([dearer], [first, late()], { earlier: [hour(0)] })).toEqual([]);
  expect(compare([dearer], [first], { earlier: [hour(0)] })).toEqual([["CHARGE_NET_DIFFERS", first.key]]);
  expect(compare([dearer], [first], { earlier: [hour(0)], isPending: true })).toEqual([]);
  expect(compare([dearer], [first, late({ amount: "6" })], { earlier: [hour(0)] })).toEqual([
    ["CHARGE_NET_DIFFERS", first.key],
  ]);
});

test("of a history with too many late changes sums of facts are compared", () => {
  const other = row(hour(0, { amount: "5", price: "5" }));
  expect(compare([dearer], [other, late({ amount: "3" })], { isPartial: true })).toEqual([]);
  expect(compare([dearer], [other], { isPartial: true })).toEqual([["CHARGE_NET_DIFFERS", first.key]]);
});

test.each<[string, Partial<AuditedCharge>, string]>([
  [
    "of another comparison than there were",
    { key: "u1/instance_hour/late/1/instance_hour/0/0" },
    "CHARGE_DIFFERS",
  ],
  [
    "of another kind",
    { kind: "storage_hour", key: "u1/storage_hour/late/0/instance_hour/0/0" },
    "CHARGE_DIFFERS",
  ],
  ["in the cycle of its fact", { cycle: "2026-01-01" }, "CHARGE_DIFFERS"],
  ["without its time", { lateAt: undefined }, "CHARGE_DIFFERS"],
  ["with other times than its fact", { from: BEGIN + HOUR }, "CHARGE_DIFFERS"],
  ["of a fact that there is not", { adjusts: "u1/instance_hour/9/0" }, "CHARGE_UNEXPECTED"],
])("an adjustment %s is found", (_, facts, code) => {
  const found = compare([dearer], [first, late(facts)], { earlier: [hour(0)] });
  expect(found.map(([one]) => one)).toContain(code);
});

test("charges are the same where their numbers are, however they are written", () => {
  expect(isSameCharge(hour(0), hour(0, { amount: "3.0" }))).toBe(true);
  expect(isSameCharge(hour(0), hour(0, { amount: "3.1" }))).toBe(false);
});
