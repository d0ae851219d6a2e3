import type { KubernetesObject } from "../client/types.ts";

/** Names the values under which an object is found; none leaves it out of the index. */
export type Indexer<T> = (object: T) => readonly string[];

/** One index: value → keys of the objects that have it. */
export class IndexTable<T extends KubernetesObject> {
  readonly #indexer: Indexer<T>;
  readonly #keys = new Map<string, Set<string>>();

  constructor(indexer: Indexer<T>) {
    this.#indexer = indexer;
  }

  /** Keys of the objects with this value. */
  keys(value: string): Iterable<string> {
    return this.#keys.get(value) ?? [];
  }

  /** Every value that some object has. */
  values(): Iterable<string> {
    return this.#keys.keys();
  }

  /** Moves a key from its old object's values to its new object's. */
  update(key: string, before: T | undefined, after: T | undefined): void {
    for (const value of before ? this.#indexer(before) : []) {
      const keys = this.#keys.get(value);
      keys?.delete(key);
      if (keys?.size === 0) {
        this.#keys.delete(value);
      }
    }
    for (const value of after ? this.#indexer(after) : []) {
      const keys = this.#keys.get(value);
      if (keys) {
        keys.add(key);
      } else {
        this.#keys.set(value, new Set([key]));
      }
    }
  }
}

/** The named indexes of a store. */
export class Indexes<T extends KubernetesObject> {
  readonly #tables: ReadonlyMap<string, IndexTable<T>>;

  constructor(indexers: Record<string, Indexer<T>>) {
    this.#tables = new Map(
      Object.entries(indexers).map(([name, indexer]) => [name, new IndexTable(indexer)]),
    );
  }

  /** @throws RangeError for an index that was not configured */
  table(name: string): IndexTable<T> {
    const table = this.#tables.get(name);
    if (!table) {
      throw new RangeError(`store has no index ${name}`);
    }
    return table;
  }

  /** Moves a key in every index from its old object's values to its new object's. */
  update(key: string, before: T | undefined, after: T | undefined): void {
    for (const table of this.#tables.values()) {
      table.update(key, before, after);
    }
  }
}

/** Indexes by the value of a label. */
export function byLabel(label: string): Indexer<KubernetesObject> {
  return (object) => {
    const value = object.metadata?.labels?.[label];
    return value === undefined ? [] : [value];
  };
}

/** Indexes by the uid of the controlling owner. */
export const byControllerUid: Indexer<KubernetesObject> = (object) => {
  const owner = object.metadata?.ownerReferences?.find((reference) => reference.controller === true);
  return owner ? [owner.uid] : [];
};

/** Indexes by namespace. */
export const byNamespace: Indexer<KubernetesObject> = (object) =>
  object.metadata?.namespace ? [object.metadata.namespace] : [];
