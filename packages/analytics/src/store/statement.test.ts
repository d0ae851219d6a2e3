import fc from "fast-check";
import { expect, test } from "vitest";
import { type Column, countsBy, eventsOf } from "./statement.ts";

const place = { database: "slipway", cluster: undefined };
const text = fc.oneof(fc.string(), fc.constantFrom("'", "\\", "{p0:String}", "'; DROP TABLE events --", "`"));
const selection = fc.record({
  organization: text,
  project: text,
  window: fc.record({ from: fc.integer({ min: 0, max: 2 ** 41 }), to: fc.integer({ min: 0, max: 2 ** 41 }) }),
  filter: fc.record({ sourceIp: text, path: text, statusCode: fc.integer({ min: 100, max: 599 }) }),
});
const column = fc.constantFrom<Column>("status", "route", "user_agent", "source_ip");

// Shows: docs/analytics.md#the-api: `path`: a path or a route; any text is a value and never SQL
test("no value is ever in the text of a statement", () => {
  fc.assert(
    fc.property(selection, selection, column, (one, other, by) => {
      const counting = { measures: "all", columns: [by], most: { limit: 5, offset: 0 } } as const;
      // The window decides what is asked; the values do not.
      const moved = { ...other, window: one.window };
      expect(countsBy(place, one, counting).query).toBe(countsBy(place, moved, counting).query);
      expect(eventsOf(place, one, { limit: 1, offset: 0 }).query).toBe(
        eventsOf(place, other, { limit: 50, offset: 7 }).query,
      );
    }),
  );
});

test("every place in a statement has a value, and every value a place", () => {
  fc.assert(
    fc.property(selection, column, (one, by) => {
      const { query, parameters } = countsBy(place, one, {
        measures: "number",
        columns: ["status", by],
        among: { column: "status", values: [200] },
      });
      const places = [...query.matchAll(/\{(p\d+):/g)].map(([, key]) => key);
      expect([...new Set(places)].sort()).toEqual(Object.keys(parameters).sort());
    }),
  );
});
