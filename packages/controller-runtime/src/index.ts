/**
 * What turns a reconciler into a controller process, without any dependency on Slipway's resources. `client/` sends requests to
 * the apiserver, `cache/` keeps watched objects, and `controller/` has work queue and reconciles. `apply/` writes child objects,
 * `status/` conditions and events, and `manager/` runs it all under leader election.
 */

export { Applier } from "./apply/applier.ts";
export type { Owner, OwnerLabel } from "./apply/desired-object.ts";
export { controllerOf, controllerReference } from "./apply/desired-object.ts";
export { ensureFinalizer, type FinalizerOptions, hasFinalizer, removeFinalizer } from "./apply/finalizers.ts";
export { canonicalJson, equalJson, hashJson, mergePatch } from "./apply/json.ts";
export type { ApplierOptions, ApplyContext, ApplyResult, ChildKind } from "./apply/options.ts";
export { equalQuantities, parseQuantity } from "./apply/quantity.ts";
export { recreatedService } from "./apply/recreated.ts";
export { byControllerUid, byLabel, byNamespace, type Indexer } from "./cache/index-table.ts";
export { NamespaceReflectors, namesOf, type WatchedNamespaces } from "./cache/namespace-reflectors.ts";
export {
  Reflector,
  type ReflectorEvents,
  type ReflectorOptions,
  type RelistReason,
} from "./cache/reflector.ts";
export { dropManagedFields, Store, type StoreOptions } from "./cache/store.ts";
export { eventRef, type StoreEvent } from "./cache/store-event.ts";
export { compareResourceVersions } from "./cache/version-waiters.ts";
export { KubeClient, type KubeClientOptions } from "./client/client.ts";
export { type ClusterConfig, loadClusterConfig } from "./client/cluster-config.ts";
export { type CredentialSource, type Credentials, clusterCredentials } from "./client/credentials.ts";
export { deleteSeen } from "./client/delete-seen.ts";
export {
  isAlreadyExists,
  isConflict,
  isForbidden,
  isGone,
  isInvalid,
  isNamespaceTerminating,
  isNetworkError,
  isNotFound,
  isQuotaExceeded,
  isTooManyRequests,
  isTransient,
  isUnbound,
  KubeError,
  onceBound,
} from "./client/errors.ts";
export type { ExecResult } from "./client/exec.ts";
export {
  EXEC_PROTOCOL,
  EXEC_SOCKET_OPTIONS,
  type ExecSocket,
  execChannels,
  exitCodeOf,
} from "./client/exec-connection.ts";
export type { HttpRequest } from "./client/http-request.ts";
export { createKubeMetrics, type KubeMetrics } from "./client/metrics.ts";
export type {
  ApplyOptions,
  CallOptions,
  DeleteOptions,
  ListOptions,
  PatchType,
  PodExecOptions,
  PodExecStreamOptions,
  PodLogOptions,
  PodLogStreamOptions,
  ReadOptions,
  WatchOptions,
  WriteOptions,
} from "./client/options.ts";
export type { Annotate } from "./client/requests.ts";
export { withType } from "./client/requests.ts";
export { customResource, isOfResource, resources } from "./client/resources.ts";
export { traceRequests } from "./client/traced-requests.ts";
export {
  type RequestObservation,
  Transport,
  type TransportOptions,
} from "./client/transport.ts";
export {
  type AnyMeta,
  apiVersionOf,
  type Condition,
  type KubernetesList,
  type KubernetesObject,
  keyOf,
  type ObjectMeta,
  type ObjectRef,
  type OwnerReference,
  parseKey,
  type Resource,
  refKey,
  refOf,
  type StatusBody,
} from "./client/types.ts";
export {
  Controller,
  type ControllerOptions,
  type ReconcileContext,
  type Reconciler,
} from "./controller/controller.ts";
export {
  RetryableError,
  type RuntimeReason,
  retriedIn,
  TerminalError,
  WaitingError,
} from "./controller/errors.ts";
export {
  type ObjectContext,
  type ObjectReconcilerOptions,
  objectReconciler,
} from "./controller/object-reconciler.ts";
export { type Outcome, outcomeOfError, type Result } from "./controller/outcome.ts";
export {
  Backoff,
  type BackoffOptions,
  type BucketOptions,
  backoffDelay,
  TokenBucket,
} from "./controller/rate-limiters.ts";
export {
  customSource,
  ignoreStatusUpdates,
  type Predicate,
  type Source,
  watchLabelled,
  watchMapped,
  watchObjects,
  watchOwned,
} from "./controller/sources.ts";
export { type TracedObjects, tracedIn } from "./controller/traced-changes.ts";
export { WorkQueue, type WorkQueueOptions } from "./controller/work-queue.ts";
export {
  type KubeletAddress,
  type KubeletOptions,
  Kubelets,
  type KubeletTrust,
  kubeletTrust,
  type TokenSource,
} from "./kubelet/kubelets.ts";
export { type PodReading, podReadingsOf, type Reading, readingsOf, type Summary } from "./kubelet/summary.ts";
export { ClockGuard, type ClockReference } from "./manager/clock-guard.ts";
export { LeaderElector, type LeaderElectorOptions } from "./manager/leader-elector.ts";
export { untilAborted } from "./manager/leadership.ts";
export { Manager } from "./manager/manager.ts";
export type { ManagerOptions, Runnable, StoreRequest } from "./manager/options.ts";
export { createRuntimeMetrics, type RuntimeMetrics } from "./manager/runtime-metrics.ts";
export type { ShardLease } from "./manager/shard-rivals.ts";
export { type IsOwnKey, MAX_SHARDS, type Shard, shardLeaseNames, shardOf } from "./manager/shards.ts";
export {
  type ConditionCatalog,
  ConditionSet,
  type ConditionUpdate,
  findCondition,
  isConditionTrue,
  removeCondition,
  setCondition,
  timestamp,
} from "./status/conditions.ts";
export { ApiEventRecorder, type EventInput, type EventRecorder, microTime } from "./status/events.ts";
export { isInTerminalPhase } from "./status/pod-phase.ts";
export { type ObjectStatus, type StatusObject, writeStatus } from "./status/status.ts";
