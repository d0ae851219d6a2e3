import { putBudgetBody } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { budgetBody, budgetForm, pausesNow, saveBudget, spending } from "../../console/lib/budget.ts";
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

it.each([
  [undefined, budget, "A budget was set meanwhile: nothing is saved."],
  [budget, undefined, "The budget was removed meanwhile: nothing is saved."],
  [budget, budget, "Saved."],
])("what was set or removed since the form was made is not overwritten", async (of, current, said) => {
  const sent: object[] = [];
  const send = async (body: object) => void sent.push(body);
  const saved = await saveBudget(of, { ...made, amount: "151" }, { load: async () => current, send });
  expect(saved).toEqual({ said, isSaved: said === "Saved." });
  expect(sent).toEqual(said === "Saved." ? [{ amount: "15100", notices: [50, 80], hard_cap: true }] : []);
});

it("a cap pauses immediately where so much is spent, by the exact amounts", () => {
  const pauses = (amount: string, isCapped = true) => pausesNow({ ...made, amount, isCapped }, "8120.5");
  expect([pauses("81.205"), pauses("81.20500000001"), pauses("81.205", false), pauses("")]).toEqual([
    true,
    false,
    false,
    false,
  ]);
  expect(spending(budget)).toEqual({ percent: "54.1", isReached: false });
  expect(spending({ spent: "15000.0", amount: "15000" })).toEqual({ percent: "100", isReached: true });
});
