/** The objects of a store by key, as they are or as texts. */

import type { KubernetesObject } from "../client/types.ts";

/** What a store needs of a `Map` of objects. */
export interface ObjectTable<T> extends Iterable<[string, T]> {
  readonly size: number;
  get(key: string): T | undefined;
  set(key: string, object: T): unknown;
  delete(key: string): boolean;
  values(): Iterable<T>;
}

/** How many objects a table keeps as they are, besides the texts: what is reconciled now is read several times. */
const RECENT = 256;

/**
 * Keeps objects as JSON, but for those that were read or changed last: a Deployment takes a fifth of the memory, and the garbage collector
 * has nothing in it to follow. Reading another one takes some 20 µs.
 */
export class CompactTable<T extends KubernetesObject> implements ObjectTable<T> {
  /** By key; undefined while the object is kept as it is alone. */
  readonly #texts = new Map<string, string | undefined>();
  /** The one that was used last is the last. */
  readonly #recent = new Map<string, T>();
  readonly #limit: number;

  /** @param limit how many objects are kept as they are */
  constructor(limit = RECENT) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#texts.size;
  }

  get(key: string): T | undefined {
    const object = this.#recent.get(key) ?? parsed<T>(this.#texts.get(key));
    if (object !== undefined) {
      this.#use(key, object);
    }
    return object;
  }

  set(key: string, object: T): void {
    this.#texts.set(key, undefined);
    this.#use(key, object);
  }

  delete(key: string): boolean {
    this.#recent.delete(key);
    return this.#texts.delete(key);
  }

  *values(): Iterable<T> {
    for (const [, object] of this) {
      yield object;
    }
  }

  *[Symbol.iterator](): Iterator<[string, T]> {
    for (const [key, text] of this.#texts) {
      const object = this.#recent.get(key) ?? parsed<T>(text);
      if (object !== undefined) {
        yield [key, object];
      }
    }
  }

  #use(key: string, object: T): void {
    this.#recent.delete(key);
    this.#recent.set(key, object);
    if (this.#recent.size <= this.#limit) {
      return;
    }
    const [oldest] = this.#recent;
    if (oldest) {
      const [oldestKey, oldestObject] = oldest;
      this.#recent.delete(oldestKey);
      if (this.#texts.get(oldestKey) === undefined) {
        this.#texts.set(oldestKey, JSON.stringify(oldestObject));
      }
    }
  }
}

const parsed = <T>(text: string | undefined): T | undefined =>
  text === undefined ? undefined : (JSON.parse(text) as T);
