import { describe, expect, it } from "vitest";
import { MemoryRateLimiter, rateLimitHeader, rateLimitPolicyHeader, scaledLimit } from "./limiter.ts";

describe("MemoryRateLimiter", () => {
  it("allows the limit, refuses the next, and allows again when the window has ended", () => {
    let now = 0;
    const limiter = new MemoryRateLimiter(() => now);
    for (let left = 9; left >= 0; left -= 1) {
      expect(limiter.take("a", 10, 60)).toMatchObject({ allowed: true, remaining: left });
    }
    now = 59_001;
    expect(limiter.take("a", 10, 60)).toMatchObject({ allowed: false, remaining: 0, resetSeconds: 1 });
    now = 60_000;
    expect(limiter.take("a", 10, 60)).toMatchObject({ allowed: true, remaining: 9 });
  });

  it("counts a call less that is given back, and none that was not counted", () => {
    const limiter = new MemoryRateLimiter(() => 0);
    limiter.giveBack("a");
    expect(limiter.take("a", 1, 60).allowed).toBe(true);
    limiter.giveBack("a");
    limiter.giveBack("a");
    expect(limiter.take("a", 1, 60).allowed).toBe(true);
    expect(limiter.take("a", 1, 60).allowed).toBe(false);
  });

  it("counts each bucket on its own", () => {
    const limiter = new MemoryRateLimiter(() => 0);
    expect(limiter.take("a", 1, 60).allowed).toBe(true);
    expect(limiter.take("b", 1, 60).allowed).toBe(true);
    expect(limiter.take("a", 1, 60).allowed).toBe(false);
  });
});

describe("limits", () => {
  // Shows: docs/applications.md#limits: scaled by `SLIPWAY_RATE_LIMIT_SCALE`: rounded up, at least 1
  it.each([
    [10, 1, 10],
    [10, 0.25, 3],
    [5, 0.001, 1],
    [100, 1000, 100_000],
  ])("of %i scaled by %d are %i", (limit, scale, expected) => {
    expect(scaledLimit({ limit, windowSeconds: 60, per: "ip" }, scale)).toBe(expected);
  });

  // Shows: docs/applications.md#limits: `RateLimit`, `RateLimit-Policy`, `Retry-After`
  it("are reported in headers", () => {
    expect(rateLimitPolicyHeader(10, 60)).toBe('"default";q=10;w=60');
    const decision = { allowed: true, limit: 10, remaining: 4, resetSeconds: 31 };
    expect(rateLimitHeader(decision)).toBe('"default";r=4;t=31');
  });
});
