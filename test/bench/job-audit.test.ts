import { expect, test } from "vitest";
import { spreadOf } from "./job-audit.ts";

test("the percentiles are the median, the 99th of a hundred and the largest", () => {
  const values = Array.from({ length: 200 }, (_, index) => 200 - index);
  expect(spreadOf(values)).toEqual({ p50: 100, p99: 198, max: 200, count: 200 });
  expect(spreadOf([7])).toEqual({ p50: 7, p99: 7, max: 7, count: 1 });
  expect(spreadOf([])).toEqual({ p50: Number.NaN, p99: Number.NaN, max: Number.NaN, count: 0 });
});
