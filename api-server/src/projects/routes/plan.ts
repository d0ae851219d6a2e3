import { patchPlanBody } from "@slipway/crds";
import { z } from "zod";
import { planChangeOf, planInForce } from "../../databases/plan.ts";
import { failures } from "../../errors/catalog.ts";
import { defineProjectRoute } from "../../http/route.ts";
import { refuseBlocked } from "../../organizations/service.ts";
import { PLAN_FIELDS, parsePlanBody, withPlan, withRequestedPlan } from "../plan-change.ts";
import { changeWithQuota } from "../quotas.ts";
import { planChangeSchema, success } from "./schemas.ts";

const data = z.object({
  plan: z.string().describe("Plan in force."),
  payment_mode: z.enum(["hourly", "monthly", "yearly", "per_minute"]),
  plan_change: planChangeSchema.optional(),
});

export const updatePlan = defineProjectRoute({
  operationId: "updateProjectPlan",
  method: "PATCH",
  path: "/v1/project/:id/plan",
  summary: "Change a project's plan, or how it is paid",
  description:
    "The plan of a clickhouse project changes in the background, one instance after the other; when that cannot be done it stays " +
    "on the plan before, and plan_change of the project tells. It is not tried again until it is asked for again.",
  tags: ["Settings"],
  documentedBody: patchPlanBody,
  responses: {
    200: {
      description: "Changed; instances are replaced in the background.",
      schema: success({ message: z.string(), data }),
    },
    202: {
      description: "Of clickhouse: accepted; plan_change of the project tells how it goes.",
      schema: success({ message: z.string(), data }),
    },
  },
  refusals: [402, 409],
  handler: async ({ project: asked, body }, services) => {
    const { resource, organizationId } = asked;
    const { type } = resource.spec;
    const wanted = parsePlanBody(body, type);
    const catalog = services.catalog.current;
    if (!services.supports(type)) {
      // What is wrong with the request is reported before what is wrong with the platform.
      withPlan(resource.spec, wanted, catalog);
      throw failures.projectFeatureUnavailable(`changing the plan of a ${type} project`);
    }
    const isAnalytics = type === "clickhouse";
    const { project } = await changeWithQuota(
      asked,
      services,
      (spec, live) =>
        isAnalytics
          ? withRequestedPlan(live, wanted, catalog, services.now().toISOString())
          : withPlan(spec, wanted, catalog),
      { fields: PLAN_FIELDS, prepare: () => refuseBlocked(services, organizationId) },
    );
    const change = planChangeOf(project.resource, project.updatedAt);
    const data = {
      plan: planInForce(project.resource),
      payment_mode: project.resource.spec.paymentMode,
      ...(change === undefined ? {} : { plan_change: change }),
    };
    const message = isAnalytics && change ? "the plan changes in the background" : "plan updated";
    return { status: isAnalytics ? 202 : 200, body: { status: "success", message, data } };
  },
});
