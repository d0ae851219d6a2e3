import { expect, test } from "vitest";
import { StoreClock } from "./store-clock.ts";

test("a clock that was set back by less than passed between two rounds is found", () => {
  const clock = new StoreClock();
  expect(clock.setBackWithin(1_000_000, 0, 10)).toBeUndefined();
  expect(clock.setBackWithin(1_020_000, 20_000, 20_010)).toBeUndefined();
  // 20 seconds passed, and the clock shows 10 more.
  expect(clock.setBackWithin(1_030_000, 40_000, 40_010)).toBe(20_010);
  expect(clock.setBackWithin(1_031_000, 41_000, 41_010)).toBeUndefined();
});

test("a store that answers late is no clock that was set back", () => {
  const clock = new StoreClock();
  clock.setBackWithin(1_000_000, 0, 9_000);
  expect(clock.setBackWithin(1_001_000, 10_000, 19_000)).toBeUndefined();
});
