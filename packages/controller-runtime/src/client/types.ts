/** The shapes that every Kubernetes object shares. Fields follow the API's own names. */

/** `metadata.ownerReferences[]`. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** `metadata` of any object. What the server sets is optional, since a desired object lacks it. */
export interface ObjectMeta {
  name?: string;
  generateName?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
  managedFields?: unknown[];
}

/**
 * `metadata` as any typing of Kubernetes may have it: client-node types the two timestamps as `Date`, although on the
 * wire, and so in everything read here, they are RFC 3339 strings.
 */
export type AnyMeta = Omit<ObjectMeta, "creationTimestamp" | "deletionTimestamp"> & {
  creationTimestamp?: unknown;
  deletionTimestamp?: unknown;
};

/**
 * Any Kubernetes object. Narrow it with an interface of your own (`metadata: ObjectMeta`), or use client-node's
 * `V1Deployment` and the like: both fit.
 */
export interface KubernetesObject {
  apiVersion?: string;
  kind?: string;
  metadata?: AnyMeta;
}

/** A list as the API answers it. */
export interface KubernetesList<T> {
  apiVersion?: string;
  kind?: string;
  metadata: { resourceVersion?: string; continue?: string; remainingItemCount?: number };
  items: T[];
}

/** Where a kind of object is served. `group` is empty for the core group. */
export interface Resource {
  readonly group: string;
  readonly version: string;
  /** Lower-case plural of the URL, such as `deployments`. */
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/** Names one object. `namespace` is absent for cluster-scoped ones. */
export interface ObjectRef {
  readonly namespace?: string;
  readonly name: string;
}

/** One condition of `status.conditions`. */
export interface Condition {
  type: string;
  status: "True" | "False" | "Unknown";
  reason: string;
  message: string;
  lastTransitionTime: string;
  observedGeneration?: number;
}

/** `metav1.Status`, the body of every failed request. */
export interface StatusBody {
  kind?: string;
  status?: string;
  message?: string;
  reason?: string;
  code?: number;
  details?: {
    name?: string;
    group?: string;
    kind?: string;
    uid?: string;
    causes?: { reason?: string; message?: string; field?: string }[];
    retryAfterSeconds?: number;
  };
}

/** `group/version`, or `version` alone for the core group. */
export function apiVersionOf(resource: Resource): string {
  return resource.group === "" ? resource.version : `${resource.group}/${resource.version}`;
}

/** `namespace/name`, or `name` for a cluster-scoped object: the key of stores and work queues. */
export function keyOf(object: KubernetesObject): string {
  return refKey({ namespace: object.metadata?.namespace, name: object.metadata?.name ?? "" });
}

/** The key of a reference; see {@link keyOf}. */
export function refKey(ref: ObjectRef): string {
  return ref.namespace ? `${ref.namespace}/${ref.name}` : ref.name;
}

/** The inverse of {@link refKey}. */
export function parseKey(key: string): ObjectRef {
  const slash = key.indexOf("/");
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/** The reference of an object. @throws TypeError when it has no name. */
export function refOf(object: KubernetesObject): ObjectRef {
  const name = object.metadata?.name;
  if (!name) {
    throw new TypeError(`${object.kind ?? "object"} has no metadata.name`);
  }
  const namespace = object.metadata?.namespace;
  return namespace ? { namespace, name } : { name };
}
