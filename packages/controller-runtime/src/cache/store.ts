import { type Clock, systemClock } from "@slipway/process";
import { type KubernetesObject, keyOf, refKey } from "../client/types.ts";
import { type Indexer, Indexes } from "./index-table.ts";
import { type StoreEvent, Subscribers } from "./store-event.ts";
import { compareResourceVersions, maxResourceVersion, VersionWaiters } from "./version-waiters.ts";

export interface StoreOptions<T extends KubernetesObject> {
  /** Named indexes; see `byLabel`, `byControllerUid`, `byNamespace`. */
  indexers?: Record<string, Indexer<T>>;
  /** Makes an object smaller before it is kept. `dropManagedFields` unless given. */
  transform?: (object: T) => T;
  clock?: Clock;
  /**
   * The namespaces that are listed and watched one by one, where a list of all namespaces is not allowed; undefined until
   * they are known. Without it one list covers everything.
   */
  namespaces?: () => readonly string[] | undefined;
  /** Called with the error of a subscriber that threw; a subscriber never stops the store. */
  onHandlerError?: (error: unknown) => void;
}

/**
 * The objects of one resource, as a reflector keeps them. Never change what it returns: it is shared.
 *
 * `Reflector` writes to it with `replace`, `upsert`, `remove` and `progress`; a writer may `observe` what its own write
 * returned, so that the next reader finds it before the watch reports it.
 */
export class Store<T extends KubernetesObject = KubernetesObject> {
  /** Makes an object as small as it is kept. */
  readonly transform: (object: T) => T;
  readonly #objects = new Map<string, T>();
  readonly #indexes: Indexes<T>;
  readonly #subscribers: Subscribers<T>;
  readonly #waiters: VersionWaiters;
  readonly #namespaces: StoreOptions<T>["namespaces"];
  /** The newest resourceVersion seen, by scope: a namespace with a watch of its own, or `""` for all together. */
  readonly #versions = new Map<string, string>();
  /** Scopes that were listed, or cannot be. */
  readonly #listed = new Set<string>();
  #synced = false;

  constructor(options: StoreOptions<T> = {}) {
    this.transform = options.transform ?? dropManagedFields;
    this.#indexes = new Indexes(options.indexers ?? {});
    this.#subscribers = new Subscribers(options.onHandlerError);
    this.#waiters = new VersionWaiters(options.clock ?? systemClock);
    this.#namespaces = options.namespaces;
  }

