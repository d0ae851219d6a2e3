import { z } from "zod";
import { defineProjectRoute } from "../../http/route.ts";
import { requireType } from "../../projects/api-project.ts";
import { success } from "../../projects/routes/schemas.ts";
import { findInCycle } from "../find.ts";
import { runMetrics } from "../metrics.ts";

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
