import { expect, test } from "vitest";
import { LeadershipPeriods } from "./leadership-periods.ts";

test("a leader notices what is reported for long enough, and nothing is noticed while none leads", () => {
  const leading = new LeadershipPeriods(40);
  expect(leading.noticed(0, 1_000)).toBe(false);
  leading.changed(true, 100);
  expect(leading.noticed(0, 139)).toBe(false);
  expect(leading.noticed(0, 140)).toBe(true);
  expect(leading.noticed(120, 150)).toBe(false);
  leading.changed(false, 200);
  expect(leading.noticed(0, 1_000)).toBe(true);
  expect(leading.noticed(170, 1_000)).toBe(false);
});

test("two leaders that each led for a moment have noticed nothing", () => {
  const leading = new LeadershipPeriods(40);
  leading.changed(true, 100);
  leading.changed(true, 130);
  leading.changed(false, 160);
  expect(leading.noticed(0, 1_000)).toBe(false);
});
