import { describe, expect, it } from "vitest";
import { ApiFailure } from "./api.ts";
import { isPassing, sleep, waitAfter } from "./updates.ts";

const failure = (status: number, retryAfter?: number) =>
  new ApiFailure(status, "CODE", "message", { retryAfter });

describe("retries", () => {
  it("waits longer after each failure, or as long as the API says", () => {
    expect([1, 2, 3, 20].map((failures) => waitAfter(failures, 1_000, failure(503)))).toEqual([
      2_000, 4_000, 8_000, 60_000,
    ]);
    expect(waitAfter(1, 1_000, failure(429, 17))).toBe(17_000);
  });

  it("is of use only where another answer may come", () => {
    expect([0, 429, 500, 503].map((status) => isPassing(failure(status)))).toEqual([true, true, true, true]);
    expect([400, 401, 402, 403, 404].some((status) => isPassing(failure(status)))).toBe(false);
  });

  it("ends immediately when another view is opened", async () => {
    const left = new AbortController();
    const slept = sleep(60_000, left.signal);
    left.abort(new Error("left"));
    await expect(slept).rejects.toThrow("left");
  });
});
