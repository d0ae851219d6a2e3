import { expect, test } from "vitest";
import { spansOf } from "./scope.ts";

const cycles = ["2025-11-01", "2025-12-01", "2026-01-01", "2026-02-01"];

test.each([
  ["cycles with few charges are one span", {}, [["2025-11-01", "2026-03-01"]]],
  [
    "so are those that have no more together than are wanted",
    { "2025-12-01": 60, "2026-01-01": 40, "2026-02-01": 1 },
    [
      ["2025-11-01", "2026-02-01"],
      ["2026-02-01", "2026-03-01"],
    ],
  ],
  [
    "one with more is alone",
    { "2025-12-01": 500, "2026-02-01": 1 },
    [
      ["2025-11-01", "2025-12-01"],
      ["2025-12-01", "2026-01-01"],
      ["2026-01-01", "2026-03-01"],
    ],
  ],
])("%s", (_, charges, expected) => {
  const spans = spansOf(cycles, new Map(Object.entries(charges)), 100);
  expect(spans.map(({ from, to }) => [from, to])).toEqual(expected);
});
