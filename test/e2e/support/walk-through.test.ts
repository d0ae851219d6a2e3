import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { run } from "../../../hack/lib/exec.ts";
import { root } from "../../../hack/lib/paths.ts";
import { functionsOf, shellOf } from "./walk-through.ts";

const page = `# Page

## First

\`\`\`sh
field() { cat; }
. env
\`\`\`

\`\`\`json
{}
\`\`\`

Then:

\`\`\`sh
# ## no heading
second
\`\`\`

## Second
`;

describe("the shell of a section", () => {
  test("is its shell blocks, in order", () => {
    expect(shellOf(page, "First")).toBe("field() { cat; }\n. env\n\n# ## no heading\nsecond\n");
  });

  test("that has none is refused", () => {
    expect(() => shellOf(page, "Second")).toThrow("no shell block under Second");
    expect(() => shellOf(page, "Third")).toThrow("no shell block under Third");
  });

  test("has functions that later sections use", () => {
    expect(functionsOf(shellOf(page, "First"), ["field"])).toBe("field() { cat; }\n");
    expect(() => functionsOf(shellOf(page, "First"), ["owner"])).toThrow("no line defines owner");
  });
});

test("each section of the README with shell blocks can be parsed by bash, the scheduled job's apart", async () => {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const headings = [...readme.matchAll(/^## (.*)$/gm)].map(([, heading = ""]) => heading);
  // It begins with a part of a body.
  const whole = headings.filter((heading) => heading !== "A scheduled job");
  const withShell = whole.filter((heading) =>
    readme.split(`## ${heading}\n`)[1]?.split(/^## /m)[0]?.includes("```sh"),
  );
  expect(withShell).toContain("A database, a queue and a worker");
  for (const heading of withShell) {
    await run("bash", ["-n", "-c", shellOf(readme, heading)]);
  }
});
