import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isTagPattern, matchesTag } from "./tag-pattern.ts";

describe("a tag pattern", () => {
  it.each([
    ["*", "v1.0.0", true],
    ["*", "", true],
    ["v*", "v1", true],
    ["v*", "V1", false],
    ["v*", "xv1", false],
    ["v?", "v1", true],
    ["v?", "v", false],
    ["v?", "v12", false],
    ["release/*", "release/2026/11", true],
    ["v1.*.0", "v1.2.3.0", true],
    ["v1.*.0", "v1x2.0", false],
    ["v1.0", "v1x0", false],
    ["*-rc?", "v2-rc1", true],
    ["*-rc?", "v2-rc10", false],
    ["(a+)+$", "aaaa", false],
    ["?", "🚀", true],
    ["a*b*c", "aXbYbZc", true],
    ["a*b*c", "aXbYbZ", false],
    ["**", "x", true],
    ["*", "*", true],
  ])("%s against %s: %s", (pattern, tag, expected) => {
    expect(matchesTag(pattern, tag)).toBe(expected);
  });

  it.each([
    "",
    "+(v)",
    "v?(x)",
    "@(a|b)",
    "*(x)",
    "!(x)",
    "v+*(x)",
    "v[0-9]",
    "v{1,2}",
    "!v1",
    "v\\*",
    "v\n",
    "v\u0000",
    "x".repeat(256),
  ])("%j is none", (text) => {
    expect(isTagPattern(text)).toBe(false);
  });

  it.each([
    "*",
    "v?.*",
    "x".repeat(255),
    "🚀".repeat(255),
    "release/*",
    "(v1)+",
    "v1 (x)",
    "a@b",
    "c++",
    "*?+@",
  ])("%j is one", (text) => {
    expect(isTagPattern(text)).toBe(true);
  });

  const word = fc.string({ unit: fc.constantFrom("a", "b", ".", "*", "?", "/"), maxLength: 12 });
  const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");

  it("matches as the same regular expression does", () => {
    fc.assert(
      fc.property(word, word, (pattern, tag) => {
        const parts = [...pattern].map((one) => (one === "*" ? ".*" : one === "?" ? "." : escaped(one)));
        expect(matchesTag(pattern, tag)).toBe(new RegExp(`^${parts.join("")}$`, "s").test(tag));
      }),
      { numRuns: 2_000 },
    );
  });

  it("without wildcards matches itself alone", () => {
    const plain = fc.string().filter((text) => !/[*?]/.test(text));
    fc.assert(
      fc.property(plain, plain, (pattern, tag) => {
        expect(matchesTag(pattern, pattern)).toBe(true);
        expect(matchesTag(pattern, tag)).toBe(pattern === tag);
      }),
    );
  });

  it("is distinguished from other glob syntax in linear time", () => {
    const began = process.cpuUsage().user;
    for (const text of ["?*+@".repeat(63), "a*".repeat(127), `${"*".repeat(254)}(`]) {
      isTagPattern(text);
    }
    expect((process.cpuUsage().user - began) / 1_000).toBeLessThan(100);
  });

  it("costs no more than pattern times tag", () => {
    const pattern = `${"*a".repeat(127)}b`;
    const began = process.cpuUsage().user;
    expect(matchesTag(pattern, "a".repeat(255))).toBe(false);
    expect((process.cpuUsage().user - began) / 1_000).toBeLessThan(1_000);
  });
});
