import { describe, expect, it } from "vitest";
import { jsonShapeProblem } from "./json-shape.ts";

describe("jsonShapeProblem", () => {
  it.each([
    "null",
    '"a"',
    "{}",
    "[]",
    '{"a":{"a":[{"a":1},{"a":2}]},"b":"a"}',
    '{"a":"a","b":["a","a"],"c":"\\"a\\":1,"}',
    '{"a\\\\":1,"a\\\\\\"":2,"a":3}',
    `${"[".repeat(32)}${"]".repeat(32)}`,
  ])("finds nothing wrong with %s", (text) => {
    JSON.parse(text);
    expect(jsonShapeProblem(text)).toBeUndefined();
  });

  it.each([
    ['{"a":1,"a":1}', /"a" stands twice/],
    ['{"a":1,"b":[{"c":1,"d":{},"c":2}]}', /"c" stands twice/],
    ['{"a":1,"\\u0061":2}', /"a" stands twice/],
    ['{ "x" : "}" , "y" : [ "{" ] , "x" : 1 }', /"x" stands twice/],
    ['{"a":{"b":1},"a":2}', /"a" stands twice/],
    [`${"[".repeat(33)}${"]".repeat(33)}`, /deeper than 32/],
    [`${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`, /deeper than 32/],
  ])("refuses %.60s", (text, message) => {
    JSON.parse(text);
    expect(jsonShapeProblem(text)).toMatch(message);
  });

  it("takes the largest body in little time", () => {
    const text = JSON.stringify({ envs: Array.from({ length: 50 }, () => ({ value: '"'.repeat(100_000) })) });
    const start = performance.now();
    expect(jsonShapeProblem(text)).toBeUndefined();
    expect(performance.now() - start).toBeLessThan(1_000);
  });
});
