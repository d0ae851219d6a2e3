import { expect, test } from "vitest";
import { TimeoutError, withTimeout } from "./clock.ts";

test("resolves or rejects as the promise does within the time", async () => {
  expect(await withTimeout(Promise.resolve(1), 1_000)).toBe(1);
  await expect(withTimeout(Promise.reject(new Error("refused")), 1_000)).rejects.toThrow("refused");
});

test("rejects with a TimeoutError after the time, and drops a later result", async () => {
  const late = Promise.withResolvers<never>();
  await expect(withTimeout(late.promise, 5)).rejects.toBeInstanceOf(TimeoutError);
  // Without a handler an unhandled rejection would end the test run.
  late.reject(new Error("too late"));
  await new Promise((resolve) => setImmediate(resolve));
});
