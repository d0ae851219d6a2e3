import { randomUUID } from "node:crypto";
import type { ObjectMeta } from "../../../packages/controller-runtime/src/client/types.ts";
import { applyConfiguration, mergePatch } from "./fake-apply.ts";

/** An object as the fake keeps it. */
export interface FakeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta & { name: string };
  status?: unknown;
  [field: string]: unknown;
}

/** One change, as a watch reports it. */
export interface FakeEvent {
  type: "ADDED" | "MODIFIED" | "DELETED";
  version: number;
  collection: string;
  object: FakeObject;
}

export interface JsonPatchOperation {
  op: string;
  path: string;
  value?: unknown;
}

/** A refusal, with the fields of `metav1.Status`. */
export class FakeRefusal extends Error {
  readonly code: number;
  readonly reason: string;

  constructor(code: number, reason: string, message: string) {
    super(message);
    this.code = code;
    this.reason = reason;
  }
}

/** The objects and the history of a fake apiserver: what etcd and the registry are for the real one. */
export class FakeEtcd {
  readonly objects = new Map<string, Map<string, FakeObject>>();
  readonly history: FakeEvent[] = [];
  readonly #applied = new Map<string, FakeObject>();
  readonly #created = new Map<string, FakeObject>();
  readonly #listeners = new Set<(event: FakeEvent) => void>();
  /** Versions up to this one are forgotten. */
  compacted = 0;
  #version = 100;

  get version(): number {
    return this.#version;
  }

  collection(name: string): Map<string, FakeObject> {
    const found = this.objects.get(name) ?? new Map<string, FakeObject>();
    this.objects.set(name, found);
    return found;
  }

  /** @throws FakeRefusal 404 */
  get(collection: string, key: string): FakeObject {
    const found = this.collection(collection).get(key);
    if (!found) {
      throw new FakeRefusal(404, "NotFound", `${collection} ${key} not found`);
    }
    return found;
  }

  /** @param manager the field manager of a POST: it owns the fields by an update, until `ownByApply` */
  create(collection: string, key: string, body: FakeObject, manager?: string): FakeObject {
    if (this.collection(collection).has(key)) {
      throw new FakeRefusal(409, "AlreadyExists", `${collection} ${key} already exists`);
    }
    const managedFields = [{ manager, operation: "Update" }];
    if (manager !== undefined) {
      this.#created.set(`${collection}/${key}/${manager}`, structuredClone(body));
    }
    const metadata = {
      ...body.metadata,
      ...(manager === undefined ? {} : { managedFields }),
      uid: randomUUID(),
      generation: 1,
      creationTimestamp: new Date().toISOString(),
    };
    return this.#write(collection, key, { ...body, metadata }, "ADDED");
  }

  /** Replaces an object, or only its status. The uid and resourceVersion in the body are preconditions. */
  update(collection: string, key: string, body: FakeObject, subresource?: string): FakeObject {
    const live = this.get(collection, key);
    const { resourceVersion, uid } = body.metadata;
    if (
      (resourceVersion && resourceVersion !== live.metadata.resourceVersion) ||
      (uid && uid !== live.metadata.uid)
    ) {
      throw new FakeRefusal(409, "Conflict", "the object has been modified");
    }
    const kept = live.metadata;
    const metadata: FakeObject["metadata"] = {
      ...body.metadata,
      uid: kept.uid,
      generation: kept.generation,
      creationTimestamp: kept.creationTimestamp,
      ...(kept.deletionTimestamp ? { deletionTimestamp: kept.deletionTimestamp } : {}),
    };
    const next: FakeObject =
      subresource === "status"
        ? { ...live, status: body.status }
        : { ...body, metadata, status: live.status };
    if (specOf(next) !== specOf(live)) {
      next.metadata.generation = (kept.generation ?? 0) + 1;
    }
    if (content(next) === content(live)) {
      return live;
    }
    if (metadata.deletionTimestamp && (next.metadata.finalizers ?? []).length === 0) {
      return this.#remove(collection, key, next);
    }
    return this.#write(collection, key, next, "MODIFIED");
  }

