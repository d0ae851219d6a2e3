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

/**
 * Keeps each object as its JSON: a Deployment takes a fifth of the memory, and the garbage collector has nothing in it to follow. Reading
 * one takes some 10 to 20 µs, and gives a new object each time.
 */
export class CompactTable<T extends KubernetesObject> implements ObjectTable<T> {
  readonly #texts = new Map<string, string>();

  get size(): number {
    return this.#texts.size;
  }

  get(key: string): T | undefined {
    const text = this.#texts.get(key);
    return text === undefined ? undefined : (JSON.parse(text) as T);
  }

  set(key: string, object: T): void {
    this.#texts.set(key, JSON.stringify(object));
  }

  delete(key: string): boolean {
    return this.#texts.delete(key);
  }

  *values(): Iterable<T> {
    for (const text of this.#texts.values()) {
      yield JSON.parse(text) as T;
    }
  }

  *[Symbol.iterator](): Iterator<[string, T]> {
    for (const [key, text] of this.#texts) {
      yield [key, JSON.parse(text) as T];
    }
  }
}
