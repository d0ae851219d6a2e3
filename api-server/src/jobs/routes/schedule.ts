import { normalizeCron, patchScheduleBody } from "@slipway/crds";
import { z } from "zod";
import { defineProjectRoute } from "../../http/route.ts";
import { validate } from "../../http/validate.ts";
import { requireType } from "../../projects/api-project.ts";
import { changeProject } from "../../projects/change.ts";
import { success } from "../../projects/routes/schemas.ts";

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
    const { cron } = validate(patchScheduleBody, forgiving(body), "body");
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

/** Spaces around and between the fields of a schedule are forgiven. */
function forgiving(body: unknown): unknown {
  if (typeof body !== "object" || body === null || !("cron" in body)) {
    return body;
  }
  return typeof body.cron === "string" ? { ...body, cron: normalizeCron(body.cron) } : body;
}
