/**
 * Schemas of the custom resources, of bodies of `/v1`, and of the catalog of plans, without I/O. `project/` has the Project,
 * `v1/` the bodies; the other files have one resource or rule each. The CRDs of the chart are generated from them.
 */

export * from "./backup.ts";
export * from "./billing/index.ts";
export * from "./billing.ts";
export * from "./build.ts";
export * from "./catalog.ts";
export { catalog, parseCatalog } from "./catalog-problems.ts";
export { isCidr } from "./cidr.ts";
export * from "./conditions.ts";
export { isCron, normalizeCron } from "./cron.ts";
export * from "./database.ts";
export * from "./deletedproject.ts";
export * from "./domainclaim.ts";
export * as fields from "./fields.ts";
export { normalizeContextPath } from "./fields.ts";
export { contendersOf, formerStatePatch, hasFormerState, withFormerState } from "./former-annotations.ts";
export * from "./gitconnection.ts";
export * from "./jobrun.ts";
export { type Kind, kinds, type PrinterColumn, resourceSchema } from "./kinds.ts";
export * from "./logdrain.ts";
export * from "./metadata.ts";
export * from "./names.ts";
export { isEverybody, isOpenAccess } from "./network-access.ts";
export * from "./platform-backups.ts";
export * from "./project/index.ts";
export * from "./references.ts";
export {
  BUILDS_PULL_SECRET,
  mintRegistryPassword,
  mintRegistryToken,
  organizationOfRegistryPassword,
  type RegistryAccess,
  type RegistryKey,
  registryIssuer,
  registryKeySet,
  registryService,
} from "./registry-token.ts";
export {
  type Rule,
  renderMessage,
  rule,
  type TransitionIssue,
  type TransitionRule,
  transitionIssues,
  withRules,
} from "./rule.ts";
export * from "./sleep.ts";
export * from "./snapshot.ts";
export { nextSourceRevision, recordedSource, sourceRevision } from "./source-revision.ts";
export * from "./v1/index.ts";
export * from "./variablegroup.ts";
