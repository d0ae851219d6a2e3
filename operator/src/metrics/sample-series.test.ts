import type { Reading } from "@slipway/controller-runtime";
import { jobRunStatus } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import { collecting, finished, type Series, seriesOf, withReading } from "./sample-series.ts";

const START = new Date("2026-01-01T00:00:00Z");
const at = (seconds: number): number => START.getTime() + seconds * 1_000;
/** A reading `seconds` after the start: CPU seconds used by then, cores now, bytes now. */
const reading = (seconds: number, used?: number, cores?: number, bytes?: number): Reading => ({
  createdAt: at(0),
  ...(used === undefined
    ? {}
    : {
        cpu: {
          at: at(seconds),
          coreNanoSeconds: used * 1e9,
          ...(cores === undefined ? {} : { nanoCores: cores * 1e9 }),
        },
      }),
  ...(bytes === undefined ? {} : { memory: { at: at(seconds), workingSetBytes: bytes } }),
});
const after = (readings: Reading[], from: Series = seriesOf(START)): Series =>
  readings.reduce(withReading, from);

test("average CPU is the counter over the life, its peak the highest reading; memory is weighted by time", () => {
  const series = after([reading(10, 2, 0.3, 100), reading(20, 12, 0.9, 300), reading(40, 16, 0.1, 200)]);
  expect(collecting(series)).toEqual({
    status: "collecting",
    samples: 3,
    sampledAt: "2026-01-01T00:00:40.000Z",
    averageCores: "0.4",
    // Between two readings 10 CPU seconds in 10 to 11 s.
    peakCores: (10 / 11).toFixed(9).replace(/0+$/, ""),
    latestCores: "0.1",
    averageBytes: "200",
    peakBytes: "300",
    latestBytes: "200",
  });
  expect(finished(series)).toEqual({
    status: "available",
    samples: 3,
    averageCores: "0.4",
    peakCores: "0.909090909",
    averageBytes: "200",
    peakBytes: "300",
  });
});

test("what the status says is of its schema's shape", () => {
  const series = after([reading(10, 2, 0.3, 100)]);
  for (const metrics of [collecting(series), finished(series), finished(seriesOf(START))]) {
    expect(jobRunStatus.shape.metrics.parse(metrics)).toEqual(metrics);
  }
});

test("without a sample a run's metrics are unavailable, and nothing is zero", () => {
  expect(finished(seriesOf(START))).toEqual({ status: "unavailable", samples: 0 });
});

describe("what is no sample", () => {
  const series = after([reading(10, 2, 0.3, 100)]);
  test.each([
    ["the values of before, with their time", reading(10, 2, 0.3, 100)],
    ["values of before the ones that are known", reading(8, 1, 0.3, 100)],
    ["values of before the start", reading(-1, 1, 0.3, 100)],
    [
      "values of a container that was made after this one began",
      { ...reading(20, 1, 0.3, 100), createdAt: at(15) },
    ],
    ["nothing", {}],
  ])("%s", (_, other) => {
    expect(withReading(series, other)).toBe(series);
  });
});

test("a part that is not known leaves the other alone", () => {
  const cpuOnly = after([reading(10, 5)]);
  expect(finished(cpuOnly)).toEqual({
    status: "available",
    samples: 1,
    averageCores: "0.5",
    peakCores: "0.5",
  });
  const memoryOnly = after([reading(10, undefined, undefined, 7)]);
  expect(finished(memoryOnly)).toEqual({
    status: "available",
    samples: 1,
    averageBytes: "7",
    peakBytes: "7",
  });
});

test("a life of a second says nothing of CPU, one of a few never too much", () => {
  expect(finished(after([reading(1, 0.9, undefined, 5)]))).toEqual({
    status: "available",
    samples: 1,
    averageBytes: "5",
    peakBytes: "5",
  });
  // One core for up to 5 s of which 4 are known.
  expect(Number(finished(after([reading(4, 4.9)])).averageCores)).toBeLessThanOrEqual(1);
});

test("an operator that takes over continues from the status", () => {
  const before = collecting(after([reading(10, 2, 0.3, 100), reading(20, 12, 0.9, 300)]));
  const series = after([reading(40, 16, 0.1, 200)], seriesOf(START, before));
  expect(finished(series)).toEqual({
    status: "available",
    samples: 3,
    averageCores: "0.4",
    peakCores: "0.909090909",
    averageBytes: "200",
    peakBytes: "300",
  });
  // No sample since: what was known stays.
  expect(finished(seriesOf(START, before))).toMatchObject({
    status: "available",
    samples: 2,
    averageCores: "0.6",
  });
  // The reading that the one before has counted already.
  expect(after([reading(20, 12, 0.9, 300)], seriesOf(START, before)).samples).toBe(2);
});

test("a counter that went back is of no use for the time between", () => {
  const series = after([reading(10, 8), reading(20, 6)]);
  expect(finished(series)).toMatchObject({ averageCores: "0.3", peakCores: "0.8" });
});
