import { describe, expect, it } from "vitest";
import { jsonShapeProblem, MAX_KEY_LENGTH, MAX_KEYS, MAX_VALUES } from "./json-body.ts";

const MIB = 1024 * 1024;
const objectOf = (keys: number) => `{${Array.from({ length: keys }, (_, index) => `"k${index}":1`).join()}}`;
/** A few times what a slow machine takes; what is quadratic takes minutes. */
const LITTLE_MS = 2_000;

/** As much of a repeated text as a body may have. */
const fill = (part: string) => part.repeat(Math.floor((12 * MIB) / part.length));

/** Milliseconds of a processor that this takes: what else the machine does is left out. */
function cpuTime(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

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

  // Shows: docs/applications.md#errors-every-operation: 400 | `MALFORMED_BODY`: broken JSON, bytes that
  it.each([
    ["keys in one object", objectOf(MAX_KEYS), objectOf(MAX_KEYS + 1), /more than 1000 keys/],
    [
      "values",
      `[${Array.from({ length: MAX_VALUES - 1 }, () => "1").join()}]`,
      `[${Array.from({ length: MAX_VALUES }, () => "1").join()}]`,
      /more than 10000 values/,
    ],
    [
      "characters of a key",
      `{"${"k".repeat(MAX_KEY_LENGTH)}":1}`,
      `{"${"k".repeat(MAX_KEY_LENGTH + 1)}":1}`,
      /longer than 256/,
    ],
  ])("bounds the number of %s", (_what, most, oneMore, message) => {
    expect(jsonShapeProblem(most)).toBeUndefined();
    expect(jsonShapeProblem(oneMore)).toMatch(message);
  });

  it.each([
    '"',
    '{"',
    '{"a',
    '{"a\\"',
    '{"\\x":1}',
    '{"\\u00":1}',
    "{,,,}",
    "]]]}}",
    "",
    ":",
    '{"a":1}}{"a":1}',
  ])("leaves %s to the parser", (text) => {
    expect(() => JSON.parse(text)).toThrow();
    expect(jsonShapeProblem(text)).toBeUndefined();
  });

  it.each([
    ["unknown keys", `{${Array.from({ length: 1_100_000 }, (_, at) => `"k${at}":1`).join()}}`],
    ["objects", `[${fill("{},")}{}]`],
    ["a key of backslashes", `{"${fill("\\\\")}":1}`],
    ["a value of quotes", `["${fill('\\"')}"]`],
    ["white space", `[${fill(" ")}]`],
    ["digits", `[${fill("1")}]`],
    ["a string that does not end", `["${fill('\\"')}`],
    ["colons", fill(":")],
    ["closings", fill("}")],
  ])("judges 12 MiB of %s in little time", (_what, text) => {
    expect(cpuTime(() => jsonShapeProblem(text))).toBeLessThan(LITTLE_MS);
  });

  // Shows: docs/applications.md#errors-every-operation: 400 | `MALFORMED_BODY`: broken JSON, bytes that
  it("checks the largest body in little time", () => {
    const text = JSON.stringify({
      envs: Array.from({ length: 50 }, () => ({ value: "\u0001".repeat(32_760) })),
    });
    expect(text.length).toBeGreaterThan(9 * MIB);
    expect(cpuTime(() => expect(jsonShapeProblem(text)).toBeUndefined())).toBeLessThan(LITTLE_MS);
  });
});
