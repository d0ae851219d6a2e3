import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { historyQuery, historyWindow } from "./history.ts";

const now = new Date("2026-11-29T12:34:56.789Z");
const windowOf = (query: Record<string, string>, at = now) => historyWindow(historyQuery.parse(query), at);

describe("the window of a history", () => {
  it("is none where no range is requested", () => {
    expect(windowOf({})).toBeUndefined();
    expect(windowOf({ instance: "x" })).toBeUndefined();
  });

  it.each([
    ["60", undefined, 60, 2],
    ["300", undefined, 60, 6],
    ["3600", undefined, 60, 61],
    ["86400", undefined, 300, 289],
    ["691200", undefined, 1_800, 385],
    ["3600", "15", 15, 241],
    ["7485", "15", 15, 500],
    ["691200", "1386", 1_386, 500],
    ["86400", "86400", 86_400, 2],
  ])("of %s s in steps of %s s has steps of %i s, %i of them", (range, resolution, step, steps) => {
    const query = {
      range_seconds: range,
      ...(resolution === undefined ? {} : { resolution_seconds: resolution }),
    };
    const { from, to, stepSeconds } = windowOf(query) ?? { from: 0, to: 0, stepSeconds: 0 };
    expect([stepSeconds, (to - from) / stepSeconds]).toEqual([step, steps]);
  });

  // Shows: docs/metrics.md#what-is-promised: an answer is bounded, whatever is requested
  it("covers its range, begins and ends with whole steps, and has at most 500", () => {
    const range = fc.integer({ min: 60, max: 691_200 });
    const step = fc.option(fc.integer({ min: 15, max: 86_400 }));
    fc.assert(
      fc.property(
        range,
        step,
        fc.date({ min: new Date(1e12), noInvalidDate: true }),
        (seconds, wanted, at) => {
          const parsed = historyQuery.safeParse({
            range_seconds: String(seconds),
            ...(wanted === null ? {} : { resolution_seconds: String(wanted) }),
          });
          if (!parsed.success) {
            expect(wanted !== null && (wanted > seconds || Math.ceil(seconds / wanted) > 499)).toBe(true);
            return;
          }
          const { from, to, stepSeconds } = historyWindow(parsed.data, at) ?? {
            from: 0,
            to: 0,
            stepSeconds: 1,
          };
          const moment = at.getTime() / 1000;
          expect([from % stepSeconds, to % stepSeconds]).toEqual([0, 0]);
          expect(to - stepSeconds <= moment && moment < to).toBe(true);
          const steps = (to - from) / stepSeconds;
          expect([steps >= 2, steps <= 500]).toEqual([true, true]);
          expect(from <= moment - seconds && moment - seconds < from + stepSeconds).toBe(true);
        },
      ),
    );
  });
});

it.each([
  [{ range_seconds: "59" }, "range_seconds"],
  [{ range_seconds: "691201" }, "range_seconds"],
  [{ range_seconds: "1e3" }, "range_seconds"],
  [{ range_seconds: "-60" }, "range_seconds"],
  [{ resolution_seconds: "60" }, "range_seconds"],
  [{ range_seconds: "3600", resolution_seconds: "14" }, "resolution_seconds"],
  [{ range_seconds: "7500", resolution_seconds: "15" }, "resolution_seconds"],
  [{ range_seconds: "86400", resolution_seconds: "60" }, "resolution_seconds"],
  [{ range_seconds: "60", resolution_seconds: "120" }, "resolution_seconds"],
])("%j is refused for its %s", (query, field) => {
  const { error } = historyQuery.safeParse(query);
  expect(error?.issues.map(({ path }) => path[0])).toContain(field);
});
