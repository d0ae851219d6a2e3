import { expect, it } from "vitest";
import { wholeLines } from "./lines.ts";
import { TextQueue } from "./queue.ts";

it("blocks writers while there is no reader, and loses nothing", async () => {
  const queue = new TextQueue(3);
  let isThrough = false;
  expect(await queue.put("ab")).toBe(true);
  const waiting = queue.put("cd").then((goesOn) => {
    isThrough = true;
    return goesOn;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(isThrough).toBe(false);
  expect(await queue.take()).toBe("abcd");
  expect(await waiting).toBe(true);
});

it("ends for its reader after the queued text, and for writers immediately", async () => {
  const queue = new TextQueue(1);
  const waiting = queue.put("abc");
  queue.end();
  expect(await waiting).toBe(false);
  expect(await queue.put("d")).toBe(false);
  expect(await queue.take()).toBe("abc");
  expect(await queue.take()).toBeUndefined();
});

it("wakes a reader that waits", async () => {
  const queue = new TextQueue(9);
  const pending = queue.take();
  await queue.put("x");
  expect(await pending).toBe("x");
});

const pieces = async (...chunks: string[]) => {
  const written: string[] = [];
  async function* body() {
    for (const chunk of chunks) {
      yield Buffer.from(chunk);
    }
  }
  for await (const piece of wholeLines(body())) {
    written.push(piece.toString());
  }
  return written;
};

it("cuts a log into whole lines, however it arrives", async () => {
  expect(await pieces("a\nb", "c\n", "d", "e", "\nf")).toEqual(["a\n", "bc\n", "de\n", "f"]);
});

it("keeps the beginning alone of a line that does not end", async () => {
  const [piece = ""] = await pieces(...Array.from({ length: 100 }, () => "x".repeat(1_000)), "y\n");
  expect(piece.length).toBe(32 * 1024 + 2);
});
