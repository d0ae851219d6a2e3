import { isDeepStrictEqual } from "node:util";
import { findHttpPlan, type ProjectSpec, patchAutoscalingBody, toCamel } from "@slipway/crds";
import { maxInstances } from "@slipway/ledger";
import type { z } from "zod";
import { failures } from "../../errors/catalog.ts";
import { defineProjectRoute } from "../../http/route.ts";
import { refuseStart } from "../../organizations/service.ts";
import type { Services } from "../../services.ts";
import { requireTypeWith } from "../api-project.ts";
import { changeWithQuota } from "../quotas.ts";
import { inBody, planErrors, requireCountedRequests } from "../spec-errors.ts";
import { messageOnly } from "./schemas.ts";

type Body = z.output<typeof patchAutoscalingBody>;

/** The spec with another autoscaling or number of instances; null removes the autoscaling, and what is absent stays. Pure. */
export function withAutoscaling(spec: ProjectSpec, { autoscaling, instances }: Body): ProjectSpec {
  const { autoscaling: before, ...rest } = spec;
  const wanted =
    autoscaling === undefined ? before : (toCamel(autoscaling) as ProjectSpec["autoscaling"] | null);
  return {
    ...rest,
    ...(instances === undefined ? {} : { instances }),
    ...(wanted ? { autoscaling: wanted } : {}),
  };
}

/**
 * What the plan and the platform refuse of a change. What only removes is not refused: a plan may have changed since.
 * @throws Failure 400 for more instances than the plan has, 403 for what it lacks, 503 for a target of requests that are not counted
 */
export function checkAutoscaling(
  wanted: ProjectSpec,
  before: ProjectSpec,
  { catalog, scalesByRequests }: Pick<Services, "catalog" | "scalesByRequests">,
): void {
  const plan = findHttpPlan(catalog.current, wanted.plan);
  const errors =
    plan && maxInstances(wanted) > maxInstances(before) ? planErrors(wanted, plan).map(inBody) : [];
  if (errors.length > 0) {
    throw failures.validation(errors);
  }
  const isEnabled = wanted.autoscaling?.enabled ?? false;
  if (isEnabled && plan && !plan.capabilities.autoscaling && !onlyReduces(wanted, before)) {
    throw failures.autoscalingNotAvailable(plan.plan);
  }
  const target = wanted.autoscaling?.requestsPerSecondTarget;
  const isNew = isEnabled && !before.autoscaling?.enabled;
  if (isNew || target !== before.autoscaling?.requestsPerSecondTarget) {
    requireCountedRequests(wanted, scalesByRequests);
  }
}

/** Whether an autoscaling that was enabled is left as it was, or with fewer instances. */
function onlyReduces(wanted: ProjectSpec, before: ProjectSpec): boolean {
  const targetsOf = ({ autoscaling }: ProjectSpec) => {
    const { cpuTargetPercentage, memoryTargetPercentage, requestsPerSecondTarget } = autoscaling ?? {};
    return [cpuTargetPercentage, memoryTargetPercentage, requestsPerSecondTarget];
  };
  return (
    before.autoscaling?.enabled === true &&
    (wanted.instances ?? 1) <= (before.instances ?? 1) &&
    maxInstances(wanted) <= maxInstances(before) &&
    isDeepStrictEqual(targetsOf(wanted), targetsOf(before))
  );
}

export const updateAutoscaling = defineProjectRoute({
  operationId: "updateProjectAutoscaling",
  method: "PATCH",
  path: "/v1/project/:id/autoscaling",
  summary: "Change how many instances run, and by what they are scaled",
  description:
    "Of HTTP projects and workers. autoscaling is replaced as a whole; what is absent from the body stays. No deployment begins: instances are " +
    "added and removed in the background.",
  tags: ["Settings"],
  body: patchAutoscalingBody,
  responses: { 200: { description: "Changed.", schema: messageOnly } },
  refusals: [402, 409, 503],
  handler: async ({ project, body }, services) => {
    requireTypeWith(project, "autoscaling");
    await changeWithQuota(project, services, (spec) => withAutoscaling(spec, body), {
      prepare: async ({ spec: wanted }, { spec: before }) => {
        checkAutoscaling(wanted, before, services);
        if (maxInstances(wanted) > maxInstances(before)) {
          await refuseStart(services, project.organizationId);
        }
      },
    });
    return { status: 200, body: { status: "success", message: "autoscaling updated" } };
  },
});
