import { expect, test } from "vitest";
import { Turns } from "./turns.ts";

const refuse = () => new Error("busy");
const limits = { all: 3, each: 2, waitMs: 60_000, waiting: 8 };

/** Work that is done when it is told to be. */
function piece() {
  const { promise, resolve } = Promise.withResolvers<void>();
  const work = { begun: false, done: resolve, run };
  function run(): Promise<void> {
    work.begun = true;
    return promise;
  }
  return work;
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

test("one key gets no more than its part, and the others go on", async () => {
  const turns = new Turns(limits);
  const [a1, a2, a3, b1] = [piece(), piece(), piece(), piece()];
  const all = [...[a1, a2, a3].map(({ run }) => turns.run("a", run, refuse)), turns.run("b", b1.run, refuse)];
  await settle();
  expect([a1, a2, a3, b1].map(({ begun }) => begun)).toEqual([true, true, false, true]);
  b1.done();
  await settle();
  expect(a3.begun).toBe(false);
  a1.done();
  await settle();
  expect(a3.begun).toBe(true);
  a2.done();
  a3.done();
  await Promise.all(all);
});

test("who waits longest begins first, and work that fails makes room too", async () => {
  const turns = new Turns({ ...limits, all: 1 });
  const order: string[] = [];
  const failed = turns.run("a", () => Promise.reject(new Error("broken")), refuse);
  const others = ["b", "c", "d"].map((key) => turns.run(key, async () => void order.push(key), refuse));
  await expect(failed).rejects.toThrow("broken");
  await Promise.all(others);
  expect(order).toEqual(["b", "c", "d"]);
});

test("who waits too long is refused, and never begins", async () => {
  const turns = new Turns({ ...limits, all: 1, waitMs: 5 });
  const [first, late] = [piece(), piece()];
  const running = turns.run("a", first.run, refuse);
  await expect(turns.run("b", late.run, refuse)).rejects.toThrow("busy");
  first.done();
  await running;
  await settle();
  expect(late.begun).toBe(false);
  await turns.run("b", async () => undefined, refuse);
});

test("so many wait and no more, and one key takes a part of the places alone", async () => {
  const turns = new Turns({ ...limits, all: 1 });
  const first = piece();
  const running = [turns.run("a", first.run, refuse)];
  for (let one = 0; one < 2; one++) running.push(turns.run("a", async () => undefined, refuse));
  await expect(turns.run("a", async () => undefined, refuse)).rejects.toThrow("busy");
  for (let one = 0; one < 6; one++) running.push(turns.run(`k${one}`, async () => undefined, refuse));
  await expect(turns.run("last", async () => undefined, refuse)).rejects.toThrow("busy");
  first.done();
  await Promise.all(running);
});
