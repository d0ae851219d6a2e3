import { expect, it } from "vitest";
import { RETRY_PAUSES_MS, retryPauseMs } from "./schedule.ts";

// Shows: docs/webhooks.md#delivery: an attempt that fails
it("a delivery that fails is tried for three days, at times that differ", () => {
  const pauses = RETRY_PAUSES_MS.map((_, index) => retryPauseMs(index + 1, 0) ?? 0);
  expect(pauses).toEqual(pauses.toSorted((a, b) => a - b));
  expect(pauses.reduce((sum, pause) => sum + pause, 0)).toBeGreaterThan(3 * 86_400_000);
  expect(retryPauseMs(1, 0.5)).toBe(5_500);
  expect(retryPauseMs(RETRY_PAUSES_MS.length + 1, 0)).toBeUndefined();
});
