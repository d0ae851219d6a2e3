import { expect, it } from "vitest";
import { cycleOf, recentCycles } from "./cycles.ts";

it("the cycles of a year are offered, by the month in UTC", () => {
  const cycles = recentCycles(new Date("2026-03-31T23:30:00-03:00"));
  expect(cycles).toHaveLength(12);
  expect([cycles[0], cycles[3], cycles[4], cycles[11]]).toEqual(["2026-04", "2026-01", "2025-12", "2025-05"]);
});

it.each([
  ["2026-03", "2026-03"],
  ["2026-04", undefined],
  ["2025-03", undefined],
  ["<b>", undefined],
  [undefined, undefined],
])("an address that names %s is of %s", (named, cycle) => {
  expect(cycleOf(named, new Date("2026-03-10T00:00:00Z"))).toBe(cycle);
});