  /** Whether a whole list has been received. Stays true through later disconnections. */
  get hasSynced(): boolean {
    this.#synced ||=
      (this.#namespaces ? this.#namespaces() : [""])?.every((one) => this.#listed.has(one)) ?? false;
    return this.#synced;
  }

  /**
   * The resourceVersion of the last list, event or bookmark. Undefined where each
   * namespace is watched for itself.
   */
  get resourceVersion(): string | undefined {
    return this.#versions.get("");
  }

  get size(): number {
    return this.#objects.size;
  }

  /** One object. The namespace is undefined for cluster-scoped resources. */
  get(namespace: string | undefined, name: string): T | undefined {
    return this.#objects.get(refKey({ namespace, name }));
  }

  /** One object by `namespace/name`. */
  getByKey(key: string): T | undefined {
    return this.#objects.get(key);
  }

  /** All objects, or those of one namespace, in no order. */
  list(namespace?: string): T[] {
    const all = [...this.#objects.values()];
    return namespace === undefined ? all : all.filter((object) => object.metadata?.namespace === namespace);
  }

  /** The objects that an indexer filed under a value. @throws RangeError for an index that was not configured */
  byIndex(index: string, value: string): T[] {
    const objects: T[] = [];
    for (const key of this.#indexes.table(index).keys(value)) {
      const object = this.#objects.get(key);
      if (object) {
        objects.push(object);
      }
    }
    return objects;
  }

  /** Every value of an index. @throws RangeError for an index that was not configured */
  indexValues(index: string): string[] {
    return [...this.#indexes.table(index).values()];
  }

  /** Calls the subscriber with an `add` for each object present, then with every change. Returns the unsubscription. */
  subscribe(subscriber: (event: StoreEvent<T>) => void): () => void {
    return this.#subscribers.add(subscriber, this.#objects);
  }

  /**
   * Resolves once the server's own stream has passed `resourceVersion`, the one that a write returned.
   * Resolves false when `timeoutMs` passed or the signal aborted first.
   */
  waitForResourceVersion(
    resourceVersion: string,
    options: { timeoutMs: number; signal?: AbortSignal },
  ): Promise<boolean> {
    return this.#waiters.wait(resourceVersion, this.resourceVersion, options);
  }

  /**
   * Replaces the content by a whole list: what is not in it was deleted.
   * @param options.transformed the objects are kept as they are
   * @param options.namespace the one that was listed, where each is listed for itself
   */
  replace(
    objects: readonly T[],
    resourceVersion: string,
    { transformed = false, namespace }: { transformed?: boolean; namespace?: string } = {},
  ): void {
    const scope = this.#scopeOf(namespace);
    const version = this.#versions.get(scope);
    // History went backwards when etcd was restored from a backup: then nothing kept locally can be trusted.
    const rewound = version !== undefined && compareResourceVersions(resourceVersion, version) < 0;
    const listed = new Map(objects.map((object) => [keyOf(object), object]));
    for (const [key, object] of this.#inScope(scope)) {
      const observedLater =
        !rewound && compareResourceVersions(object.metadata?.resourceVersion ?? "", resourceVersion) > 0;
      if (!listed.has(key) && !observedLater) {
        this.#delete(key, object);
      }
    }
    for (const [key, object] of listed) {
      this.#put(key, object, rewound, transformed);
    }
    this.#versions.set(scope, resourceVersion);
    this.#listed.add(scope);
    if (rewound) {
      this.#waiters.release();
    }
    this.#waiters.reached(resourceVersion);
  }

  /** Takes in an `ADDED` or `MODIFIED` event. */
  upsert(object: T): void {
    this.#put(keyOf(object), object, false);
    this.progress(object.metadata?.resourceVersion, object.metadata?.namespace);
  }

  /** Takes in a `DELETED` event. A namesake observed since stays. */
  remove(object: T): void {
    const key = keyOf(object);
    const present = this.#objects.get(key);
    const recreated = present !== undefined && present.metadata?.uid !== object.metadata?.uid;
    if (present && !(recreated && isOlder(object, present))) {
      this.#delete(key, present);
    }
    this.progress(object.metadata?.resourceVersion, object.metadata?.namespace);
  }

  /** Takes in a bookmark. */
  progress(resourceVersion: string | undefined, namespace?: string): void {
    if (!resourceVersion) {
      return;
    }
    const scope = this.#scopeOf(namespace);
    const version = maxResourceVersion(this.#versions.get(scope), resourceVersion) ?? resourceVersion;
    this.#versions.set(scope, version);
    this.#waiters.reached(version);
  }

  /** A namespace cannot be listed for now: nobody waits for it. What is known of it stays. */
  skip(namespace: string): void {
    this.#listed.add(this.#scopeOf(namespace));
  }

  /** A namespace that was listed for itself is watched no more: everything in it goes. */
  forget(namespace: string): void {
    const scope = this.#scopeOf(namespace);
    for (const [key, object] of this.#inScope(scope)) {
      this.#delete(key, object);
    }
    this.#versions.delete(scope);
    this.#listed.delete(scope);
  }

  /**
   * Stores what a write of this process returned, unless the store is already past it. The watch will report it again
   * and be ignored. Only for objects that the store's reflector selects, or it would never see them change.
   */
  observe(object: T): void {
    const present = this.#objects.get(keyOf(object));
    const version = this.#versions.get(this.#scopeOf(object.metadata?.namespace));
    // Before the first list nothing would delete it again.
    if (version === undefined) {
      return;
    }
    // Unknown here but older than what the watch reported: it was deleted since.
    const passed = !present && compareResourceVersions(object.metadata?.resourceVersion ?? "", version) <= 0;
    if (!passed) {
      this.#put(keyOf(object), object, false);
    }
  }

  #scopeOf(namespace: string | undefined): string {
    return this.#namespaces ? (namespace ?? "") : "";
  }

  #inScope(scope: string): [string, T][] {
    const all = [...this.#objects];
    return this.#namespaces ? all.filter(([, { metadata }]) => metadata?.namespace === scope) : all;
  }

  #put(key: string, raw: T, force: boolean, transformed = false): void {
    let old = this.#objects.get(key);
    if (old && !force && !isOlder(old, raw)) {
      return;
    }
    const object = transformed ? raw : this.transform(raw);
    if (old && old.metadata?.uid !== object.metadata?.uid) {
      this.#delete(key, old);
      old = undefined;
    }
    this.#objects.set(key, object);
    this.#indexes.update(key, old, object);
    if (!old) {
      this.#subscribers.emit({ type: "add", key, object });
    } else if (force || old.metadata?.resourceVersion !== object.metadata?.resourceVersion) {
      // After a restored backup another object may have the version of the one that is known.
      this.#subscribers.emit({ type: "update", key, object, old });
    }
  }

  #delete(key: string, object: T): void {
    this.#objects.delete(key);
    this.#indexes.update(key, object, undefined);
    this.#subscribers.emit({ type: "delete", key, object });
  }
}

/** Drops `managedFields`, often half of an object's size and of no use to a reader. */
export function dropManagedFields<T extends KubernetesObject>(object: T): T {
  if (object.metadata) {
    delete object.metadata.managedFields;
  }
  return object;
}

function isOlder(a: KubernetesObject, b: KubernetesObject): boolean {
  return compareResourceVersions(a.metadata?.resourceVersion ?? "", b.metadata?.resourceVersion ?? "") < 0;
}
