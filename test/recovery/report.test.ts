import { expect, test } from "vitest";
import { faults, markdown, type Results } from "./report.ts";

const results: Results = {
  commit: "0123abcd",
  lines: [
    { what: "projects", before: 50, after: 50, seconds: 40 },
    { what: "rows of PostgreSQL", before: 1_000, after: 1_000, seconds: 60.4 },
  ],
  steps: [{ name: "restore", seconds: 17.88 }],
  backup: { objects: { Project: 50, Secret: 8 }, ledgerBytes: 81_920 },
  emptyDatabases: { found: ["a"], expected: ["a"] },
};

test("everything came back", () => {
  expect(faults(results)).toEqual([]);
  expect(markdown(results)).toContain("50 x Project, 8 x Secret, and 80 KiB");
  expect(markdown(results)).toContain("| rows of PostgreSQL | 1000 | 1000 | 60 |");
  expect(markdown(results)).not.toContain("Wrong");
});

test("what is missing, and what is empty that should not be, is named", () => {
  const wrong: Results = {
    ...results,
    lines: [{ what: "projects", before: 50, after: 49, seconds: 240 }],
    emptyDatabases: { found: ["a", "b"], expected: ["a"] },
  };
  expect(faults(wrong)).toEqual(["projects: 49 of 50", "empty databases: a, b, not a"]);
  expect(markdown(wrong)).toContain("- projects: 49 of 50");
});
