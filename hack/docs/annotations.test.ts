import { describe, expect, it } from "vitest";
import { annotationsOf } from "./annotations.ts";
import { sectionsOf } from "./pages.ts";

const shows = (promise: string): string => `// Shows: docs/jobs.md#runs: ${promise}`;

describe("annotations", () => {
  it.each([
    ["a test", `${shows("one")}\nit("runs once", () => {});`, "runs once"],
    [
      "a test of many rows",
      `${shows("one")}\nit.each([\n  ["a"],\n])("%s runs once", () => {});`,
      "%s runs once",
    ],
    ["one row", `it.each([\n  ${shows("one")}\n  ["a", "b"],\n  ["c", "d"],\n])("runs", () => {});`, "a, b"],
    ["one row of a constant", `const rows = [\n  ${shows("one")}\n  { name: "a" },\n];`, "a"],
  ])("are read above %s", (_, text, title) => {
    const [found, ...others] = annotationsOf("a.test.ts", text);
    expect(found).toMatchObject({ title, page: "docs/jobs.md", section: "runs", promise: "one" });
    expect(others).toEqual([]);
  });

  it("may be several above one test", () => {
    const found = annotationsOf("a.test.ts", `${shows("one")}\n${shows("two")}\nit("runs", () => {});`);
    expect(found.map(({ promise, line }) => [promise, line])).toEqual([
      ["one", 1],
      ["two", 2],
    ]);
  });

  it.each([
    ["above no test", `${shows("one")}\nconst a = 1;`],
    ["of another form", `// Shows: docs/jobs.md: one\nit("runs", () => {});`],
  ])("%s are refused", (_, text) => {
    expect(() => annotationsOf("a.test.ts", text)).toThrow("a.test.ts");
  });
});

describe("sections of a page", () => {
  it("have their anchors, their text and the rows of their tables", () => {
    const page =
      "# Jobs\n\n## Runs: `/v1`\n\nOne\n  line.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\n# no heading\n```\n## Runs\n";
    expect(sectionsOf("docs/jobs.md", page).map(({ anchor, rows }) => [anchor, rows])).toEqual([
      ["jobs", []],
      ["runs-v1", ["1 | 2"]],
      ["runs", []],
    ]);
  });
});
