import { oneOffTypes, startRunBody } from "@slipway/crds";
import { z } from "zod";
import { defineProjectRoute } from "../../http/route.ts";
import { requireType } from "../../projects/api-project.ts";
import { idempotencyKeyHeader, success } from "../../projects/routes/schemas.ts";
import { cancelRun } from "../cancel.ts";
import { runSummary, runSummarySchema } from "../run.ts";
import { startRequestedRun } from "../start-requested.ts";

export const startOneOffRun = defineProjectRoute({
  operationId: "startRun",
  method: "POST",
  path: "/v1/project/:id/runs",
  summary: "Run a command once in the image of an application",
  description:
    "Of HTTP projects and workers: in the image that serves now, with its variables and its plan's resources, apart from its " +
    "instances. 202 means that it is admitted and starts; it is billed by the minute, a sixtieth of its plan's hourly price. " +
    "With an Idempotency-Key, sending it again answers the same run.",
  tags: ["Runs"],
  body: startRunBody,
  headers: z.object({ "idempotency-key": idempotencyKeyHeader("One key stands for one run.") }),
  responses: {
    202: {
      description: "It starts.",
      schema: success({
        message: z.string(),
        data: z.object({ run: z.object({ id: z.string(), requested_at: z.string() }) }),
      }),
    },
  },
  refusals: [402, 409],
  handler: async ({ project, body, request }, services) => {
    requireType(project, oneOffTypes);
    const key = request.headers["idempotency-key"];
    const { command, timeout_seconds: timeoutSeconds } = body;
    const wanted = { command, ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }) };
    const { id, scheduledAt } = await startRequestedRun(project, key, services, wanted);
    const run = { id, requested_at: scheduledAt.toISOString() };
    return { status: 202, body: { status: "success", message: "the run starts", data: { run } } };
  },
});

export const cancelOneOffRun = defineProjectRoute({
  operationId: "cancelRun",
  method: "POST",
  path: "/v1/project/:id/runs/:runId/cancel",
  summary: "Cancel a one-off run of an application",
  description:
    "Waits until the run has ended: up to 30 seconds of graceful shutdown, then it is stopped by force. It is billed up to " +
    "the first request. May be repeated: every call answers the state that the run came to.",
  tags: ["Runs"],
  responses: {
    200: {
      description: "The run has ended.",
      schema: success({ message: z.string(), data: z.object({ run: runSummarySchema }) }),
    },
  },
  refusals: [409],
  handler: async ({ project, params }, services) => {
    requireType(project, oneOffTypes);
    const { runId } = params as { runId: string };
    const run = await cancelRun(project, runId, services);
    const message = run.status === "cancelled" ? "run cancelled" : "the run had ended";
    return { status: 200, body: { status: "success", message, data: { run: runSummary(run) } } };
  },
});
