/** The model's apiserver: what etcd and the registry of a real one decide, immediately and in memory. */

import {
  KubeError,
  type ObjectRef,
  type OwnerReference,
  type Resource,
  refKey,
  resources,
} from "@slipway/controller-runtime";
import { carried, freeze, merged } from "./merge.ts";
import { type Stored, type StoredMeta, type StoredPod, wholeSeconds } from "./objects.ts";
import type { Timeline } from "./timeline.ts";

/** One committed change. */
export interface Change<T extends Stored = Stored> {
  readonly type: "add" | "update" | "delete";
  readonly resource: Resource;
  readonly object: T;
  /** The object before an update. */
  readonly old?: T;
}

export interface Preconditions {
  uid?: string;
  resourceVersion?: string;
}

/** An object as a client sends it for creation. */
export interface NewObject {
  apiVersion?: string;
  kind?: string;
  metadata?: {
    name?: string;
    namespace?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    finalizers?: string[];
    ownerReferences?: OwnerReference[];
  };
  spec?: unknown;
}

const NONE: ReadonlyMap<string, Stored> = new Map();

/**
 * Objects with one counter of resourceVersions, uids, generations, merge patches, the status subresource, optimistic
 * concurrency, preconditions, finalizers and graceful deletion of pods. What it hands out is frozen.
 */
