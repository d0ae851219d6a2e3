import { expect, it } from "vitest";
import { BatchWriter } from "./batches.ts";

/** A writer of `key:number` that cannot write until it is allowed to. */
function blocked({ maxItems = 10, maxItemsPerKey = 6 } = {}) {
  const written: string[][] = [];
  const lost: string[] = [];
  const { promise: allowed, resolve: allow } = Promise.withResolvers<void>();
  const writer = new BatchWriter<{ name: string }>({
    write: async (batch) => {
      await allowed;
      written.push(batch.map(({ name }) => name));
    },
    keyOf: ({ name }) => name.split(":")[0] as string,
    maxItems,
    maxItemsPerKey,
    retryMs: 1,
    onRetry: () => {},
    onLost: ({ name }) => void lost.push(name),
  });
  return { writer, written, lost, allow };
}

it("writes what was added together in one batch", async () => {
  const { writer, written, allow } = blocked();
  for (const name of ["a:1", "b:1", "a:2"]) {
    writer.add({ name });
  }
  allow();
  await writer.close();
  expect(written).toEqual([["a:1", "b:1", "a:2"]]);
});

it("drops only what the key itself has too much of", async () => {
  const { writer, written, lost, allow } = blocked();
  for (let index = 0; index < 20; index += 1) {
    writer.add({ name: `loud:${index}` });
  }
  for (const name of ["quiet:1", "quiet:2", "third:1", "third:2", "third:3", "fourth:1"]) {
    writer.add({ name });
  }
  allow();
  await writer.close();
  expect(lost.every((name) => name.startsWith("loud:"))).toBe(true);
  expect(written.flat().filter((name) => !name.startsWith("loud:"))).toHaveLength(6);
});

it("writes nothing twice when a batch with a refused row fails half-way", async () => {
  const written: string[] = [];
  const lost: string[] = [];
  let failures = 1;
  const writer = new BatchWriter<{ name: string }>({
    write: async (batch) => {
      const names = batch.map(({ name }) => name);
      if (names.includes("refused")) {
        throw Object.assign(new Error("refused"), { code: "22021" });
      }
      if (names.includes("later") && failures-- > 0) {
        throw new Error("away");
      }
      written.push(...names);
    },
    keyOf: () => "",
    maxItems: 10,
    maxItemsPerKey: 10,
    retryMs: 1,
    onRetry: () => {},
    onLost: ({ name }) => void lost.push(name),
  });
  for (const name of ["first", "second", "later", "refused"]) {
    writer.add({ name });
  }
  await expect.poll(() => [...written].sort()).toContain("later");
  await writer.close();
  expect([written, lost]).toEqual([["first", "second", "later"], ["refused"]]);
});
