/** Validation of an HTTP project. Pure. */

import { type Catalog, type HttpPlan, isOpenAccess, type Project } from "@slipway/crds";
import { planOfImage, refuse } from "../projects/accept.ts";
import type { AllowList } from "./access.ts";

/** @throws TerminalError about the condition `Accepted` */
export function acceptHttp(project: Project, catalog: Catalog, ingress: { allowList: AllowList }): HttpPlan {
  const { spec } = project;
  const plan = planOfImage(project, catalog, { plans: catalog.httpPlans, type: "HTTP projects" });
  checkFeatures(project, plan);
  if (ingress.allowList === "none" && spec.exposure === "public" && !isOpenAccess(spec.networkAccess)) {
    throw refuse("FeatureNotSupported", "The ingress of this platform enforces no access lists.");
  }
  return plan;
}

function checkFeatures({ spec }: Project, { plan, capabilities, maxInstances }: HttpPlan): void {
  const lacks = (what: string) => refuse("FeatureNotInPlan", `The plan ${plan} has no ${what}.`);
  if (spec.healthcheck?.enabled && !capabilities.healthcheck) {
    throw lacks("health check");
  }
  if (spec.autoscaling?.enabled && !capabilities.autoscaling) {
    throw lacks("autoscaling");
  }
  const most = Math.max(spec.instances ?? 1, spec.autoscaling?.enabled ? spec.autoscaling.maxInstances : 0);
  if (most > maxInstances) {
    throw refuse("FeatureNotInPlan", `The plan ${plan} has at most ${maxInstances} instances.`);
  }
  if (!isOpenAccess(spec.networkAccess) && !capabilities.network_access) {
    throw lacks("access lists");
  }
}
