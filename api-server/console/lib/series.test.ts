import { describe, expect, it } from "vitest";
import { addSample, bucketsOf, ranges, type Sample, sampleOf } from "./series.ts";

describe("the bars of a range", () => {
  it.each(ranges)("of $name are adjacent, end now, and are few", (range) => {
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

describe("what was measured", () => {
  const observed_at = "2026-11-22T04:00:00.000Z";
  const at = Date.parse(observed_at);

  it.each([
    [
      "PostgreSQL",
      { type: "postgresql", observed_at, resource: { cpu_usage_cores: 0.2, memory_usage_bytes: 5 } },
      { at, cpu: 0.2, memory: 5 },
    ],
    [
      "Valkey",
      { type: "valkey", observed_at, availability: "available", cpu: 0.1, memory: 7 },
      { at, cpu: 0.1, memory: 7 },
    ],
    [
      "half of it",
      { observed_at, resource: { cpu_usage_cores: null, memory_usage_bytes: 5 } },
      { at, cpu: null, memory: 5 },
    ],
    ["no time", { cpu: 0.1, memory: 7 }, { at: 99, cpu: 0.1, memory: 7 }],
    ["nothing of Valkey", { observed_at: null, availability: "unavailable", cpu: 0, memory: 0 }, undefined],
    ["nothing", { resource: { cpu_usage_cores: null, memory_usage_bytes: null } }, undefined],
  ])("of %s is read", (_about, answer, sample) => {
    expect(sampleOf(answer, 99)).toEqual(sample);
  });

  it("counts once, and the oldest goes first", () => {
    let known: readonly Sample[] = [];
    for (let moment = 0; moment < 1_000; moment += 1) {
      known = addSample(known, { at: moment, cpu: 1, memory: 1 });
      known = addSample(known, { at: moment, cpu: 2, memory: 2 });
    }
    expect([known.length, known[0]?.at, known.at(-1)]).toEqual([720, 280, { at: 999, cpu: 1, memory: 1 }]);
  });
});
