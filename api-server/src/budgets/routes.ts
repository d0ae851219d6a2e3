import { billingCycle, putBudgetBody } from "@slipway/crds";
import { deleteBudget, findBudget, setBudget } from "@slipway/ledger";
import { z } from "zod";
import type { Principal } from "../auth/principal.ts";
import { failures } from "../errors/catalog.ts";
import { type Call, defineRoute } from "../http/route.ts";
import { withLedgerErrors } from "../ledger/availability.ts";
import { messageOnly, success } from "../projects/routes/schemas.ts";
import { budgetSchema, budgetView } from "./view.ts";

const TAGS = ["Budgets"];
/** Each waits for the ledger. */
const MAX_CONCURRENT = 16;
const path = "/v1/organization/budget";

type AnyCall = Pick<Call<unknown, unknown, unknown>, "principal">;

const organizationOf = ({ principal }: AnyCall): string => (principal as Principal).organizationId;

export const readBudget = defineRoute({
  operationId: "readBudget",
  method: "GET",
  path,
  summary: "Read the organization's budget",
  description: "With what the billing cycle's charges come to so far.",
  tags: TAGS,
  responses: { 200: { description: "The budget.", schema: success({ data: budgetSchema }) } },
  refusals: [404],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, { ledger, now }) => {
    const at = now();
    const budget = await withLedgerErrors(() => findBudget(ledger, organizationOf(call), at));
    if (budget === undefined) {
      throw failures.budgetNotFound();
    }
    return { status: 200, body: { status: "success", data: budgetView(budget, billingCycle(at)) } };
  },
});

export const updateBudget = defineRoute({
  operationId: "updateBudget",
  method: "PUT",
  path,
  summary: "Set the organization's budget",
  description:
    "What a billing cycle may cost. With another amount than before its thresholds can be reached again. With a hard cap projects are paused " +
    "within a minute once the whole amount is charged, and nothing new starts; with more, or without one, those that it paused are resumed.",
  tags: TAGS,
  body: putBudgetBody,
  responses: {
    200: { description: "Set.", schema: success({ message: z.string(), data: budgetSchema }) },
  },
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, { ledger, now }) => {
    const { amount, notices, hard_cap: hardCap } = call.body;
    const at = now();
    const budget = await withLedgerErrors(() =>
      setBudget(ledger, organizationOf(call), { amount, notices, hardCap }, at),
    );
    const data = budgetView(budget, billingCycle(at));
    return { status: 200, body: { status: "success", message: "budget set", data } };
  },
});

export const removeBudget = defineRoute({
  operationId: "deleteBudget",
  method: "DELETE",
  path,
  summary: "Remove the organization's budget",
  description: "Projects that it paused are resumed.",
  tags: TAGS,
  responses: { 200: { description: "Removed.", schema: messageOnly } },
  refusals: [404],
  maxConcurrent: MAX_CONCURRENT,
  handler: async (call, { ledger }) => {
    if (!(await withLedgerErrors(() => deleteBudget(ledger, organizationOf(call))))) {
      throw failures.budgetNotFound();
    }
    return { status: 200, body: { status: "success", message: "budget removed" } };
  },
});
