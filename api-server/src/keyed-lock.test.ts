import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { KeyedLock } from "./keyed-lock.ts";

it("runs work of one key in order, past a failure, and of another key at the same time", async () => {
  const lock = new KeyedLock();
  const seen: string[] = [];
  const work = (name: string, ms: number) => async () => {
    seen.push(`+${name}`);
    await sleep(ms);
    seen.push(`-${name}`);
    if (name === "a1") throw new Error("a1");
  };
  const results = await Promise.allSettled([
    lock.run("a", work("a1", 20)),
    lock.run("a", work("a2", 1)),
    lock.run("b", work("b1", 1)),
  ]);
  expect(results.map((result) => result.status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
  expect(seen.indexOf("+a2")).toBeGreaterThan(seen.indexOf("-a1"));
  expect(seen.indexOf("-b1")).toBeLessThan(seen.indexOf("-a1"));
});

it("refuses work whose turn does not come in time, and keeps the order for what comes after", async () => {
  const lock = new KeyedLock();
  const seen: string[] = [];
  const work = (name: string) => async () => {
    seen.push(`+${name}`);
    await sleep(60);
    seen.push(`-${name}`);
  };
  const limit = { waitMs: 20, refuse: () => new Error("late") };
  const first = lock.run("a", work("first"), limit);
  const late = lock.run("a", work("late"), limit);
  await expect(late).rejects.toThrow("late");
  await Promise.all([first, lock.run("a", work("next"))]);
  expect(seen).toEqual(["+first", "-first", "+next", "-next"]);
});
