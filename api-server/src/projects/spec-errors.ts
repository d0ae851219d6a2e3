import type { KubeError } from "@slipway/controller-runtime";
import { type HttpPlan, isOpenAccess, type ProjectSpec } from "@slipway/crds";
import { maxInstances } from "@slipway/ledger";
import { failures } from "../errors/catalog.ts";
import type { Failure, FieldError } from "../errors/failure.ts";
import { projectResource } from "../resources.ts";

/** What a spec is refused for by a rule of the apiserver, or by its plan, as failures about the fields that the client sent. */

/** The prefix that an apiserver puts before the message of a rule. */
const SHOWN_VALUE = /^(?:Invalid|Unsupported|Duplicate) value: (?:"(?:[^"\\]|\\.)*"|\S+): /;

/**
 * What the apiserver refused of a project by a rule that only it has, such as an admission policy's. Undefined when it
 * refused another object, such as a Secret: that is nothing that the client wrote. Pure.
 * @param fieldOf what the operation's body calls a path of the spec
 */
export function refusedByRule(
  { body }: KubeError,
  fieldOf: (path: readonly PropertyKey[]) => string,
): Failure | undefined {
  const { group, causes = [] } = body?.details ?? {};
  if (group !== projectResource.group || causes.length === 0) {
    return undefined;
  }
  const errors = causes.map(({ field = "", message = "is not valid" }) => ({
    field: fieldOf(pathOf(field)),
    message: message.replace(SHOWN_VALUE, ""),
  }));
  return failures.validation(errors, new Error(body?.message));
}

/** `spec.customDomains[0]` as a path below the spec. */
const pathOf = (field: string): PropertyKey[] =>
  field
    .replace(/^spec(?=\.|\[|$)/, "")
    .split(/[.[\]]+/)
    .filter((part) => part !== "")
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));

/** What the plan's own numbers refuse in the body: 400. The plan is known and fits the type. */
export function planErrors(spec: ProjectSpec, plan: HttpPlan): FieldError[] {
  const errors: FieldError[] = [];
  // What shares a countable limit is refused by that limit, which can say how much is left.
  if (plan.limit === undefined && maxInstances(spec) > plan.maxInstances) {
    const field = spec.autoscaling?.enabled ? "config.autoscaling.max_instances" : "config.instances";
    errors.push({ field, message: `plan ${plan.plan} allows at most ${plan.maxInstances} instances` });
  }
  return errors;
}

/** Refuses a time after which a project sleeps where its plan has none. A change of the plan keeps it: it has no effect there. */
export function sleepFailure({ sleepAfterSeconds }: ProjectSpec, plan: HttpPlan): Failure | undefined {
  const isRefused = sleepAfterSeconds !== undefined && plan.sleepAfterSeconds === undefined;
  return isRefused ? failures.sleepNotAvailable(plan.plan) : undefined;
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

/** Creation has the settings of a project below `config`; operations that change one setting do not. */
export const inBody = (error: FieldError): FieldError => ({
  ...error,
  field: error.field.replace(/^config\./, ""),
});

/** @throws Failure 503 for a target of requests where the platform counts none */
export function requireCountedRequests({ autoscaling }: ProjectSpec, scalesByRequests: boolean): void {
  if (autoscaling?.requestsPerSecondTarget !== undefined && !scalesByRequests) {
    throw failures.projectFeatureUnavailable("scaling by requests");
  }
}
