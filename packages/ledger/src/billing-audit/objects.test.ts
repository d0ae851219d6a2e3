import type { BillableState } from "@slipway/crds";
import { expect, test } from "vitest";
import type { NumberedChange } from "../billable-changes.ts";
import { compareObject } from "./objects.ts";

const HOUR = 3_600_000;
const NOW = new Date("2026-03-03T00:00:00Z");
const STATE: BillableState = {
  plan: "basic",
  paymentMode: "hourly",
  renews: true,
  instances: 1,
  paused: false,
  billedGb: 0,
};
const change = (number: number, hoursAgo: number, state: Partial<BillableState> = {}): NumberedChange => ({
  number,
  at: new Date(NOW.getTime() - hoursAgo * HOUR),
  state: { ...STATE, ...state },
});
/** What the ledger has was recorded as it came, unless given. */
const compare = (
  changes: readonly NumberedChange[],
  recorded: readonly (NumberedChange & { recordedAt?: Date })[],
) =>
  compareObject(
    { projectId: "shop", projectUid: "u1", changes },
    recorded.map((one) => ({ recordedAt: one.at, ...one })),
    NOW,
  ).map(({ code, key }) => [code, key]);
const differs = [["OBJECT_DIFFERS", "u1/2"]];

test("a history that is the same, or on its way, is right", () => {
  expect(compare([change(1, 9), change(2, 5)], [change(1, 9), change(2, 5)])).toEqual([]);
  expect(compare([change(1, 9), change(2, 0.5)], [change(1, 9)])).toEqual([]);
  expect(compare([change(1, 9)], [change(1, 9), change(2, 0.5)])).toEqual([]);
  // It came late.
  expect(compare([change(1, 9)], [change(1, 9), { ...change(2, 5), recordedAt: NOW }])).toEqual([]);
});

// Shows: docs/billing-audit.md#objects-of-the-cluster: the ledger has another change of this number than the status
test("a change that is another one, or that one of them lacks for an hour, is found", () => {
  expect(compare([change(1, 9), change(2, 5)], [change(1, 9), change(2, 5, { instances: 2 })])).toEqual(
    differs,
  );
  expect(compare([change(1, 9), change(2, 5)], [change(1, 9), change(2, 6)])).toEqual(differs);
  expect(
    compare([change(1, 9), change(2, 5)], [change(1, 9), { ...change(2, 5), state: undefined }]),
  ).toEqual(differs);
  expect(compare([change(1, 9), change(2, 5)], [change(1, 9)])).toEqual(differs);
  expect(compare([change(1, 9)], [change(1, 9), change(2, 5)])).toEqual(differs);
});
