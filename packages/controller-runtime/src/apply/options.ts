import type { Clock, Logger } from "@slipway/process";
import type { Store } from "../cache/store.ts";
import type { KubeClient } from "../client/client.ts";
import type { KubernetesObject, ObjectRef, Resource } from "../client/types.ts";
import type { RuntimeMetrics } from "../manager/runtime-metrics.ts";

/** A kind of child and the store that its reflector keeps. The store needs the index that `Owner.label.key` names. */
export interface ChildKind {
  resource: Resource;
  store: Store<KubernetesObject>;
  /**
   * For objects that others refer to, when a third process watches both and may see either first: milliseconds until it
   * has surely seen a change. After one is created, live objects are changed only that much later; one is pruned only
   * that much later than they were changed.
   */
  propagationMs?: number;
  /**
   * There are many of this kind, most of which never change: a missing one is created by a POST, which costs the apiserver half of reading
   * that there is none and applying it. Its first change takes two requests more. False unless given: objects are applied from the start.
   */
  rarelyChanges?: boolean;
}

export interface ApplierOptions {
  client: KubeClient;
  /** One for each controller, such as `website-controller`. */
  fieldManager: string;
  /** Domain of the annotations that mark children, such as `example.com`: `example.com/applied-hash`, `example.com/applied-by`. */
  annotationPrefix: string;
  kinds: readonly ChildKind[];
  metrics: RuntimeMetrics;
  clock?: Clock;
}

export interface ApplyContext {
  log: Logger;
  signal?: AbortSignal;
  /** Take over an object of the same name that nobody controls and that was not applied by us; false unless given. */
  adopt?: boolean;
  /** The kinds whose other children are pruned; all unless given. */
  prune?: readonly Resource[];
  /**
   * Objects that are written only as they were read, since a value in them is somebody else's: a change in between is a conflict,
   * and not undone. None unless given.
   */
  onlyAsRead?: (object: KubernetesObject) => boolean;
}

export interface ApplyResult {
  /** Objects that were sent. */
  applied: ObjectRef[];
  /** How many were left alone. */
  unchanged: number;
  pruned: ObjectRef[];
}
