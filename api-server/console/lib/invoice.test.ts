import { expect, it } from "vitest";
import { documentParts, fileName, lineKind, lineQuantity } from "./invoice.ts";

it.each([
  [1, [["1", "1 to 1"]]],
  [10_000, [["1", "1 to 10000"]]],
  [
    10_001,
    [
      ["1", "1 to 10000"],
      ["2", "10001 to 10001"],
    ],
  ],
])("documents of %d lines have these parts", (lines, parts) => {
  expect(documentParts(lines)).toEqual(parts);
});

it("a file's name has the digits of the invoice alone", () => {
  expect([fileName("2026-000042", "1", 1), fileName("../2026-000042", "2", 3)]).toEqual([
    "invoice-2026-000042.csv",
    "invoice-2026-000042-2.csv",
  ]);
});

it("says what a line is for, and how much of it", () => {
  expect([lineKind({ kind: "job_run" }), lineKind({ kind: "credit", adjusts: true })]).toEqual([
    "job run",
    "credit, adjustment",
  ]);
  const quantities = [
    ["12", "minute"],
    ["0.5", "gb_hour"],
    ["1", "term"],
    ["2", "other_unit"],
    ["2", "constructor"],
  ].map(([quantity = "", unit = ""]) => lineQuantity({ quantity, unit }));
  expect(quantities).toEqual(["12 min", "0.5 GB × h", "1", "2 other unit", "2 constructor"]);
});
