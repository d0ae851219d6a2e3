/** Whether a scheduled job can be carried out. Pure. */

import type { Catalog, JobPlan, Project } from "@slipway/crds";
import { planOfImage, refuse } from "../projects/accept.ts";

/** @throws TerminalError about the condition `Accepted` */
export function acceptJob(project: Project, catalog: Catalog): JobPlan {
  if (!catalog.jobsEnabled) {
    throw refuse("FeatureNotSupported", "Scheduled jobs are disabled on this platform.");
  }
  if (!project.spec.job) {
    throw refuse("FeatureNotSupported", "A job needs a schedule.");
  }
  return planOfImage(project, catalog, { plans: catalog.jobPlans, type: "jobs" });
}
