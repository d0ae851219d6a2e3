import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { KubernetesObject } from "../client/types.ts";
import { CompactTable } from "./object-table.ts";

type Named = KubernetesObject & { value: number };

describe("CompactTable", () => {
  it("has what a Map has, however few objects it keeps as they are", () => {
    const key = fc.constantFrom("a", "b", "c", "d", "e", "f");
    const change = fc.oneof(
      fc.record({ do: fc.constant("set" as const), key, value: fc.nat() }),
      fc.record({ do: fc.constantFrom("get" as const, "delete" as const), key, value: fc.constant(0) }),
    );
    fc.assert(
      fc.property(fc.array(change, { maxLength: 60 }), fc.integer({ min: 1, max: 4 }), (changes, limit) => {
        const table = new CompactTable<Named>(limit);
        const map = new Map<string, Named>();
        for (const { do: what, key, value } of changes) {
          const object = { kind: "Named", metadata: { name: key }, value };
          if (what === "set") {
            table.set(key, object);
            map.set(key, object);
          } else {
            expect(table[what](key)).toEqual(map[what](key));
          }
          expect(table.size).toBe(map.size);
        }
        expect(new Map(table)).toEqual(map);
        expect([...table.values()]).toEqual([...map.values()]);
      }),
    );
  });

  it("gives the same object while it is one of those that were used last", () => {
    const table = new CompactTable<Named>(2);
    const objects = ["a", "b", "c"].map((name) => ({ metadata: { name }, value: 1 }));
    for (const object of objects) {
      table.set(object.metadata.name, object);
    }
    expect(table.get("c")).toBe(objects[2]);
    expect(table.get("a")).not.toBe(objects[0]);
    expect(table.get("a")).toBe(table.get("a"));
  });
});
