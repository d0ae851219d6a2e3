import { MAX_LOG_BYTES } from "@slipway/ledger";
import { z } from "zod";
import { defineProjectRoute } from "../../http/route.ts";
import { requireType } from "../../projects/api-project.ts";
import { success } from "../../projects/routes/schemas.ts";
import { findInCycle } from "../find.ts";
import { readRunLog } from "../log.ts";
import { runSummary } from "../view.ts";
import { runSummarySchema } from "./schemas.ts";

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
