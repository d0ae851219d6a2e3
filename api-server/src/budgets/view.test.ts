import { billingCycle } from "@slipway/crds";
import { expect, test } from "vitest";
import { budgetView } from "./view.ts";

const at = new Date("2026-11-20T12:00:00.000Z");
const view = (spent: string, hardCap = true) =>
  budgetView(
    { amount: "100.5", notices: [50], hardCap, spent, reached: [], createdAt: at, updatedAt: at },
    billingCycle(at),
  );

test("a budget is exhausted by a hard cap whose whole amount is charged", () => {
  expect(["-200", "0", "100.499", "100.5", "100.50", "1000"].map((spent) => view(spent).exhausted)).toEqual([
    false,
    false,
    false,
    true,
    true,
    true,
  ]);
  expect(view("1000", false).exhausted).toBe(false);
  expect(view("1")).toMatchObject({
    cycle_started_at: "2026-11-01T00:00:00.000Z",
    next_reset_at: "2026-12-01T00:00:00.000Z",
  });
});