export class Apiserver {
  readonly #timeline: Timeline;
  readonly #objects = new Map<string, Map<string, Stored>>();
  readonly #listeners: ((change: Change) => void)[] = [];
  #version = 1000;
  #uids = 0;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  /** resourceVersion of the newest change. */
  get version(): string {
    return String(this.#version);
  }

  /** Called for every change as it is committed. */
  onChange(listener: (change: Change) => void): void {
    this.#listeners.push(listener);
  }

  get<T extends Stored>(resource: Resource, ref: ObjectRef): T | undefined {
    return this.#objects.get(resource.plural)?.get(refKey(ref)) as T | undefined;
  }

  /** Every object of a resource. */
  list<T extends Stored>(resource: Resource): T[] {
    return [...(this.#objects.get(resource.plural) ?? NONE).values()] as T[];
  }

  /** @throws KubeError 409 AlreadyExists */
  create<T extends Stored>(resource: Resource, object: NewObject): T {
    const sent = carried(object) as Stored;
    const collection = this.#collection(resource);
    const key = refKey(sent.metadata);
    if (collection.has(key)) {
      throw refusal(409, "AlreadyExists", `${resource.plural} "${key}" already exists`);
    }
    this.#uids += 1;
    const { deletionTimestamp: _deleted, ...kept } = sent.metadata;
    const metadata: StoredMeta = {
      ...kept,
      uid: `uid-${this.#uids}`,
      generation: 1,
      creationTimestamp: wholeSeconds(this.#timeline.now),
    };
    // The status is a subresource of every kind here, so a creation cannot set one.
    const { status: _status, ...rest } = sent;
    const stored = this.#store(resource, collection, key, {
      ...rest,
      metadata,
      ...(resource === resources.pods ? { status: { phase: "Pending" } } : {}),
    });
    this.#notify({ type: "add", resource, object: stored });
    return stored as T;
  }

  /**
   * Merges a patch. A `metadata.resourceVersion` or `uid` in it is a precondition. Nothing is written when nothing changes.
   * @throws KubeError 404, 409 Conflict
   */
  patch<T extends Stored>(
    resource: Resource,
    ref: ObjectRef,
    patch: unknown,
    options: { subresource?: string } = {},
  ): T {
    const live = this.#live(resource, ref);
    const sent = carried(patch) as { metadata?: Preconditions; status?: unknown };
    check(live, sent.metadata);
    const { resourceVersion: _version, uid: _uid, ...metadata } = sent.metadata ?? {};
    const { status, ...rest } = sent;
    const change = options.subresource === "status" ? { status } : { ...rest, metadata };
    return this.#update(resource, live, merged(live, change) as Stored) as T;
  }

  /**
   * Deletes: immediately, or when the last finalizer is removed and, of a pod that runs, its node has confirmed the end.
   * @throws KubeError 404, 409 Conflict
   */
  delete(
    resource: Resource,
    ref: ObjectRef,
    options: Preconditions & { gracePeriodSeconds?: number } = {},
  ): void {
    const live = this.#live(resource, ref);
    check(live, options);
    const grace = resource === resources.pods ? podGrace(live as StoredPod, options.gracePeriodSeconds) : 0;
    const { deletionTimestamp, deletionGracePeriodSeconds: granted } = live.metadata;
    const hasFinalizers = (live.metadata.finalizers ?? []).length > 0;
    if (!hasFinalizers && grace === 0) {
      this.#remove(resource, live);
      return;
    }
    // A deletion may be hurried, never slowed down.
    if (deletionTimestamp !== undefined && (granted ?? 0) <= grace) {
      return;
    }
    const metadata = {
      ...live.metadata,
      deletionTimestamp: wholeSeconds(this.#timeline.now + grace * 1_000),
      deletionGracePeriodSeconds: grace,
      generation: live.metadata.generation + (deletionTimestamp === undefined ? 1 : 0),
    };
    this.#update(resource, live, { ...live, metadata });
  }

  /** Removes an object with its finalizers, as an administrator does by force. */
  strip(resource: Resource, ref: ObjectRef): void {
    const live = this.get(resource, ref);
    if (live) {
      this.#remove(resource, live);
    }
  }

  #update(resource: Resource, live: Stored, next: Stored): Stored {
    if (next === live || sameMeta(next, live)) {
      return live;
    }
    const specChanged = next.spec !== live.spec;
    const metadata = { ...next.metadata };
    if (specChanged) {
      metadata.generation = live.metadata.generation + 1;
    }
    const changed = { ...next, metadata };
    const isRemoved =
      metadata.deletionTimestamp !== undefined &&
      (metadata.deletionGracePeriodSeconds ?? 0) === 0 &&
      (metadata.finalizers ?? []).length === 0;
    if (isRemoved) {
      return this.#remove(resource, changed);
    }
    const collection = this.#collection(resource);
    const stored = this.#store(resource, collection, refKey(live.metadata), changed);
    this.#notify({ type: "update", resource, object: stored, old: live });
    return stored;
  }

  #remove(resource: Resource, object: Stored): Stored {
    this.#collection(resource).delete(refKey(object.metadata));
    this.#version += 1;
    const last = freeze({
      ...object,
      metadata: { ...object.metadata, resourceVersion: String(this.#version) },
    });
    this.#notify({ type: "delete", resource, object: last });
    return last;
  }

  #store(resource: Resource, collection: Map<string, Stored>, key: string, object: Stored): Stored {
    this.#version += 1;
    const apiVersion = object.apiVersion ?? `${resource.group}/${resource.version}`;
    const stored = freeze({
      ...object,
      apiVersion,
      kind: resource.kind,
      metadata: { ...object.metadata, resourceVersion: String(this.#version) },
    });
    collection.set(key, stored);
    return stored;
  }

  #live(resource: Resource, ref: ObjectRef): Stored {
    const live = this.get(resource, ref);
    if (!live) {
      throw refusal(404, "NotFound", `${resource.plural} "${refKey(ref)}" not found`);
    }
    return live;
  }

  #collection(resource: Resource): Map<string, Stored> {
    let found = this.#objects.get(resource.plural);
    if (!found) {
      found = new Map();
      this.#objects.set(resource.plural, found);
    }
    return found;
  }

  #notify(change: Change): void {
    for (const listener of this.#listeners) {
      listener(change);
    }
  }
}

/** A failure as the client throws it. */
export function refusal(status: number, reason: string, message: string): KubeError {
  return new KubeError({ status, reason, message });
}

function check(live: Stored, { uid, resourceVersion }: Preconditions = {}): void {
  if (uid !== undefined && uid !== live.metadata.uid) {
    throw refusal(409, "Conflict", "the uid is another");
  }
  if (resourceVersion !== undefined && resourceVersion !== live.metadata.resourceVersion) {
    throw refusal(409, "Conflict", "the object has been modified");
  }
}

/** An update may have made another `metadata` without changing anything in it. */
function sameMeta(next: Stored, live: Stored): boolean {
  if (next.spec !== live.spec || next.status !== live.status) {
    return false;
  }
  return next.metadata === live.metadata;
}

/** Seconds of grace, as the apiserver's strategy of pods decides. */
function podGrace(pod: StoredPod, requested: number | undefined): number {
  if (pod.spec.nodeName === undefined) {
    return 0;
  }
  if (pod.status.phase === "Succeeded" || pod.status.phase === "Failed") {
    return 0;
  }
  return requested ?? pod.spec.terminationGracePeriodSeconds ?? 30;
}
