import type { ProjectPlan, ProjectSpec } from "@slipway/crds";
import type { SlotRequest } from "./quota-reservations.ts";

/**
 * What an active project asks for, from its spec and its plan of the catalog; a plan that the catalog does not have
 * limits nothing. Pure: the API and the operator ask for the same.
 */
export function slotRequest(
  identity: { organizationId: string; projectId: string },
  spec: ProjectSpec,
  plan: ProjectPlan | undefined,
): SlotRequest {
  const { organizationId, projectId } = identity;
  const request = { organizationId, projectId, plan: spec.plan, slots: 1 };
  const limit = plan?.limit;
  if (!limit) {
    return request;
  }
  const slots = limit.counts === "instances" ? mostInstances(spec) : 1;
  return { ...request, slots, limit: { scope: limit.scope, max: limit.max } };
}

/** Instances that a project may come to have without asking again. */
function mostInstances({ autoscaling, instances = 1 }: ProjectSpec): number {
  return autoscaling?.enabled ? Math.max(instances, autoscaling.maxInstances) : instances;
}
