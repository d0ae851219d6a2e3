import { describe, expect, it } from "vitest";
import { bucketsOf, ranges } from "./buckets.ts";

describe("the bars of a range", () => {
  it.each(ranges)("of $name lie side by side, reach until now, and are few", (range) => {
    const now = Date.UTC(2026, 10, 22, 4, 7, 13, 5);
    const buckets = bucketsOf(range, now);
    expect(buckets.length).toBeLessThanOrEqual(15);
    for (const [index, { from, to }] of buckets.entries()) {
      expect(to - from).toBe(range.bucketSeconds * 1_000);
      expect(from % (range.bucketSeconds * 1_000)).toBe(0);
      if (index > 0) {
        expect(from).toBe(buckets[index - 1]?.to);
      }
    }
    const last = buckets.at(-1);
    expect(last && last.from <= now && now < last.to).toBe(true);
    const span = (last?.to ?? 0) - (buckets[0]?.from ?? 0);
    expect(span).toBe(Math.ceil(range.seconds / range.bucketSeconds) * range.bucketSeconds * 1_000);
  });

  it("are complete once no late data is expected", () => {
    const [range] = ranges;
    const begin = Date.UTC(2026, 10, 22, 4, 0, 0);
    expect(
      bucketsOf(range, begin + 1_000)
        .slice(-2)
        .map(({ isComplete }) => isComplete),
    ).toEqual([false, false]);
    expect(
      bucketsOf(range, begin + 10_000)
        .slice(-2)
        .map(({ isComplete }) => isComplete),
    ).toEqual([true, false]);
  });
});
