import { expect, test } from "vitest";
import { inTime, TooLate } from "./timeout.ts";

test("gives on what comes in time, good or bad", async () => {
  expect(await inTime(Promise.resolve(1), 1_000)).toBe(1);
  await expect(inTime(Promise.reject(new Error("refused")), 1_000)).rejects.toThrow("refused");
});

test("ends the wait for what does not come, and drops what comes later", async () => {
  const late = Promise.withResolvers<never>();
  await expect(inTime(late.promise, 5)).rejects.toBeInstanceOf(TooLate);
  // Would end the test run if nobody listened.
  late.reject(new Error("too late"));
  await new Promise((resolve) => setImmediate(resolve));
});
