import { z } from "zod";
import { jsonDecimal } from "../../http/json-decimal.ts";
import { defineProjectRoute } from "../../http/route.ts";
import { requireType } from "../../projects/api-project.ts";
import { success } from "../../projects/routes/schemas.ts";
import { sumRuns } from "../list.ts";
import { CURRENCY } from "../view.ts";
import { cycleShape, cycleView } from "./schemas.ts";

const totals = z.object({
  currency: z.literal("brl"),
  total_amount: z.number().describe("BRL cents, the exact sum; it may be a fraction."),
  executed_runs: z.int().min(0),
  billed_minutes: z.int().min(0),
  billed_runs: z.int().min(0).meta({ description: "The same as executed_runs.", deprecated: true }),
});

export const costSummary = defineProjectRoute({
  operationId: "readJobCostSummary",
  method: "GET",
  path: "/v1/project/:id/job-runs/cost-summary",
  summary: "Read what a job's runs cost in the current billing cycle",
  description: "Sums the recorded amounts of the runs that started in the cycle and have ended.",
  tags: ["Job runs"],
  responses: {
    200: {
      description: "Totals by currency.",
      schema: success({ data: z.object({ totals: z.array(totals), ...cycleShape }) }),
    },
  },
  handler: async ({ project }, services) => {
    requireType(project, ["job"]);
    const { totalAmount, executedRuns, billedMinutes, cycle } = await sumRuns(project, services);
    const total = {
      currency: CURRENCY,
      total_amount: jsonDecimal(totalAmount),
      executed_runs: executedRuns,
      billed_minutes: billedMinutes,
      billed_runs: executedRuns,
    };
    return { status: 200, body: { status: "success", data: { totals: [total], ...cycleView(cycle) } } };
  },
});
