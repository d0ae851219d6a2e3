import {
  billableState,
  type Catalog,
  compareDecimal,
  findHttpPlan,
  findPlan,
  isInstanceType,
  type Project,
  type ProjectPlan,
  type ProjectSpec,
  type ProjectType,
  parseDecimal,
  patchPlanBody,
} from "@slipway/crds";
import { offerErrors, planChangeOf, planInForce } from "../databases/plan.ts";
import { failures } from "../errors/catalog.ts";
import type { FieldError } from "../errors/failure.ts";
import { fieldErrors } from "../http/validate.ts";
import { specErrors } from "./change.ts";
import { capabilityFailure, inBody, planErrors } from "./spec-errors.ts";

/** How `PATCH plan` words the fields of the spec. */
export const PLAN_FIELDS = { paymentMode: "payment_mode" };

export interface WantedPlan {
  plan: string;
  /** As it is, unless given. */
  paymentMode?: ProjectSpec["paymentMode"];
}

/**
 * The body of `PATCH plan`.
 * @throws Failure 400; an invalid payment mode has codes of its own
 */
export function parsePlanBody(body: unknown, type: ProjectType): WantedPlan {
  const parsed = patchPlanBody.safeParse(body);
  if (!parsed.success) {
    throw failures.validation(withCodes(fieldErrors(parsed.error, "body"), type));
  }
  const { plan, payment_mode: paymentMode } = parsed.data;
  return { plan, ...(paymentMode === undefined ? {} : { paymentMode }) };
}

/**
 * The spec on another plan.
 * @throws Failure 400 for a plan that is unknown, does not fit the type, or takes less than the project has; 403 for
 *   what the project uses and the plan lacks
 */
export function withPlan(spec: ProjectSpec, wanted: WantedPlan, catalog: Catalog): ProjectSpec {
  const changed: ProjectSpec = {
    ...spec,
    plan: wanted.plan,
    paymentMode: wanted.paymentMode ?? spec.paymentMode,
  };
  checkPlan(changed, spec, catalog);
  return changed;
}

/**
 * The spec of a ClickHouse project that requests another plan: the operator changes it in the background, and distinguishes one
 * request from another by its moment. A repeated request for a plan to which the change has failed is a new request.
 * @param now RFC 3339
 * @throws Failure 409 while a change runs, and what {@link withPlan} throws
 */
export function withRequestedPlan(
  live: Project,
  wanted: WantedPlan,
  catalog: Catalog,
  now: string,
): ProjectSpec {
  const { spec } = live;
  const changed = withPlan(spec, wanted, catalog);
  if (planChangeOf(live, now)?.status === "in_progress") {
    throw failures.planChangeInProgress();
  }
  const isRequest = changed.plan !== spec.plan || changed.plan !== planInForce(live);
  return isRequest ? { ...changed, planRequestedAt: now } : changed;
}

/**
 * Checks a spec against the plan that it names.
 * @throws Failure as {@link withPlan}
 */
export function checkPlan(spec: ProjectSpec, before: ProjectSpec, catalog: Catalog): void {
  const errors = specErrors(spec, before, PLAN_FIELDS);
  const unknown = findPlan(catalog, spec.plan) === undefined;
  if (unknown && !errors.some(({ field }) => field === "plan")) {
    errors.push({ field: "plan", message: `unknown plan ${spec.plan}`, code: "PLAN_UNKNOWN" });
  }
  const plan = isInstanceType(spec.type) ? findHttpPlan(catalog, spec.plan) : undefined;
  if (plan) {
    errors.push(...planErrors(spec, plan).map(inBody));
  }
  const databasePlan = catalog.databasePlans.find((one) => one.plan === spec.plan);
  if (databasePlan) {
    errors.push(...offerErrors(spec, databasePlan, catalog).map(inBody));
  }
  if (errors.length > 0) {
    throw failures.validation(withCodes(errors, spec.type));
  }
  const lacking = plan && capabilityFailure(spec, plan);
  if (lacking) {
    throw lacking;
  }
}

/** By how much is paid ahead. */
const PAYMENT_MODES: readonly ProjectSpec["paymentMode"][] = ["per_minute", "hourly", "monthly", "yearly"];

/**
 * Whether a project costs more by the catalog than it did, or is paid further ahead. By its plan a paused one costs nothing. Pure.
 * @param before its spec, with the plan that is in force
 */
export function costsMore(wanted: ProjectSpec, before: ProjectSpec, catalog: Catalog): boolean {
  if (wanted.paused === true) {
    return false;
  }
  if (PAYMENT_MODES.indexOf(wanted.paymentMode) > PAYMENT_MODES.indexOf(before.paymentMode)) {
    return true;
  }
  const [price, former] = [wanted, before].map(({ plan }) =>
    priceOf(findPlan(catalog, plan), wanted.paymentMode),
  );
  // What a plan cost that is no longer sold is not known.
  if (price === undefined || former === undefined || compareDecimal(price, former) > 0) {
    return true;
  }
  const [state, stateBefore] = [wanted, before].map((spec) => billableState(catalog, spec));
  return (
    state !== undefined &&
    stateBefore !== undefined &&
    (state.instances > stateBefore.instances || state.billedGb > stateBefore.billedGb)
  );
}

function priceOf(plan: ProjectPlan | undefined, paymentMode: ProjectSpec["paymentMode"]) {
  if (plan === undefined) {
    return undefined;
  }
  if ("pricePerMinute" in plan) {
    return parseDecimal(plan.pricePerMinute);
  }
  return paymentMode === "per_minute" ? undefined : parseDecimal(plan.prices[paymentMode]);
}

function withCodes(errors: readonly FieldError[], type: ProjectType): FieldError[] {
  const code = type === "job" ? "SCHEDULED_JOB_PAYMENT_MODE_INVALID" : "PAYMENT_MODE_INVALID";
  return errors.map((error) => (error.field === "payment_mode" ? { ...error, code } : error));
}
