import { z } from "zod";
import { defineProjectRoute } from "../../http/route.ts";
import { requireType } from "../../projects/api-project.ts";
import { success } from "../../projects/routes/schemas.ts";
import { cancelRun } from "../cancel.ts";
import { runSummary } from "../view.ts";
import { runSummarySchema } from "./schemas.ts";

export const cancelJobRun = defineProjectRoute({
  operationId: "cancelJobRun",
  method: "POST",
  path: "/v1/project/:id/job-runs/:runId/cancel",
  summary: "Cancel a run of a job",
  description:
    "Waits until the run has ended: up to 30 seconds of graceful shutdown, then it is stopped by force. It is billed up to " +
    "the first request. May be repeated: every call answers the state that the run came to. The schedule goes on.",
  tags: ["Job runs"],
  responses: {
    200: {
      description: "The run has ended.",
      schema: success({ message: z.string(), data: z.object({ run: runSummarySchema }) }),
    },
  },
  refusals: [409],
  handler: async ({ project, params }, services) => {
    requireType(project, ["job"]);
    const { runId } = params as { runId: string };
    const run = await cancelRun(project, runId, services);
    const message = run.status === "cancelled" ? "run cancelled" : "the run had ended";
    return { status: 200, body: { status: "success", message, data: { run: runSummary(run) } } };
  },
});
