import type { Catalog, Project } from "@slipway/crds";

/** Whether the plan of an HTTP project has metrics. Pure. */
export function hasMetrics({ spec }: Project, catalog: Catalog): boolean {
  const plan = catalog.httpPlans.find((one) => one.plan === spec.plan);
  return plan?.capabilities.metrics === true;
}
