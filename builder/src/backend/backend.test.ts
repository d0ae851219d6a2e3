import { expect, test } from "vitest";
import { type BuilderBackend, PrestartedBackend } from "./backend.ts";

const backend = {} as BuilderBackend;

/** A backend that records its events, and starts when `start` is called. */
function setUp(failure?: Error) {
  const events: string[] = [];
  const start = Promise.withResolvers<void>();
  const prestarted = new PrestartedBackend(async (log, use) => {
    log.info("trying");
    await start.promise;
    if (failure) {
      throw failure;
    }
    events.push("started");
    log.info("chosen");
    try {
      await use(backend);
      events.push("used");
    } catch (error) {
      events.push(String(error));
      throw error;
    } finally {
      events.push("closed");
    }
  });
  const log = { info: (message: string) => void events.push(`log: ${message}`) };
  return { prestarted, events, start: start.resolve, log };
}

test("starts before it is used, logs its earlier messages then, and stops when it is closed", async () => {
  const { prestarted, events, start, log } = setUp();
  start();
  await prestarted.use(log, async (given) => {
    expect(given).toBe(backend);
    events.push("building");
  });
  expect(events).toEqual(["started", "log: trying", "log: chosen", "building"]);
  await prestarted.close();
  expect(events.slice(4)).toEqual(["used", "closed"]);
});

test("one that cannot start fails where it is used, and closes silently", async () => {
  const { prestarted, events, start, log } = setUp(new Error("no user namespaces"));
  start();
  await expect(prestarted.use(log, () => Promise.reject(new Error("used")))).rejects.toThrow(
    "no user namespaces",
  );
  await prestarted.close();
  expect(events).toEqual(["log: trying"]);
});

test("a failure of its use reaches both sides", async () => {
  const { prestarted, events, start, log } = setUp();
  start();
  await expect(prestarted.use(log, () => Promise.reject(new Error("step failed")))).rejects.toThrow(
    "step failed",
  );
  await prestarted.close();
  expect(events.slice(-2)).toEqual(["Error: step failed", "closed"]);
});

test("an unused one is closed once it has started", async () => {
  const { prestarted, events, start } = setUp();
  const closed = prestarted.close();
  start();
  await closed;
  expect(events).toEqual(["started", "used", "closed"]);
});
