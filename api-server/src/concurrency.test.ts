import { expect, it } from "vitest";
import { mapConcurrently, SharedReads } from "./concurrency.ts";

it("works on so many concurrently, and keeps the order", async () => {
  let running = 0;
  let most = 0;
  const results = await mapConcurrently([3, 1, 2, 1, 1], 2, async (milliseconds) => {
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setTimeout(resolve, milliseconds));
    running -= 1;
    return milliseconds * 10;
  });
  expect(results).toEqual([30, 10, 20, 10, 10]);
  expect(most).toBe(2);
});

it("rejects with what the work threw", async () => {
  const work = async (item: number) => {
    if (item === 2) {
      throw new Error("no");
    }
  };
  await expect(mapConcurrently([1, 2, 3], 2, work)).rejects.toThrow("no");
});

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Reads of a value that another caller writes, each ended by the test. */
function source() {
  const reads = new SharedReads<number>();
  const open: (() => void)[] = [];
  const written = { value: 0 };
  const read = (key = "a") =>
    reads.read(key, async () => {
      const { value } = written;
      await new Promise<void>((resolve) => open.push(resolve));
      return value;
    });
  const end = async () => {
    open.shift()?.();
    await turn();
  };
  return { open, written, read, end };
}

it("calls during a read share the next, and see what was written before they called", async () => {
  const { open, written, read, end } = source();
  const first = read();
  written.value = 1;
  const others = [read(), read(), read()];
  await turn();
  expect(open).toHaveLength(1);
  await end();
  expect(await first).toBe(0);
  expect(open).toHaveLength(1);
  written.value = 2;
  const last = read();
  await end();
  expect(await Promise.all(others)).toEqual([1, 1, 1]);
  await end();
  expect(await last).toBe(2);
  expect(open).toHaveLength(0);
});

it("those of another key are read beside them", async () => {
  const { open, read, end } = source();
  const both = [read("a"), read("b")];
  await turn();
  expect(open).toHaveLength(2);
  await end();
  await end();
  expect(await Promise.all(both)).toEqual([0, 0]);
});

it("one that fails fails for all callers that share it, and the next is read again", async () => {
  const reads = new SharedReads<string>();
  const { promise, reject } = Promise.withResolvers<string>();
  const first = reads.read("a", () => promise);
  const next = [0, 1].map(() => reads.read("a", async () => "read"));
  reject(new Error("broken"));
  await expect(first).rejects.toThrow("broken");
  expect(await Promise.all(next)).toEqual(["read", "read"]);
  expect(await reads.read("a", async () => "again")).toBe("again");
});
