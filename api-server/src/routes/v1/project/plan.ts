import { patchPlanBody } from "@slipway/crds";
import { z } from "zod";
import { failures } from "../../../errors/catalog.ts";
import { defineRoute } from "../../../http/route.ts";
import { refuseBlocked } from "../../../organizations/blocked.ts";
import type { ApiProject } from "../../../projects/api-project.ts";
import { changeWithSlot } from "../../../projects/change-with-slot.ts";
import { PLAN_FIELDS, parsePlanBody, withPlan } from "../../../projects/plan-change.ts";
import { applicationTypes } from "../../../projects/require-type.ts";
import { success } from "./schemas.ts";

export const updatePlan = defineRoute({
  operationId: "updateProjectPlan",
  method: "PATCH",
  path: "/v1/project/:id/plan",
  summary: "Change a project's plan, or how it is paid",
  tags: ["Settings"],
  documentedBody: patchPlanBody,
  responses: {
    200: {
      description: "Changed; instances are replaced in the background.",
      schema: success({
        message: z.string(),
        data: z.object({
          plan: z.string(),
          payment_mode: z.enum(["hourly", "monthly", "yearly", "per_minute"]),
        }),
      }),
    },
  },
  refusals: [402, 409],
  handler: async ({ project, body }, services) => {
    const { resource, organizationId } = project as ApiProject;
    const { type } = resource.spec;
    const wanted = parsePlanBody(body, type);
    if (!applicationTypes.includes(type)) {
      throw failures.projectFeatureUnavailable(`changing the plan of a ${type} project`);
    }
    const change = await changeWithSlot(
      project as ApiProject,
      services,
      (spec) => withPlan(spec, wanted, services.catalog.current),
      { fields: PLAN_FIELDS, prepare: () => refuseBlocked(services, organizationId) },
    );
    const { plan, paymentMode } = change.project.resource.spec;
    return {
      status: 200,
      body: { status: "success", message: "plan updated", data: { plan, payment_mode: paymentMode } },
    };
  },
});
