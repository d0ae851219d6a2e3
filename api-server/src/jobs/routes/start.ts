import { z } from "zod";
import { failures } from "../../errors/catalog.ts";
import { defineProjectRoute } from "../../http/route.ts";
import { newManualRunId } from "../../ids.ts";
import { refuseBlocked } from "../../organizations/service.ts";
import { requireType } from "../../projects/api-project.ts";
import { idempotencyKeyErrors, isIdempotencyKey } from "../../projects/creation/body.ts";
import { idempotencyKeyHeader, success } from "../../projects/routes/schemas.ts";
import { startRun } from "../start.ts";
import { startRunByKey } from "../start-by-key.ts";

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
    const errors = idempotencyKeyErrors(key);
    if (errors.length > 0) {
      throw failures.validation(errors);
    }
    await refuseBlocked(services, job.organizationId);
    const { id, scheduledAt } = isIdempotencyKey(key)
      ? await startRunByKey(job, key, services)
      : await startRun(job, newManualRunId(job.id, services.now()), services);
    const run = { id, scheduled_at: scheduledAt.toISOString() };
    return { status: 202, body: { status: "success", message: "the run starts", data: { run } } };
  },
});
