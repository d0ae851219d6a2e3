import { patchDescriptionBody, patchImageBody, patchNameBody, patchPlanBody } from "@slipway/crds";
import { z } from "zod";
import { refuseForeignImage } from "../../builds/platform.ts";
import { planChangeOf, planInForce } from "../../databases/plan.ts";
import { waitForFirstDomain } from "../../domains/wait.ts";
import { failures } from "../../errors/catalog.ts";
import { defineProjectRoute } from "../../http/route.ts";
import { refuseBlocked, refuseExhausted } from "../../organizations/service.ts";
import { changeProject } from "../change.ts";
import { requireCredentialsFor, requireImage, withImage } from "../image-change.ts";
import { costsMore, PLAN_FIELDS, parsePlanBody, withPlan, withRequestedPlan } from "../plan-change.ts";
import { changeWithQuota } from "../quotas.ts";
import { messageOnly, planChangeSchema, success } from "./schemas.ts";

export const updateName = defineProjectRoute({
  operationId: "updateProjectName",
  method: "PATCH",
  path: "/v1/project/:id/name",
  summary: "Change a project's name",
  description: "The default domain, which was made from the first name, stays as it is.",
  tags: ["Settings"],
  body: patchNameBody,
  responses: { 200: { description: "Changed.", schema: messageOnly } },
  refusals: [409, 503],
  handler: async ({ project, body: { name } }, services) => {
    await waitForFirstDomain(project, services);
    await changeProject(project, services, (spec) => ({ ...spec, name }));
    return { status: 200, body: { status: "success", message: "name updated" } };
  },
});

export const updateDescription = defineProjectRoute({
  operationId: "updateProjectDescription",
  method: "PATCH",
  path: "/v1/project/:id/description",
  summary: "Change a project's description",

  tags: ["Settings"],
  body: patchDescriptionBody,
  responses: { 200: { description: "Changed.", schema: messageOnly } },
  refusals: [409, 503],
  handler: async ({ project, body: { description } }, services) => {
    await changeProject(project, services, (spec) => ({ ...spec, description }));
    return { status: 200, body: { status: "success", message: "description updated" } };
  },
});

export const updateImage = defineProjectRoute({
  operationId: "updateProjectImage",
  method: "PATCH",
  path: "/v1/project/:id/image",
  summary: "Deploy another image",
  description:
    "The same image again is deployed again. A tag that never changes, or a digest, is advised over latest. A private " +
    "image must come from a registry that the project's credentials are for.",
  tags: ["Settings"],
  body: patchImageBody,
  responses: { 200: { description: "A new deployment starts in the background.", schema: messageOnly } },
  refusals: [409],
  handler: async ({ project, body }, services) => {
    requireImage(project);
    refuseForeignImage(body.image, "image", project.organizationId, services);
    const now = services.now().toISOString();
    await changeProject(project, services, (spec) => withImage(spec, body.image, now), {
      fields: { "image.url": "image" },
      prepare: (wanted, live, kube) => requireCredentialsFor(kube, wanted, live),
    });
    return { status: 200, body: { status: "success", message: "image updated, a new deployment starts" } };
  },
});

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
    "on the plan before, and plan_change of the project reports it. It is not retried until it is requested again.",
  tags: ["Settings"],
  documentedBody: patchPlanBody,
  responses: {
    200: {
      description: "Changed; instances are replaced in the background.",
      schema: success({ message: z.string(), data }),
    },
    202: {
      description: "Of clickhouse: accepted; plan_change of the project reports its progress.",
      schema: success({ message: z.string(), data }),
    },
  },
  refusals: [402, 409],
  handler: async ({ project: requested, body }, services) => {
    const { resource, organizationId } = requested;
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
      requested,
      services,
      (spec, live) =>
        isAnalytics
          ? withRequestedPlan(live, wanted, catalog, services.now().toISOString())
          : withPlan(spec, wanted, catalog),
      {
        fields: PLAN_FIELDS,
        prepare: async (changed, live) => {
          await refuseBlocked(services, organizationId);
          const before = { ...live.spec, plan: planInForce(live) };
          if (costsMore(changed.spec, before, catalog)) {
            await refuseExhausted(services, organizationId);
          }
        },
      },
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
