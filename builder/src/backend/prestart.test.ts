import { expect, test } from "vitest";
import type { Engine } from "./backend.ts";
import { EarlyEngine } from "./prestart.ts";

const engine = {} as Engine;

/** An engine whose life is written down, and that starts when it is told to. */
function setUp(failure?: Error) {
  const life: string[] = [];
  const start = Promise.withResolvers<void>();
  const early = new EarlyEngine(async (log, use) => {
    log.info("trying");
    await start.promise;
    if (failure) {
      throw failure;
    }
    life.push("started");
    log.info("chosen");
    try {
      await use(engine);
      life.push("used");
    } catch (error) {
      life.push(String(error));
      throw error;
    } finally {
      life.push("closed");
    }
  });
  const log = { info: (message: string) => void life.push(`log: ${message}`) };
  return { early, life, start: start.resolve, log };
}

test("it starts before it is used, says then what it had to say, and ends when it is closed", async () => {
  const { early, life, start, log } = setUp();
  start();
  await early.use(log, async (given) => {
    expect(given).toBe(engine);
    life.push("building");
  });
  expect(life).toEqual(["started", "log: trying", "log: chosen", "building"]);
  await early.close();
  expect(life.slice(4)).toEqual(["used", "closed"]);
});

test("one that cannot start fails where it is used, and closes without a word", async () => {
  const { early, life, start, log } = setUp(new Error("no user namespaces"));
  start();
  await expect(early.use(log, () => Promise.reject(new Error("used")))).rejects.toThrow("no user namespaces");
  await early.close();
  expect(life).toEqual(["log: trying"]);
});

test("a failure of its use is told to both", async () => {
  const { early, life, start, log } = setUp();
  start();
  await expect(early.use(log, () => Promise.reject(new Error("step failed")))).rejects.toThrow("step failed");
  await early.close();
  expect(life.slice(-2)).toEqual(["Error: step failed", "closed"]);
});

test("one that nobody used is closed once it has started", async () => {
  const { early, life, start } = setUp();
  const closed = early.close();
  start();
  await closed;
  expect(life).toEqual(["started", "used", "closed"]);
});
