import { jobRunPhases } from "@slipway/crds";
import { MAX_LOG_BYTES } from "@slipway/ledger";
import { z } from "zod";
import { defineProjectRoute } from "../../http/route.ts";
import { wholeNumber } from "../../http/validate.ts";
import { requireType } from "../../projects/api-project.ts";
import { success } from "../../projects/routes/schemas.ts";
import { costSummaryData, costSummarySchema, costTotals } from "../cost-summary.ts";
import { readRunLog } from "../log.ts";
import { runMetrics } from "../metrics.ts";
import { findInCycle, listRuns } from "../read.ts";
import {
  cycleShape,
  cycleView,
  runItem,
  runPagination,
  runSchema,
  runSummary,
  runSummarySchema,
} from "../run.ts";

export const listJobRuns = defineProjectRoute({
  operationId: "listJobRuns",
  method: "GET",
  path: "/v1/project/:id/job-runs",
  summary: "List a job's runs of the current billing cycle",
  description:
    "The newest scheduled first. A run belongs to the cycle in which it started, and is listed once it has started.",
  tags: ["Job runs"],
  query: z.strictObject({
    page: wholeNumber(1, 2 ** 31 - 1).default(1),
    limit: wholeNumber(1, 50).default(15),
    status: z.enum(jobRunPhases).optional(),
  }),
  responses: {
    200: {
      description: "One page of runs.",
      schema: success({
        data: z.object({ runs: z.array(runSchema), pagination: runPagination, ...cycleShape }),
      }),
    },
  },
  handler: async ({ project, query }, services) => {
    requireType(project, ["job"]);
    const { runs, total, cycle } = await listRuns(query, project, services);
    const { page, limit } = query;
    const pagination = { page, limit, total, total_pages: Math.ceil(total / limit) };
    const data = { runs: runs.map(runItem), pagination, ...cycleView(cycle) };
    return { status: 200, body: { status: "success", data } };
  },
});

const totals = costTotals.extend({
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
      schema: success({ data: costSummarySchema(totals) }),
    },
  },
  handler: async ({ project }, services) => {
    requireType(project, ["job"]);
    const { totals: sums, ...cycle } = await costSummaryData(project, services);
    const data = { totals: sums.map((sum) => ({ ...sum, billed_runs: sum.executed_runs })), ...cycle };
    return { status: 200, body: { status: "success", data } };
  },
});

export const jobRunLogs = defineProjectRoute({
  operationId: "readJobRunLogs",
  method: "GET",
  path: "/v1/project/:id/job-runs/:runId/logs",
  summary: "Read what a run of a job wrote last",
  description: `The end of its log, at most ${MAX_LOG_BYTES / 1024} KiB: as it is while the run goes on, and kept after it.`,
  tags: ["Job runs"],
  responses: {
    200: {
      description: "The end of the log.",
      schema: success({ data: z.object({ run: runSummarySchema, logs: z.string() }) }),
    },
  },
  // Each may read megabytes from a node.
  maxConcurrent: 8,
  handler: async ({ project, params }, services) => {
    requireType(project, ["job"]);
    const { runId } = params as { runId: string };
    const found = await findInCycle(project, runId, services);
    const logs = await readRunLog(project, found, services);
    return {
      status: 200,
      headers: { "cache-control": "no-store" },
      body: { status: "success", data: { run: runSummary(found.run), logs } },
    };
  },
});

const number = z.number().min(0).optional();

const metricsSchema = z.object({
  run_id: z.string(),
  status: z.enum(["collecting", "available", "unavailable"]),
  window: z.object({ started_at: z.string(), finished_at: z.string().optional() }),
  cpu: z.object({ average_cores: number, peak_cores: number, latest_cores: number }).optional(),
  memory: z.object({ average_bytes: number, peak_bytes: number, latest_bytes: number }).optional(),
  samples: z.int().min(0).optional(),
  sampled_at: z.string().describe("When the last sample was taken, while collecting.").optional(),
});

export const jobRunMetrics = defineProjectRoute({
  operationId: "readJobRunMetrics",
  method: "GET",
  path: "/v1/project/:id/job-runs/:runId/metrics",
  summary: "Read the CPU and memory of a run of a job",
  description:
    "What is not known is absent. latest_cores, latest_bytes and sampled_at are there while collecting.",
  tags: ["Job runs"],
  responses: { 200: { description: "What was measured.", schema: success({ data: metricsSchema }) } },
  handler: async ({ project, params }, services) => {
    requireType(project, ["job"]);
    const { runId } = params as { runId: string };
    const found = await findInCycle(project, runId, services);
    return { status: 200, body: { status: "success", data: runMetrics(found) } };
  },
});
