import { type HttpPlan, isOpenAccess, type ProjectSpec } from "@slipway/crds";
import { failures } from "../../errors/catalog.ts";
import type { Failure, FieldError } from "../../errors/failure.ts";

/** What the plan's own numbers refuse in the body: 400. The plan is known and fits the type. */
export function planErrors(spec: ProjectSpec, plan: HttpPlan): FieldError[] {
  const errors: FieldError[] = [];
  const most = spec.autoscaling?.enabled ? spec.autoscaling.maxInstances : (spec.instances ?? 1);
  // What shares a countable limit is refused by that limit, which can say how much is left.
  if (plan.limit === undefined && most > plan.maxInstances) {
    const field = spec.autoscaling?.enabled ? "config.autoscaling.max_instances" : "config.instances";
    errors.push({ field, message: `plan ${plan.plan} allows at most ${plan.maxInstances} instances` });
  }
  return errors;
}

/** What the plan lacks: the first 403, or undefined. */
export function capabilityFailure(spec: ProjectSpec, plan: HttpPlan): Failure | undefined {
  const { capabilities } = plan;
  if (spec.healthcheck?.enabled && !capabilities.healthcheck) {
    return failures.healthcheckNotAvailable(plan.plan);
  }
  if (spec.autoscaling?.enabled && !capabilities.autoscaling) {
    return failures.autoscalingNotAvailable(plan.plan);
  }
  if (!capabilities.network_access && !isOpenAccess(spec.networkAccess)) {
    return failures.networkAccessNotAvailable(plan.plan);
  }
  if (spec.subdomain !== undefined && !capabilities.custom_subdomain) {
    return failures.customSubdomainNotAvailable(plan.plan);
  }
  return undefined;
}
