import type { Store } from "../cache/store.ts";
import type { StoreEvent } from "../cache/store-event.ts";
import { type KubernetesObject, keyOf, type ObjectRef, type Resource, refKey } from "../client/types.ts";

/** Enqueues a key. */
export type Enqueue = (key: string, options?: EnqueueOptions) => void;

export interface EnqueueOptions {
  /** Milliseconds until then; none by default. */
  afterMs?: number;
  /** While a source attaches: the object changed since it was last reconciled, so that it comes before all others. */
  isUnobserved?: boolean;
}

/** Where a controller's keys come from. */
export interface Source {
  /** Whether what it reads from is filled. */
  hasSynced(): boolean;
  /** Starts to enqueue keys: of everything present, then of every change. Returns the unsubscription. */
  attach(enqueue: Enqueue): () => void;
}

/** Decides whether a change concerns the controller. */
export type Predicate<T> = (event: StoreEvent<T>) => boolean;

/** Keys that a mapping function derives from each changed object, in its old and in its new state. */
export function watchMapped<T extends KubernetesObject>(
  store: Store<T>,
  map: (object: T) => readonly ObjectRef[],
  predicate?: Predicate<T>,
): Source {
  return watch(store, map, predicate, () => false);
}

function watch<T extends KubernetesObject>(
  store: Store<T>,
  map: (object: T) => readonly ObjectRef[],
  predicate: Predicate<T> = () => true,
  isUnobserved: (object: T) => boolean,
): Source {
  return {
    hasSynced: () => store.hasSynced,
    attach: (enqueue) =>
      store.subscribe((event) => {
        if (!predicate(event)) {
          return;
        }
        const refs = event.type === "update" ? [...map(event.old), ...map(event.object)] : map(event.object);
        for (const key of new Set(refs.map(refKey))) {
          enqueue(key, { isUnobserved: isUnobserved(event.object) });
        }
      }),
  };
}

/** The objects themselves: the controller's own kind. Those whose spec changed since they were last reconciled come first. */
export function watchObjects<T extends KubernetesObject>(store: Store<T>, predicate?: Predicate<T>): Source {
  return watch(store, (object) => [toRef(object)], predicate, hasUnobservedSpec);
}

/** The controlling owner of each object, in the same namespace. */
export function watchOwned<T extends KubernetesObject>(
  store: Store<T>,
  owner: Resource,
  predicate?: Predicate<T>,
): Source {
  return watchMapped(
    store,
    (object) =>
      (object.metadata?.ownerReferences ?? [])
        .filter((reference) => reference.controller === true && reference.kind === owner.kind)
        .filter((reference) => groupOf(reference.apiVersion) === owner.group)
        .map((reference) => ({
          name: reference.name,
          ...(owner.namespaced ? { namespace: object.metadata?.namespace } : {}),
        })),
    predicate,
  );
}

/** The object that a label names, in the same namespace. */
export function watchLabelled<T extends KubernetesObject>(
  store: Store<T>,
  label: string,
  predicate?: Predicate<T>,
): Source {
  return watchMapped(
    store,
    (object) => {
      const name = object.metadata?.labels?.[label];
      return name === undefined ? [] : [{ namespace: object.metadata?.namespace, name }];
    },
    predicate,
  );
}

/** Keys that something else than a store names: a timer, a poll of the ledger. `start` returns how to stop it. */
export function customSource(start: (enqueue: Enqueue) => () => void): Source {
  return { hasSynced: () => true, attach: start };
}

/**
 * Leaves out updates in which nothing but the status changed: generation, labels, annotations, finalizers and the
 * deletion timestamp are the same.
 */
export function ignoreStatusUpdates<T extends KubernetesObject>(event: StoreEvent<T>): boolean {
  if (event.type !== "update") {
    return true;
  }
  const parts = (object: T) => {
    const { generation, labels, annotations, finalizers, deletionTimestamp } = object.metadata ?? {};
    return JSON.stringify([generation, labels, annotations, finalizers, deletionTimestamp]);
  };
  return keyOf(event.object) !== keyOf(event.old) || parts(event.object) !== parts(event.old);
}

/** Whether an object is being deleted, or has a spec that its `status.observedGeneration` is not of. */
function hasUnobservedSpec(object: KubernetesObject & { status?: { observedGeneration?: number } }): boolean {
  const { metadata, status } = object;
  return metadata?.deletionTimestamp !== undefined || metadata?.generation !== status?.observedGeneration;
}

function toRef(object: KubernetesObject): ObjectRef {
  return { namespace: object.metadata?.namespace, name: object.metadata?.name ?? "" };
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf("/");
  return slash < 0 ? "" : apiVersion.slice(0, slash);
}
