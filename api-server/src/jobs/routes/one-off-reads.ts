import { oneOffTypes } from "@slipway/crds";
import { MAX_LOG_BYTES } from "@slipway/ledger";
import { z } from "zod";
import { defineProjectRoute } from "../../http/route.ts";
import { wholeNumber } from "../../http/validate.ts";
import { requireType } from "../../projects/api-project.ts";
import { success } from "../../projects/routes/schemas.ts";
import { costSummaryData, costSummarySchema, costTotals } from "../cost-summary.ts";
import { readRunLog } from "../log.ts";
import { findOneOff, listOneOff, oneOffItem, oneOffPhases, oneOffSchema } from "../one-off.ts";
import { cycleShape, cycleView, runPagination } from "../run.ts";

export const listOneOffRuns = defineProjectRoute({
  operationId: "listRuns",
  method: "GET",
  path: "/v1/project/:id/runs",
  summary: "List an application's one-off runs of the current billing cycle",
  description: "The newest requested first, those that wait to start included.",
  tags: ["Runs"],
  query: z.strictObject({
    page: wholeNumber(1, 2 ** 31 - 1).default(1),
    limit: wholeNumber(1, 50).default(15),
    status: z.enum(oneOffPhases).optional(),
  }),
  responses: {
    200: {
      description: "One page of runs.",
      schema: success({
        data: z.object({ runs: z.array(oneOffSchema), pagination: runPagination, ...cycleShape }),
      }),
    },
  },
  handler: async ({ project, query }, services) => {
    requireType(project, oneOffTypes);
    const { runs, total, cycle } = await listOneOff(query, project, services);
    const { page, limit } = query;
    const pagination = { page, limit, total, total_pages: Math.ceil(total / limit) };
    const data = { runs: runs.map(oneOffItem), pagination, ...cycleView(cycle) };
    return { status: 200, body: { status: "success", data } };
  },
});

export const oneOffCostSummary = defineProjectRoute({
  operationId: "readRunCostSummary",
  method: "GET",
  path: "/v1/project/:id/runs/cost-summary",
  summary: "Read what an application's one-off runs cost in the current billing cycle",
  description: "Sums the recorded amounts of the runs that started in the cycle and have ended.",
  tags: ["Runs"],
  responses: {
    200: {
      description: "Totals by currency.",
      schema: success({ data: costSummarySchema(costTotals) }),
    },
  },
  handler: async ({ project }, services) => {
    requireType(project, oneOffTypes);
    const data = await costSummaryData(project, services);
    return { status: 200, body: { status: "success", data } };
  },
});

export const readOneOffRun = defineProjectRoute({
  operationId: "readRun",
  method: "GET",
  path: "/v1/project/:id/runs/:runId",
  summary: "Read a one-off run of an application",
  tags: ["Runs"],
  responses: {
    200: { description: "The run.", schema: success({ data: z.object({ run: oneOffSchema }) }) },
  },
  handler: async ({ project, params }, services) => {
    requireType(project, oneOffTypes);
    const { runId } = params as { runId: string };
    const run = oneOffItem(await findOneOff(project, runId, services));
    return { status: 200, body: { status: "success", data: { run } } };
  },
});

export const oneOffRunLogs = defineProjectRoute({
  operationId: "readRunLogs",
  method: "GET",
  path: "/v1/project/:id/runs/:runId/logs",
  summary: "Read what a one-off run wrote last",
  description: `The end of its log, at most ${MAX_LOG_BYTES / 1024} KiB: as it is while the run goes on, and kept after it.`,
  tags: ["Runs"],
  responses: {
    200: {
      description: "The end of the log.",
      schema: success({ data: z.object({ run: oneOffSchema, logs: z.string() }) }),
    },
  },
  // Each may read megabytes from a node.
  maxConcurrent: 8,
  handler: async ({ project, params }, services) => {
    requireType(project, oneOffTypes);
    const { runId } = params as { runId: string };
    const run = await findOneOff(project, runId, services);
    const logs = await readRunLog(project, { run, resource: run.resource }, services);
    return {
      status: 200,
      headers: { "cache-control": "no-store" },
      body: { status: "success", data: { run: oneOffItem(run), logs } },
    };
  },
});
