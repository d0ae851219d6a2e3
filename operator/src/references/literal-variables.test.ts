import { expect, test } from "vitest";
import { literalVariables } from "./literal-variables.ts";

const reference = `\${project:shop-db.password}`;
const variables = { PASSWORD: reference, URL: `http://x:${reference}@y`, TEXT: `$${reference}`, A: "$$ 1" };

// Shows: docs/references.md#values: builds | neither: variables with references are not there
test("variables with references are left out, and escapes become the text", () => {
  expect(literalVariables(variables, true)).toEqual({ TEXT: reference, A: "$$ 1" });
});

test("nothing is read into variables that have no references", () => {
  expect(literalVariables(variables, false)).toBe(variables);
});
