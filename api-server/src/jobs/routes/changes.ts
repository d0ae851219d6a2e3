import { normalizeCron, patchScheduleBody } from "@slipway/crds";
import { z } from "zod";
import { defineProjectRoute } from "../../http/route.ts";
import { validate } from "../../http/validate.ts";
import { requireType } from "../../projects/api-project.ts";
import { changeProject } from "../../projects/change.ts";
import { idempotencyKeyHeader, success } from "../../projects/routes/schemas.ts";
import { cancelRun } from "../cancel.ts";
import { runSummary, runSummarySchema } from "../run.ts";
import { startRequestedRun } from "../start-requested.ts";

export const startJobRun = defineProjectRoute({
  operationId: "startJobRun",
  method: "POST",
  path: "/v1/project/:id/job-runs",
  summary: "Run a job now",
  description:
    "Beside its schedule, on the same terms. 202 means that the run has the job's slot and starts; it is listed once its " +
    "container has started. With an Idempotency-Key, sending it again answers the same run.",
  tags: ["Job runs"],
  headers: z.object({ "idempotency-key": idempotencyKeyHeader("One key stands for one run.") }),
  responses: {
    202: {
      description: "It starts.",
      schema: success({
        message: z.string(),
        data: z.object({ run: z.object({ id: z.string(), scheduled_at: z.string() }) }),
      }),
    },
  },
  refusals: [402, 409],
  handler: async ({ project: job, request }, services) => {
    requireType(job, ["job"]);
    const key = request.headers["idempotency-key"];
    const { id, scheduledAt } = await startRequestedRun(job, key, services);
    const run = { id, scheduled_at: scheduledAt.toISOString() };
    return { status: 202, body: { status: "success", message: "the run starts", data: { run } } };
  },
});

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

export const updateSchedule = defineProjectRoute({
  operationId: "updateProjectSchedule",
  method: "PATCH",
  path: "/v1/project/:id/schedule",
  summary: "Change when a scheduled job runs",
  description:
    "Also opens a schedule again that a deletion has closed and that was refused with JOB_RUNS_PENDING.",
  tags: ["Settings"],
  documentedBody: patchScheduleBody,
  responses: {
    200: {
      description: "Changed.",
      schema: success({
        message: z.string(),
        data: z.object({ cron: z.string(), timezone: z.literal("UTC") }),
      }),
    },
  },
  refusals: [409],
  handler: async ({ project, body }, services) => {
    requireType(project, ["job"]);
    const { cron } = validate(patchScheduleBody, withNormalizedCron(body), "body");
    await changeProject(
      project,
      services,
      ({ job: { closedAt: _, ...job } = { cron }, ...spec }) => ({ ...spec, job: { ...job, cron } }),
      { fields: { "job.cron": "cron" } },
    );
    const data = { cron, timezone: "UTC" };
    return { status: 200, body: { status: "success", message: "schedule updated", data } };
  },
});

/** The body with single spaces between the fields of its schedule. */
function withNormalizedCron(body: unknown): unknown {
  if (typeof body !== "object" || body === null || !("cron" in body)) {
    return body;
  }
  return typeof body.cron === "string" ? { ...body, cron: normalizeCron(body.cron) } : body;
}
