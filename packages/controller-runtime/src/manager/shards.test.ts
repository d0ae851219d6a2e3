import { describe, expect, it } from "vitest";
import { MAX_SHARDS, ShardMembership, shardLeaseNames, shardOf } from "./shards.ts";

const namespaces = Array.from({ length: 2_000 }, (_, index) => `slipway-org-org${index}`);

describe("shardOf", () => {
  it("is the same in every version: leaders of two versions must agree", () => {
    expect(["a", "b", "c", "d"].map((namespace) => shardOf(namespace, 5))).toEqual([0, 1, 3, 3]);
  });

  it("divides namespaces about evenly", () => {
    for (const count of [2, 3, 16]) {
      const sizes = new Array<number>(count).fill(0);
      for (const namespace of namespaces) {
        sizes[shardOf(namespace, count)] = (sizes[shardOf(namespace, count)] ?? 0) + 1;
      }
      const fair = namespaces.length / count;
      expect(Math.max(...sizes)).toBeLessThan(fair * 1.4);
      expect(Math.min(...sizes)).toBeGreaterThan(fair * 0.6);
    }
  });
});

describe("ShardMembership", () => {
  it("gives each namespace to exactly one shard, and what is in none to the first", () => {
    const shards = [0, 1, 2].map((index) => new ShardMembership({ index, count: 3 }));
    for (const namespace of namespaces) {
      expect(shards.filter((shard) => shard.owns(namespace))).toHaveLength(1);
    }
    expect(shards.map((shard) => shard.owns(undefined))).toEqual([true, false, false]);
  });

  it.each([
    [-1, 2],
    [2, 2],
    [0, 0],
    [0, MAX_SHARDS + 1],
    [0.5, 2],
    [0, 1.5],
  ])("refuses shard %d of %d", (index, count) => {
    expect(() => new ShardMembership({ index, count })).toThrow(RangeError);
  });
});

describe("shardLeaseNames", () => {
  it("begins with the Lease of an operator that is not sharded", () => {
    expect(shardLeaseNames("lock").slice(0, 3)).toEqual(["lock", "lock-1", "lock-2"]);
    expect(new Set(shardLeaseNames("lock")).size).toBe(MAX_SHARDS);
  });
});
