import {
  type Catalog,
  type DatabasePlan,
  isDatabaseType,
  type Project,
  type ProjectSpec,
} from "@slipway/crds";
import type { FieldError } from "../errors/failure.ts";

/** Plans of databases: what a plan offers, and which plan is in force while it changes. */

interface Range {
  min: number;
  max: number;
}

/** What a plan of databases does not offer of the requested: 400. Fields are those of a creation. Pure. */
export function offerErrors(spec: ProjectSpec, plan: DatabasePlan, { engines }: Catalog): FieldError[] {
  const { type, version = "", instances, storage, paymentMode } = spec;
  if (!isDatabaseType(type)) {
    return [];
  }
  const offer = plan.engines[type];
  if (!offer) {
    return [{ field: "plan", message: `plan ${plan.plan} has no ${type}` }];
  }
  const errors: FieldError[] = [];
  const modes = engines.find(({ id }) => id === type)?.paymentModes;
  if (modes && !(modes as readonly string[]).includes(paymentMode)) {
    const message = `${type} is paid ${modes.join(", ")}`;
    errors.push({ field: "payment_mode", message, code: "PAYMENT_MODE_INVALID" });
  }
  if (!offer.versions.includes(version)) {
    const message = `plan ${plan.plan} has ${type} ${offer.versions.join(", ")}`;
    errors.push({ field: "config.version", message });
  }
  if (instances !== undefined && isOutside(instances, offer.instances)) {
    const message = `plan ${plan.plan} has ${rangeText(offer.instances)} instances`;
    errors.push({ field: "config.instances", message });
  }
  if (storage && isOutside(storage.capacity, offer.storage)) {
    const message = `plan ${plan.plan} has ${rangeText(offer.storage)} GB of storage`;
    errors.push({ field: "config.storage.capacity", message });
  }
  return errors;
}

const isOutside = (value: number, { min, max }: Range): boolean => value < min || value > max;
const rangeText = ({ min, max }: Range): string => (min === max ? `exactly ${min}` : `${min} to ${max}`);

/**
 * The plan of a ClickHouse project changes in the background, one instance after the other, and may fail: until it is
 * done the plan before it is in force. The spec is the request, `status.plan` is what is in force. Pure.
 */

/** The plan that a project is on. */
export function planInForce({ spec, status }: Project): string {
  return spec.type === "clickhouse" ? (status?.plan ?? spec.plan) : spec.plan;
}

/** `plan_change` as `/v1` shows it. */
export type PlanChangeView =
  | { status: "in_progress"; to_plan: string; started_at: string }
  | { status: "failed"; from_plan: string; to_plan: string; finished_at: string };

/**
 * A plan change that runs, or the last one, if it failed.
 * @param askedAt when the spec was last changed, for one that the operator has not observed yet
 */
export function planChangeOf(project: Project, changedAt: string): PlanChangeView | undefined {
  const { spec, status } = project;
  if (spec.type !== "clickhouse") {
    return undefined;
  }
  const reported = isAbout(spec, status?.planChange) ? status?.planChange : undefined;
  const before = planInForce(project);
  if (reported?.status === "failed") {
    return {
      status: "failed",
      from_plan: reported.fromPlan ?? before,
      to_plan: reported.toPlan,
      finished_at: reported.finishedAt ?? reported.startedAt,
    };
  }
  if (before === spec.plan) {
    return undefined;
  }
  // The same before the operator has observed it, and after.
  const startedAt = spec.planRequestedAt ?? reported?.startedAt ?? changedAt;
  return { status: "in_progress", to_plan: spec.plan, started_at: startedAt };
}

/** Whether the operator reports the request that is in the spec now. */
function isAbout(
  { plan, planRequestedAt }: ProjectSpec,
  reported: NonNullable<Project["status"]>["planChange"],
): boolean {
  return reported !== undefined && reported.toPlan === plan && reported.requestedAt === planRequestedAt;
}
