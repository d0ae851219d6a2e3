import { expect, it } from "vitest";
import { monthOf } from "./deployments.ts";

// Shows: docs/applications.md#project-settings: historic deployments: of this month by the server's
it.each([
  ["2026-03-01T00:00:00.000Z", "2026-03-01T00:00:00.000Z", "2026-04-01T00:00:00.000Z"],
  ["2026-03-31T23:59:59.999Z", "2026-03-01T00:00:00.000Z", "2026-04-01T00:00:00.000Z"],
  ["2026-12-15T12:00:00.000Z", "2026-12-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"],
  ["2028-02-29T12:00:00.000Z", "2028-02-01T00:00:00.000Z", "2028-03-01T00:00:00.000Z"],
])("the month of %s begins %s and ends before %s", (moment, from, to) => {
  const month = monthOf(new Date(moment));
  expect([month.from.toISOString(), month.to.toISOString()]).toEqual([from, to]);
});
