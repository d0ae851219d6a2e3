/**
 * Shards of one operator: each process reconciles the namespaces of one shard, and leads it by the shard's own Lease. What is in no
 * namespace is the first shard's.
 */

import { createHash } from "node:crypto";
import type { ObjectRef } from "../client/types.ts";

/** The shard of a process. */
export interface Shard {
  /** From 0 on. */
  readonly index: number;
  /** How many there are. */
  readonly count: number;
}

/** More would only multiply the watches. */
export const MAX_SHARDS = 16;

/** The only shard of an operator that is not sharded. */
export const ONLY_SHARD: Shard = { index: 0, count: 1 };

/** The shard of a namespace, the same in every process and version: SHA-256 of its name, modulo the number of shards. Pure. */
export function shardOf(namespace: string, count: number): number {
  return count === 1 ? 0 : createHash("sha256").update(namespace).digest().readUInt32BE() % count;
}

/** The name of a shard's Lease: the first shard's is that of an operator that is not sharded. Pure. */
export function shardLeaseName(name: string, index: number): string {
  return index === 0 ? name : `${name}-${index}`;
}

/** The names of all Leases that shards of an operator can have, however many shards there are. Pure. */
export function shardLeaseNames(name: string): string[] {
  return Array.from({ length: MAX_SHARDS }, (_, index) => shardLeaseName(name, index));
}

/** Knows which objects a process reconciles. A namespace is hashed once. */
export class ShardMembership {
  readonly #shard: Shard;
  readonly #own = new Map<string, boolean>();

  /** @throws RangeError when there is no such shard */
  constructor(shard: Shard) {
    const { index, count } = shard;
    const isShard = Number.isInteger(index) && index >= 0 && index < count && count <= MAX_SHARDS;
    if (!isShard || !Number.isInteger(count)) {
      throw new RangeError(`there is no shard ${index} of ${count}; at most ${MAX_SHARDS} are possible`);
    }
    this.#shard = shard;
  }

  /** Whether a namespace is this shard's; undefined stands for what is in no namespace. */
  owns(namespace: string | undefined): boolean {
    const { index, count } = this.#shard;
    if (count === 1 || namespace === undefined) {
      return index === 0;
    }
    let own = this.#own.get(namespace);
    if (own === undefined) {
      own = shardOf(namespace, count) === index;
      this.#own.set(namespace, own);
    }
    return own;
  }

  get isFirst(): boolean {
    return this.#shard.index === 0;
  }
}

/** Whether a process reconciles a key. @param owns whether it does so for what is in a namespace, or in none */
export type IsOwnKey = (ref: ObjectRef, owns: (namespace: string | undefined) => boolean) => boolean;