  /**
   * A JSON patch that replaces `metadata.managedFields`, the only one that is sent: what a manager owns by an apply is removed when it
   * applies no more of it.
   */
  patchManagedFields(collection: string, key: string, operations: readonly JsonPatchOperation[]): FakeObject {
    const live = this.get(collection, key);
    const valueAt = (path: string) => operations.find((operation) => operation.path === path)?.value;
    const managedFields = valueAt("/metadata/managedFields") as { manager?: string; operation: string }[];
    const resourceVersion = valueAt("/metadata/resourceVersion") as string;
    const updated = this.update(collection, key, {
      ...live,
      metadata: { ...live.metadata, resourceVersion, managedFields },
    });
    for (const { manager } of managedFields.filter(({ operation }) => operation === "Apply")) {
      const id = `${collection}/${key}/${manager}`;
      const created = this.#created.get(id);
      if (created) {
        this.#created.delete(id);
        this.#applied.set(id, created);
      }
    }
    return updated;
  }

  patch(collection: string, key: string, patch: unknown, subresource?: string): FakeObject {
    const live = this.get(collection, key);
    const patched = mergePatch(live, patch) as FakeObject;
    const given = (patch as { metadata?: ObjectMeta }).metadata;
    const { uid, resourceVersion } = { ...live.metadata, ...given };
    return this.update(
      collection,
      key,
      { ...patched, metadata: { ...patched.metadata, uid, resourceVersion } },
      subresource,
    );
  }

  apply(
    collection: string,
    key: string,
    manager: string,
    body: FakeObject,
    subresource?: string,
  ): FakeObject {
    const id = `${collection}/${key}/${manager}`;
    const live = this.collection(collection).get(key);
    const previous = this.#applied.get(id);
    this.#applied.set(id, structuredClone(body));
    if (!live) {
      return this.create(collection, key, body);
    }
    const next = applyConfiguration(live, previous, body) as FakeObject;
    return this.update(collection, key, next, subresource);
  }

  delete(
    collection: string,
    key: string,
    preconditions: { uid?: string; resourceVersion?: string } = {},
  ): FakeObject {
    const live = this.get(collection, key);
    if (
      (preconditions.uid && preconditions.uid !== live.metadata.uid) ||
      (preconditions.resourceVersion && preconditions.resourceVersion !== live.metadata.resourceVersion)
    ) {
      throw new FakeRefusal(409, "Conflict", "a precondition is not met");
    }
    if ((live.metadata.finalizers ?? []).length === 0) {
      return this.#remove(collection, key, live);
    }
    if (live.metadata.deletionTimestamp) {
      return live;
    }
    const metadata = { ...live.metadata, deletionTimestamp: new Date().toISOString() };
    return this.#write(collection, key, { ...live, metadata }, "MODIFIED");
  }

  /** Forgets the history, as etcd's compaction does: older watches answer 410. */
  compact(): void {
    this.compacted = this.#version;
    this.history.length = 0;
  }

  /** Raises the version without a change. */
  tick(): number {
    this.#version += 1;
    return this.#version;
  }

  onEvent(listener: (event: FakeEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #write(collection: string, key: string, object: FakeObject, type: FakeEvent["type"]): FakeObject {
    const version = this.tick();
    const stored: FakeObject = {
      ...object,
      metadata: { ...object.metadata, resourceVersion: String(version) },
    };
    this.collection(collection).set(key, stored);
    this.#emit({ type, version, collection, object: stored });
    return stored;
  }

  #remove(collection: string, key: string, object: FakeObject): FakeObject {
    const version = this.tick();
    this.collection(collection).delete(key);
    for (const owned of [this.#applied, this.#created]) {
      for (const id of owned.keys()) {
        if (id.startsWith(`${collection}/${key}/`)) {
          owned.delete(id);
        }
      }
    }
    const last: FakeObject = {
      ...object,
      metadata: { ...object.metadata, resourceVersion: String(version) },
    };
    this.#emit({ type: "DELETED", version, collection, object: last });
    return last;
  }

  #emit(event: FakeEvent): void {
    this.history.push(event);
    for (const listener of this.#listeners) {
      listener(event);
    }
  }
}

function content(object: FakeObject): string {
  const { resourceVersion: _resourceVersion, ...metadata } = object.metadata;
  return canonical({ ...object, metadata });
}

function specOf(object: FakeObject): string {
  const { metadata: _metadata, status: _status, ...rest } = object;
  return canonical(rest);
}

function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) =>
    typeof item === "object" && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  );
}
