import type { ProjectPlan, ProjectSpec } from "@slipway/crds";
import type { QuotaRequest } from "./quota-reservations.ts";

/**
 * The quota that an active project needs, from its spec and its plan of the catalog; a plan that the catalog lacks limits
 * nothing. Pure: the API and the operator request the same.
 */
export function quotaRequest(
  identity: { organizationId: string; projectId: string },
  spec: ProjectSpec,
  plan: ProjectPlan | undefined,
): QuotaRequest {
  const { organizationId, projectId } = identity;
  const request = { organizationId, projectId, plan: spec.plan, amount: 1 };
  const limit = plan?.limit;
  if (!limit) {
    return request;
  }
  const amount = limit.counts === "instances" ? maxInstances(spec) : 1;
  return { ...request, amount, limit: { scope: limit.scope, max: limit.max } };
}

/** Instances that a project may have without another request. Pure. */
export function maxInstances({ autoscaling, instances = 1 }: ProjectSpec): number {
  return autoscaling?.enabled ? Math.max(instances, autoscaling.maxInstances) : instances;
}
