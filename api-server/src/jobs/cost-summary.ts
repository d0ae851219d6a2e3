import { CURRENCY } from "@slipway/crds";
import { z } from "zod";
import type { ApiProject } from "../projects/api-project.ts";
import type { Services } from "../services.ts";
import { sumRuns } from "./read.ts";
import { cycleShape, cycleView, jsonDecimal } from "./run.ts";

/** What a project's runs cost in the current billing cycle, as `/v1` shows it of jobs and of one-off runs. */

export const costTotals = z.object({
  currency: z.literal(CURRENCY),
  total_amount: z.number().describe("BRL cents, the exact sum; it may be a fraction."),
  executed_runs: z.int().min(0),
  billed_minutes: z.int().min(0),
});

export const costSummarySchema = <T extends z.ZodType>(totals: T) =>
  z.object({ totals: z.array(totals), ...cycleShape });

/** @throws Failure 503 when the ledger is unavailable */
export async function costSummaryData(project: ApiProject, services: Pick<Services, "ledger" | "now">) {
  const { totalAmount, executedRuns, billedMinutes, cycle } = await sumRuns(project, services);
  const total = {
    currency: CURRENCY,
    total_amount: jsonDecimal(totalAmount),
    executed_runs: executedRuns,
    billed_minutes: billedMinutes,
  };
  return { totals: [total], ...cycleView(cycle) };
}
