/** What a process needs to speak to Kubernetes: kubeconfig, REST client, reflector, store. Knows nothing of Slipway. */

export { Backoff, type BackoffOptions, backoffDelay } from "./cache/backoff.ts";
export { byControllerUid, byLabel, byNamespace, type Indexer } from "./cache/index-table.ts";
export { NamespaceReflectors, namesOf, type WatchedNamespaces } from "./cache/namespace-reflectors.ts";
export {
  Reflector,
  type ReflectorEvents,
  type ReflectorOptions,
  type RelistReason,
} from "./cache/reflector.ts";
export { compareResourceVersions } from "./cache/resource-version.ts";
export { dropManagedFields, eventRef, Store, type StoreEvent, type StoreOptions } from "./cache/store.ts";
export type { Annotate } from "./client/annotate.ts";
export {
  type ApplyOptions,
  type CallOptions,
  type DeleteOptions,
  type FollowLogOptions,
  KubeClient,
  type KubeClientOptions,
  type ListOptions,
  type PatchType,
  type PodExecOptions,
  type PodLogOptions,
  type ReadOptions,
  type WatchOptions,
  type WriteOptions,
  withType,
} from "./client/client.ts";
export { type LoadKubeConfigOptions, loadKubeConfig } from "./client/config.ts";
export type { CredentialSource, Credentials } from "./client/credentials.ts";
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
  KubeError,
} from "./client/errors.ts";
export type { ExecResult } from "./client/exec.ts";
export { createKubeMetrics, type KubeMetrics, registerFiles } from "./client/metrics.ts";
export { isUnbound, onceBound } from "./client/once-bound.ts";
export { customResource, isOfResource, resources } from "./client/resources.ts";
export {
  type HttpRequest,
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
export { type Clock, type Random, sleep, systemClock, type Timer } from "./clock.ts";
export { ConcurrencyLimiter, type ConcurrencyLimits, type Release } from "./concurrency-limiter.ts";
export { MountedFile } from "./mounted-file.ts";
export { type Check, type OpsServerOptions, startOpsServer } from "./ops-server.ts";
