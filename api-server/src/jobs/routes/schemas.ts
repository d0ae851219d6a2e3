import { jobRunPhases } from "@slipway/crds";
import { z } from "zod";

/** Schemas of what is answered about runs of jobs, for the OpenAPI document and the tests. */

const currency = z.literal("brl");
const status = z.enum(jobRunPhases);
const billedMinutes = z.int().min(0).max(60);

export const runSchema = z.object({
  id: z.string(),
  status,
  trigger: z.enum(["schedule", "manual"]),
  scheduled_at: z.string(),
  started_at: z.string().describe("When its container really started."),
  finished_at: z
    .string()
    .describe("When its container really ended; absent while it runs, as all below.")
    .optional(),
  duration_seconds: z.int().min(0).optional(),
  billed_minutes: billedMinutes.optional(),
  plan: z.string(),
  amount: z.number().describe("BRL cents, exact; it may be a fraction.").optional(),
  currency,
});

export const runSummarySchema = z.object({
  id: z.string(),
  status,
  billed_minutes: billedMinutes.describe("Absent while it runs; 0 for a run that never started.").optional(),
  currency,
});

export const cycleShape = {
  cycle_started_at: z
    .string()
    .describe("First moment of the current billing cycle, a calendar month in UTC."),
  next_reset_at: z
    .string()
    .describe("First moment of the next one: then the list, logs, metrics and totals begin anew."),
};

export const runPagination = z.object({
  page: z.int().min(1),
  limit: z.int().min(1),
  total: z.int().min(0),
  total_pages: z.int().min(0),
});

/** Of a cycle, as every answer about it has them. */
export const cycleView = ({ startedAt, nextResetAt }: { startedAt: Date; nextResetAt: Date }) => ({
  cycle_started_at: startedAt.toISOString(),
  next_reset_at: nextResetAt.toISOString(),
});
