import { describe, expect, it } from "vitest";
import { formatTraceparent, parseTraceparent } from "./tracing.ts";

const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
const span = "00f067aa0ba902b7";

describe("a traceparent", () => {
  it.each([
    [`00-${trace}-${span}-01`, true],
    [`00-${trace}-${span}-00`, false],
    [`00-${trace}-${span}-03`, true],
  ])("%s names a span", (text, sampled) => {
    expect(parseTraceparent(text)).toEqual({ traceId: trace, spanId: span, sampled });
  });

  it.each([
    undefined,
    "",
    ["00"],
    `01-${trace}-${span}-01`,
    `00-${trace.toUpperCase()}-${span}-01`,
    `00-${"0".repeat(32)}-${span}-01`,
    `00-${trace}-${"0".repeat(16)}-01`,
    `00-${trace}-${span}-01-more`,
    ` 00-${trace}-${span}-01`,
    `00-${trace}-${span}-01\n`,
  ])("%j names none", (text) => {
    expect(parseTraceparent(text)).toBeUndefined();
  });

  it("is written as it is read", () => {
    const text = `00-${trace}-${span}-01`;
    expect(formatTraceparent(parseTraceparent(text) ?? { traceId: "", spanId: "", sampled: false })).toBe(
      text,
    );
  });
});
