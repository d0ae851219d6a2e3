import { expect, it } from "vitest";
import { BatchWriter } from "./audit-batches.ts";

/** A writer of `key:number` that cannot write until it is allowed to. */
function blocked({ most = 10, mostOfKey = 6 } = {}) {
  const written: string[][] = [];
  const lost: string[] = [];
  const { promise: allowed, resolve: allow } = Promise.withResolvers<void>();
  const writer = new BatchWriter<{ name: string }>({
    write: async (batch) => {
      await allowed;
      written.push(batch.map(({ name }) => name));
    },
    keyOf: ({ name }) => name.split(":")[0] as string,
    most,
    mostOfKey,
    retryMs: 1,
    onRetry: () => {},
    onLost: ({ name }) => void lost.push(name),
  });
  return { writer, written, lost, allow };
}

it("writes what was added together in one batch", async () => {
  const { writer, written, allow } = blocked();
  for (const name of ["a:1", "b:1", "a:2"]) writer.add({ name });
  allow();
  await writer.close();
  expect(written).toEqual([["a:1", "b:1", "a:2"]]);
});

it("drops only what the key itself has too much of", async () => {
  const { writer, written, lost, allow } = blocked();
  for (let index = 0; index < 20; index += 1) writer.add({ name: `loud:${index}` });
  for (const name of ["quiet:1", "quiet:2", "third:1", "third:2", "third:3", "fourth:1"])
    writer.add({ name });
  allow();
  await writer.close();
  expect(lost.every((name) => name.startsWith("loud:"))).toBe(true);
  expect(written.flat().filter((name) => !name.startsWith("loud:"))).toHaveLength(6);
});
