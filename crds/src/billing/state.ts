/** What is billed of a project as it is: docs/billing.md#what-is-recorded. */

import { type Catalog, findPlan } from "../catalog.ts";
import type { BillableStatusChange } from "../project/billing-status.ts";
import type { ProjectSpec } from "../project/spec.ts";
import type { BillableState } from "./history.ts";

/**
 * What is billed of a project, with the spec that is in force.
 * @param instances that exist under it; those of the spec unless given
 * @param before what was billed until now, if the project is not new
 * @param volumeGb size of its volume, also where the spec does not request it any more
 * @returns undefined where the plan is not charged by its history: of jobs, and of plans that the catalog does not have
 */
export function billableState(
  catalog: Catalog,
  spec: ProjectSpec,
  {
    instances = spec.instances ?? 1,
    before,
    volumeGb = before?.billedGb ?? 0,
  }: {
    instances?: number | undefined;
    before?: BillableState | undefined;
    volumeGb?: number | undefined;
  } = {},
): BillableState | undefined {
  const plan = findPlan(catalog, spec.plan);
  const { paymentMode, paused = false } = spec;
  if (plan === undefined || spec.type === "job" || paymentMode === "per_minute") {
    return undefined;
  }
  const offer =
    "engines" in plan && spec.type in plan.engines
      ? plan.engines[spec.type as keyof typeof plan.engines]
      : undefined;
  const { capacity = 0, persistent = false } = spec.storage ?? {};
  const storedGb = (): number => {
    if (plan.free) {
      return 0;
    }
    if (offer === undefined) {
      return persistent ? capacity : volumeGb;
    }
    const volumes = { per_instance_gb: spec.instances ?? 1, per_project_gb: 1, none: 0 };
    return Math.max(0, capacity - offer.storage.included) * volumes[offer.billing.storage];
  };
  return {
    plan: spec.plan,
    paymentMode,
    renews: true,
    instances: offer?.billing.instances === "per_project" ? Math.min(1, instances) : instances,
    paused,
    billedGb: storedGb(),
  };
}

/** What a project has from a change of its status on, which is not its deletion. */
export function statusState(change: Omit<BillableStatusChange, "number" | "at" | "deleted">): BillableState {
  const { plan = "", paymentMode = "hourly", renews = true, instances = 0, paused = false } = change;
  return { plan, paymentMode, renews, instances, paused, billedGb: change.billedGb ?? 0 };
}
