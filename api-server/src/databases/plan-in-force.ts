import type { Project, ProjectSpec } from "@slipway/crds";

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
export function planChangeOf(project: Project, askedAt: string): PlanChangeView | undefined {
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
  // The same before the operator has taken it up, and after.
  const startedAt = spec.planRequestedAt ?? reported?.startedAt ?? askedAt;
  return { status: "in_progress", to_plan: spec.plan, started_at: startedAt };
}

/** Whether the operator reports the request that is in the spec now. */
function isAbout(
  { plan, planRequestedAt }: ProjectSpec,
  reported: NonNullable<Project["status"]>["planChange"],
): boolean {
  return reported !== undefined && reported.toPlan === plan && reported.requestedAt === planRequestedAt;
}
