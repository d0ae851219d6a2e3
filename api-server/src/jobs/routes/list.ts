import { jobRunPhases } from "@slipway/crds";
import { z } from "zod";
import { defineProjectRoute } from "../../http/route.ts";
import { wholeNumber } from "../../http/schemas.ts";
import { requireType } from "../../projects/api-project.ts";
import { success } from "../../projects/routes/schemas.ts";
import { listRuns } from "../list.ts";
import { runItem } from "../view.ts";
import { cycleShape, cycleView, runPagination, runSchema } from "./schemas.ts";

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
