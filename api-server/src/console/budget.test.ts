import { putBudgetBody } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import {
  budgetBody,
  budgetForm,
  capWarning,
  meantAmount,
  pausesNow,
  saveBudget,
  spending,
} from "../../console/lib/budget.ts";
import type { Budget } from "../../console/lib/shapes.ts";

const budget: Budget = {
  amount: "15000",
  notices: [50, 80],
  hard_cap: true,
  spent: "8120.5",
  exhausted: false,
  reached: [],
  cycle_started_at: "2026-11-01T00:00:00.000Z",
  next_reset_at: "2026-12-01T00:00:00.000Z",
};
const made = budgetForm(budget);

describe("the form of a budget", () => {
  it("is in reais, and becomes what the API takes, in cents", () => {
    expect(made).toEqual({ amount: "150.00", notices: "50, 80", isCapped: true });
    const first = budgetForm(undefined);
    const set = putBudgetBody.parse(budgetBody(first, { ...first, amount: " 99.995 " }, first));
    // The first one has the notices that the API has without any.
    expect(set).toEqual(putBudgetBody.parse({ amount: "9999.5" }));
    const none = budgetBody(made, { ...made, notices: " " }, made);
    expect(putBudgetBody.parse(none)).toEqual({ amount: "15000", notices: [], hard_cap: true });
  });

  it.each([
    { amount: "1,500" },
    { amount: "-1" },
    { amount: "0" },
    { amount: "1000000000" },
    { notices: "50, x" },
    { notices: "50 50" },
    { notices: "0" },
  ])("with %j is refused by the API", (change) => {
    const body = budgetBody(made, { ...made, ...change }, made);
    expect(putBudgetBody.safeParse(JSON.parse(JSON.stringify(body))).success).toBe(false);
  });

  it("changes what differs from the form as it was made, and leaves what others have changed", () => {
    expect(budgetBody(made, { ...made, amount: "150" }, made)).toBeUndefined();
    const current = { ...made, amount: "300.00", isCapped: false };
    expect(budgetBody(made, { ...made, notices: "90" }, current)).toEqual({
      amount: "30000",
      notices: [90],
      hard_cap: false,
    });
    expect(budgetBody(made, { ...made, amount: "300" }, current)).toBeUndefined();
  });
});

/** What becomes of a form, where the budget is another one when it is saved. */
async function savedOver(of: Budget | undefined, current: Budget | undefined, change: object) {
  const sent: object[] = [];
  const send = async (body: object) => void sent.push(body);
  const saved = await saveBudget(of, { ...budgetForm(of), ...change }, { load: async () => current, send });
  return { ...saved, sent };
}
const cannot = (what: string) => ({ said: `${what} meanwhile: nothing is saved.`, isOver: true, sent: [] });

it("what was set or removed since the form was made is not overwritten", async () => {
  expect(await savedOver(undefined, budget, { amount: "151" })).toEqual(cannot("A budget was set"));
  expect(await savedOver(budget, undefined, { amount: "151" })).toEqual(cannot("The budget was removed"));
  expect(await savedOver(budget, budget, {})).toEqual({
    said: "Nothing is different.",
    isOver: false,
    sent: [],
  });
  expect(await savedOver(budget, budget, { amount: "151" })).toEqual({
    said: "Saved.",
    isOver: true,
    sent: [{ amount: "15100", notices: [50, 80], hard_cap: true }],
  });
});

it("no cap is set over an amount that the form did not have where that pauses everything", async () => {
  const uncapped = { ...budget, hard_cap: false };
  const smaller = { ...uncapped, amount: "8000" };
  expect(await savedOver(uncapped, smaller, { isCapped: true })).toEqual(cannot("The budget was changed"));
  // The cap is of others, the amount of the form.
  expect(await savedOver(uncapped, budget, { amount: "81" })).toEqual(cannot("The budget was changed"));
  const pausing = { amount: "8100", notices: [50, 80], hard_cap: true };
  // It is what the form has, however the amount is written, and the form says what it does.
  expect((await savedOver(uncapped, uncapped, { amount: "81.0", isCapped: true })).sent).toEqual([pausing]);
  // Nothing is paused by it.
  const larger = { ...uncapped, amount: "30000" };
  expect((await savedOver(uncapped, larger, { isCapped: true })).sent).toEqual([
    { ...pausing, amount: "30000" },
  ]);
  expect((await savedOver(uncapped, smaller, { notices: "90" })).sent).toEqual([
    { amount: "8000", notices: [90], hard_cap: false },
  ]);
});

it("an amount is said as it is understood while it is typed", () => {
  expect(["1.500", " 1500 ", "0.00000000001", "1,500", ""].map(meantAmount)).toEqual([
    "= R$1.50",
    "= R$1,500.00",
    "= R$0.00000000001",
    "",
    "",
  ]);
});

it("a cap pauses immediately where so much is spent, by the exact amounts", () => {
  const pauses = (amount: string, isCapped = true) => pausesNow({ ...made, amount, isCapped }, "8120.5");
  expect([pauses("81.205"), pauses("81.20500000001"), pauses("81.205", false), pauses("")]).toEqual([
    true,
    false,
    false,
    false,
  ]);
  const warned = (spent: string | undefined, isCapped = true) =>
    capWarning({ ...made, amount: "81.205", isCapped }, spent);
  expect(warned("8120.5")).toMatch(/^So much is spent already/);
  // What is spent by now, and not when the form was made.
  expect([warned("8120.4"), warned("8120.5", false)]).toEqual(["", ""]);
  // What is not known is not nothing.
  expect(warned(undefined)).toMatch(/^It is not known how much is spent/);
  expect(warned(undefined, false)).toBe("");
  expect(spending(budget)).toEqual({ percent: "54.1", isReached: false });
  expect(spending({ spent: "15000.0", amount: "15000" })).toEqual({ percent: "100", isReached: true });
});
