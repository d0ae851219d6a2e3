import { expect, test } from "vitest";
import { LeadershipPeriods } from "./leadership-periods.ts";

test("a leader observes what is reported for long enough, and nothing is observed while none leads", () => {
  const leading = new LeadershipPeriods(40);
  expect(leading.observed(0, 1_000)).toBe(false);
  leading.changed(true, 100);
  expect(leading.observed(0, 139)).toBe(false);
  expect(leading.observed(0, 140)).toBe(true);
  expect(leading.observed(120, 150)).toBe(false);
  leading.changed(false, 200);
  expect(leading.observed(0, 1_000)).toBe(true);
  expect(leading.observed(170, 1_000)).toBe(false);
});

test("two leaders that each led for a moment have observed nothing", () => {
  const leading = new LeadershipPeriods(40);
  leading.changed(true, 100);
  leading.changed(true, 130);
  leading.changed(false, 160);
  expect(leading.observed(0, 1_000)).toBe(false);
});
