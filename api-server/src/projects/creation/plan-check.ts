import type { HttpPlan, Project, ProjectPlan, ProjectSpec } from "@slipway/crds";
import { failures } from "../../errors/catalog.ts";
import type { Failure, FieldError } from "../../errors/failure.ts";

/** Ranges that admit everybody: all that a plan without network access may list. */
const OPEN = new Set(["0.0.0.0/0", "::/0"]);

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
  if (!capabilities.network_access && restrictsAccess(spec)) {
    return failures.networkAccessNotAvailable(plan.plan);
  }
  if (spec.subdomain !== undefined && !capabilities.custom_subdomain) {
    return failures.customSubdomainNotAvailable(plan.plan);
  }
  return undefined;
}

function restrictsAccess({ networkAccess }: ProjectSpec): boolean {
  if (networkAccess === undefined) return false;
  const admitsAll = networkAccess.ingressWhiteList.some(({ cidr }) => OPEN.has(cidr));
  return !admitsAll || (networkAccess.ingressBlackList ?? []).length > 0;
}

/**
 * The countable limit of a plan: 409 when the organization has no slot left for what is wanted, else undefined.
 * Counts what is in memory; the caller keeps two creations of one organization apart.
 */
export function limitFailure(
  existing: readonly Project[],
  wanted: ProjectSpec,
  plan: ProjectPlan,
  findPlan: (id: string) => ProjectPlan | undefined,
): Failure | undefined {
  const { limit } = plan;
  if (limit === undefined) return undefined;
  const slots = (spec: ProjectSpec): number => (limit.counts === "instances" ? (spec.instances ?? 1) : 1);
  const used = existing
    .filter((project) => project.metadata.deletionTimestamp === undefined)
    .filter((project) => findPlan(project.spec.plan)?.limit?.scope === limit.scope)
    .reduce((sum, project) => sum + slots(project.spec), 0);
  const remaining = Math.max(0, limit.max - used);
  if (slots(wanted) <= remaining) return undefined;
  if (remaining === 0 || limit.exceededCode === undefined) {
    return failures.planLimitReached(limit.code, limit.max, limit.counts);
  }
  return failures.planLimitExceeded(limit.exceededCode, limit.max, remaining, limit.counts);
}
