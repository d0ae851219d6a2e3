/** The controller runtime: what turns a reconciler into a controller process. Knows nothing of projects. */
export {
  Applier,
  type ApplierOptions,
  type ApplyContext,
  type ApplyResult,
  type ChildKind,
} from "./applier.ts";
export { ClockGuard, type ClockReference } from "./clock-guard.ts";
export { ConditionSet } from "./condition-set.ts";
export {
  type ConditionCatalog,
  type ConditionUpdate,
  findCondition,
  isConditionTrue,
  removeCondition,
  setCondition,
  timestamp,
} from "./conditions.ts";
export { Controller, type ControllerOptions, type ReconcileContext, type Reconciler } from "./controller.ts";
export { APPLIED_BY, APPLIED_HASH, type Owner, type OwnerLabel } from "./desired-object.ts";
export { RetryableError, TerminalError, WaitingError } from "./errors.ts";
export { ApiEventRecorder, type EventInput, type EventRecorder, microTime } from "./events.ts";
export { ensureFinalizer, type FinalizerOptions, hasFinalizer, removeFinalizer } from "./finalizers.ts";
export { canonicalJson, equalJson, hashJson } from "./json.ts";
export { LeaderElector, type LeaderElectorOptions } from "./leader-elector.ts";
export { type Logger, silentLogger } from "./logger.ts";
export { Manager, type ManagerOptions, type Runnable, type StoreRequest } from "./manager.ts";
export { createRuntimeMetrics, type RuntimeMetrics } from "./metrics.ts";
export { type ObjectContext, type ObjectReconcilerOptions, objectReconciler } from "./object-reconciler.ts";
export { type Outcome, outcomeOfError, type Result } from "./outcome.ts";
export { controllerOf, controllerReference } from "./owner.ts";
export { equalQuantities, parseQuantity } from "./quantity.ts";
export type { RuntimeReason } from "./reasons.ts";
export { retriedIn } from "./retried-in.ts";
export {
  customSource,
  ignoreStatusUpdates,
  type Predicate,
  type Source,
  watchLabelled,
  watchMapped,
  watchObjects,
  watchOwned,
} from "./sources.ts";
export { type ObjectStatus, type StatusObject, writeStatus } from "./status.ts";
export { type BucketOptions, TokenBucket } from "./token-bucket.ts";
export { type TracedObjects, tracedIn } from "./traced-changes.ts";
export { untilAborted } from "./until-aborted.ts";
export { WorkQueue, type WorkQueueOptions } from "./work-queue.ts";
