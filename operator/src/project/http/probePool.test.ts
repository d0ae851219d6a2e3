import { expect, test } from "vitest";
import { ProbePool } from "./probePool.ts";

/** A pool whose jobs end when the test says so, by name. */
function setUp(options: { concurrency?: number; perGroup?: number }) {
  const pool = new ProbePool(options);
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  return {
    started,
    add: (group: string, name: string) =>
      pool.add(group, () => {
        started.push(name);
        return new Promise((resolve) => ends.set(name, resolve));
      }),
    end: async (name: string) => {
      ends.get(name)?.();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

test("has a bounded number under way, in order, and loses none", async () => {
  const { add, end, started } = setUp({ concurrency: 2, perGroup: 2 });
  for (const name of ["a", "b", "c", "d"]) add("alpha", name);
  expect(started).toEqual(["a", "b"]);
  await end("b");
  expect(started).toEqual(["a", "b", "c"]);
  await end("a");
  await end("c");
  expect(started).toEqual(["a", "b", "c", "d"]);
});

test("one group does not take every place, however much it wants", async () => {
  const { add, end, started } = setUp({ concurrency: 3, perGroup: 2 });
  for (const name of ["a1", "a2", "a3", "a4"]) add("alpha", name);
  add("beta", "b1");
  add("beta", "b2");
  expect(started).toEqual(["a1", "a2", "b1"]);
  await end("b1");
  expect(started).toEqual(["a1", "a2", "b1", "b2"]);
  await end("a1");
  expect(started.at(-1)).toBe("a3");
});
