import { describe, expect, it } from "vitest";
import { isRepeatable, RETRIES, retryAfterMs, waitBefore } from "./retry.ts";

describe("what may be sent again", () => {
  it("is a read, or a write with a key", () => {
    const request = (method: string, headers = {}) => isRepeatable({ method, headers: new Headers(headers) });
    expect(request("GET")).toBe(true);
    expect(request("POST")).toBe(false);
    expect(request("DELETE")).toBe(false);
    expect(request("POST", { "Idempotency-Key": "0123456789abcdef" })).toBe(true);
  });
});

describe("Retry-After", () => {
  const now = Date.parse("2026-11-21T12:00:00Z");

  it("is seconds or a date, and nothing else", () => {
    expect(retryAfterMs("7", now)).toBe(7_000);
    expect(retryAfterMs("Sat, 21 Nov 2026 12:00:30 GMT", now)).toBe(30_000);
    expect(retryAfterMs("Sat, 21 Nov 2026 11:00:00 GMT", now)).toBe(0);
    for (const other of [null, "", "soon", "-1", "1.5", "99999999999"]) {
      expect(retryAfterMs(other, now)).toBeUndefined();
    }
  });
});

describe("the wait before the next attempt", () => {
  it("doubles, with jitter of half of it", () => {
    expect([1, 2, 3].map((attempt) => waitBefore(attempt, undefined, 0))).toEqual([125, 250, 500]);
    expect(waitBefore(1, undefined, 0.999)).toBeCloseTo(250, 0);
  });

  it("is at least what the server asks for, within the limit", () => {
    expect(waitBefore(1, 5_000, 0)).toBe(5_000);
    expect(waitBefore(1, 5_000, 0.5)).toBeGreaterThan(5_000);
    expect(waitBefore(1, RETRIES.maxWaitMs, 0.999)).toBe(RETRIES.maxWaitMs);
    expect(waitBefore(1, RETRIES.maxWaitMs + 1, 0)).toBeUndefined();
  });

  it("ends after the last attempt", () => {
    expect(waitBefore(RETRIES.attempts - 1, undefined, 0)).toBeDefined();
    expect(waitBefore(RETRIES.attempts, undefined, 0)).toBeUndefined();
  });
});
