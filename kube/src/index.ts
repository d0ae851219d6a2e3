/** What a process needs to speak to Kubernetes: kubeconfig, REST client, reflector, store. Knows nothing of Slipway. */
export type { Annotate } from "./annotate.ts";
export { Backoff, type BackoffOptions, backoffDelay } from "./backoff.ts";
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
} from "./client.ts";
export { type Clock, type Random, sleep, systemClock, type Timer } from "./clock.ts";
export { ConcurrencyLimiter, type ConcurrencyLimits, type Release } from "./concurrency-limiter.ts";
export { type LoadKubeConfigOptions, loadKubeConfig } from "./config.ts";
export type { CredentialSource, Credentials } from "./credentials.ts";
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
} from "./errors.ts";
export type { ExecResult } from "./exec.ts";
export { byControllerUid, byLabel, byNamespace, type Indexer } from "./index-table.ts";
export { createKubeMetrics, type KubeMetrics, registerFiles } from "./metrics.ts";
export { MountedFile } from "./mounted-file.ts";
export { NamespaceReflectors, namesOf, type WatchedNamespaces } from "./namespace-reflectors.ts";
export { isUnbound, onceBound } from "./once-bound.ts";
export { type Check, type OpsServerOptions, startOpsServer } from "./ops-server.ts";
export { Reflector, type ReflectorEvents, type ReflectorOptions, type RelistReason } from "./reflector.ts";
export { compareResourceVersions } from "./resource-version.ts";
export { customResource, isOfResource, resources } from "./resources.ts";
export { dropManagedFields, eventRef, Store, type StoreEvent, type StoreOptions } from "./store.ts";
export { type HttpRequest, type RequestObservation, Transport, type TransportOptions } from "./transport.ts";
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
} from "./types.ts";
