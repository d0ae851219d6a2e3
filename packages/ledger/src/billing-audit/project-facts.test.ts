import { expect, test } from "vitest";
import type { AuditedChange, Metered } from "./histories.ts";
import { rangesOf } from "./project-facts.ts";

const BEGIN = Date.UTC(2026, 0, 1);
const NOW = new Date(Date.UTC(2026, 2, 1));

function project(instances: number, late: number): Metered {
  const change = (number: number) =>
    ({ number, at: new Date(BEGIN), instances, late: number > 1 }) as AuditedChange;
  return {
    meter: { metered_until: NOW.getTime() } as Metered["meter"],
    changes: Array.from({ length: 1 + late }, (_, index) => change(index + 1)),
  };
}

test.each([
  ["one instance", project(1, 1), 2],
  ["many instances", project(100, 1), 1 + 6],
  ["many late changes", project(100, 100), 1 + 60],
  ["no history", { ...project(1, 0), changes: [] }, 2],
])("facts of a project with %s are read in parts that follow each other", (_, own, parts) => {
  const [terms, ...hours] = rangesOf(own, NOW);
  expect(terms).toBe("terms");
  expect(1 + hours.length).toBe(parts);
  const bounds = hours.flatMap((range) => (range === "terms" ? [] : [range.from, range.to]));
  expect(bounds.at(0)).toBe(0);
  expect(bounds.at(-1)).toBe(100_000);
  expect(bounds.slice(1, -1).filter((_bound, index) => index % 2 === 0)).toEqual(
    bounds.slice(1, -1).filter((_bound, index) => index % 2 === 1),
  );
});

test("a project that is charged up to a time to come is read up to now, and one that is not yet is read, too", () => {
  const own = project(1, 0);
  const none = { ...own, meter: { ...own.meter, metered_until: null } };
  expect(rangesOf(none, NOW)).toEqual(["terms", { from: 0, to: 100_000 }]);
  const far = { ...own, meter: { ...own.meter, metered_until: Number.POSITIVE_INFINITY } };
  expect(rangesOf(far, NOW)).toHaveLength(2);
});
