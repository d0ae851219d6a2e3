import { findHttpPlan, type ProjectSpec, patchHealthBody, toCamel } from "@slipway/crds";
import type { z } from "zod";
import { failures } from "../../errors/catalog.ts";
import { defineProjectRoute } from "../../http/route.ts";
import { requireTypeWith } from "../api-project.ts";
import { changeProject } from "../change.ts";
import { messageOnly } from "./schemas.ts";

/** The spec with another health check or time to stop; null removes one, and what is absent stays. Pure. */
export function withHealth(spec: ProjectSpec, body: z.output<typeof patchHealthBody>): ProjectSpec {
  const { healthcheck, terminationGracePeriodSeconds, ...rest } = spec;
  const changes = toCamel(body) as {
    [Field in "healthcheck" | "terminationGracePeriodSeconds"]?: ProjectSpec[Field] | null;
  };
  const wanted = { healthcheck, terminationGracePeriodSeconds, ...changes };
  return {
    ...rest,
    ...(wanted.healthcheck ? { healthcheck: wanted.healthcheck } : {}),
    ...(wanted.terminationGracePeriodSeconds
      ? { terminationGracePeriodSeconds: wanted.terminationGracePeriodSeconds }
      : {}),
  };
}

export const updateHealth = defineProjectRoute({
  operationId: "updateProjectHealth",
  method: "PATCH",
  path: "/v1/project/:id/health",
  summary: "Change how an application's instances are probed, and how long they may take to stop",
  description:
    "Of HTTP projects; the time to stop also of workers. healthcheck is replaced as a whole; what is absent from the body stays. A change is a new deployment.",
  tags: ["Settings"],
  body: patchHealthBody,
  responses: { 200: { description: "A new deployment starts in the background.", schema: messageOnly } },
  refusals: [409, 503],
  handler: async ({ project, body }, services) => {
    requireTypeWith(
      project,
      body.healthcheck === undefined ? "terminationGracePeriodSeconds" : "healthcheck",
    );
    await changeProject(project, services, (spec) => withHealth(spec, body), {
      prepare: async ({ spec }) => {
        const plan = findHttpPlan(services.catalog.current, spec.plan);
        if (body.healthcheck?.enabled && plan && !plan.capabilities.healthcheck) {
          throw failures.healthcheckNotAvailable(plan.plan);
        }
      },
    });
    return { status: 200, body: { status: "success", message: "health updated" } };
  },
});
