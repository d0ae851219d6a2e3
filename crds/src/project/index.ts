import type { Resource } from "../metadata.ts";
import type { ProjectSpec } from "./spec.ts";
import type { ProjectStatus } from "./status.ts";

export {
  ALERT_FOR_SECONDS,
  ALERTS_MAX,
  type AlertMetric,
  type AlertRule,
  alertForSeconds,
  alertMetrics,
  isMeasured,
  type MeasuredAlertMetric,
  measuredAlertMetrics,
  typesOfAlertMetric,
} from "./alerts.ts";
export { BILLABLE_CHANGES_LISTED, type BillableStatusChange } from "./billing-status.ts";
export * from "./conditions.ts";
export { type DatabaseStatus, databaseStatus } from "./database-status.ts";
export { specOfRecreated, statusOfRecreated, withGenerations } from "./history.ts";
export { LAST_LINES_MAX_LENGTH, type LastTermination } from "./last-termination.ts";
export * from "./parts.ts";
export { isFreePlan, planPrefix } from "./plan-rules.ts";
export {
  PRE_DEPLOY_LOG_MAX_BYTES,
  type PreDeployRun,
  preDeployPhases,
  preDeployRun,
} from "./pre-deploy.ts";
export { type ProjectSpec, projectRules, projectSpec, projectTransitions } from "./spec.ts";
export { projectSpecFields } from "./spec-fields.ts";
export {
  type CustomDomainStatus,
  DEPLOYMENTS_KEPT,
  type Deployment,
  type DeploymentSettings,
  deploymentSettings,
  type ProjectPhase,
  type ProjectStatus,
  projectPhases,
  projectStatus,
  type Sleep,
  sleepPhases,
} from "./status.ts";
export * from "./types.ts";

/** A Project in the cluster; its `metadata.name` is the project's id. */
export type Project = Resource<"Project", ProjectSpec, ProjectStatus>;
