import { type BillingCycle, compareDecimal, parseDecimal } from "@slipway/crds";
import type { Budget } from "@slipway/ledger";
import { z } from "zod";

/** A budget as `/v1` shows it. */
export const budgetSchema = z.object({
  amount: z.string().describe("What a billing cycle may cost, in BRL cents."),
  notices: z.array(z.int()).describe("Percent of the amount that are notified of."),
  hard_cap: z.boolean().describe("Whether projects are paused once the whole amount is charged."),
  spent: z
    .string()
    .describe("What the cycle's charges come to so far, in BRL cents. Below zero where credits are more."),
  exhausted: z.boolean().describe("Whether nothing new starts: a hard cap is reached."),
  reached: z
    .array(z.object({ threshold: z.int(), at: z.string() }))
    .describe("Percent of this amount that the cycle's charges have reached, and when that was recorded."),
  cycle_started_at: z.string(),
  next_reset_at: z.string(),
  created_at: z.string(),
  updated_at: z.string(),
});

/** Pure. */
export function budgetView(budget: Budget, cycle: BillingCycle): z.output<typeof budgetSchema> {
  const { amount, spent, hardCap } = budget;
  const isSpent = !spent.startsWith("-") && compareDecimal(parseDecimal(spent), parseDecimal(amount)) >= 0;
  return {
    amount,
    notices: [...budget.notices],
    hard_cap: hardCap,
    spent,
    exhausted: hardCap && isSpent,
    reached: budget.reached.map(({ threshold, at }) => ({ threshold, at: at.toISOString() })),
    cycle_started_at: cycle.startedAt.toISOString(),
    next_reset_at: cycle.nextResetAt.toISOString(),
    created_at: budget.createdAt.toISOString(),
    updated_at: budget.updatedAt.toISOString(),
  };
}
