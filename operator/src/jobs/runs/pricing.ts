/** The plan and price of a run. Pure. */

import { annotations, type Catalog, type JobRun, type Project } from "@slipway/crds";
import type { Job } from "./cluster.ts";
import { admissionTime } from "./run.ts";
import type { Pricing } from "./status.ts";

type Plans = Pick<Catalog, "jobPlans">;

/** The price of a plan's minute, while the catalog has it. */
export function priceOf({ jobPlans }: Plans, plan: string | undefined): string | undefined {
  return jobPlans.find((one) => one.plan === plan)?.pricePerMinute;
}

/** Pricing of a run that begins now: that of the plan that its Job is sized for. */
export function currentPricing(
  job: Job | undefined,
  project: Project | undefined,
  catalog: Plans,
): Pricing | undefined {
  for (const plan of [job?.metadata.annotations?.[annotations.plan], project?.spec.plan]) {
    const pricePerMinute = priceOf(catalog, plan);
    if (plan !== undefined && pricePerMinute !== undefined) {
      return { plan, pricePerMinute };
    }
  }
  return undefined;
}

/** Pricing that a run was admitted with: from its status, or its Job; otherwise the current one. */
export function pricingOfRun(
  run: JobRun,
  job: Job | undefined,
  project: Project | undefined,
  catalog: Plans,
): Pricing | undefined {
  const admittedAt = admissionTime(run, job);
  const at = admittedAt ? { admittedAt } : {};
  const { plan, pricePerMinute } = run.status ?? {};
  if (plan !== undefined && pricePerMinute !== undefined) {
    return { plan, pricePerMinute, ...at };
  }
  const marks = job?.metadata.annotations ?? {};
  const [jobPlan, jobPrice] = [marks[annotations.plan], marks[annotations.pricePerMinute]];
  if (jobPrice !== undefined) {
    return { plan: jobPlan ?? project?.spec.plan ?? "unknown", pricePerMinute: jobPrice, ...at };
  }
  const now = currentPricing(job, project, catalog);
  return now && { ...now, ...at };
}
