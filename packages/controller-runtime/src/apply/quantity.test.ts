import { describe, expect, it } from "vitest";
import { equalQuantities, parseQuantity } from "./quantity.ts";

describe("quantities", () => {
  it.each([
    ["1", "1000m"],
    ["1Gi", "1024Mi"],
    ["0.5", "500m"],
    [2, "2"],
    ["1e3", "1k"],
    ["1.5Gi", "1536Mi"],
    ["100E", "100000P"],
    [".5", "0.50"],
    ["-1", "-1000m"],
  ])("%s equals %s", (a, b) => {
    expect(equalQuantities(a, b)).toBe(true);
  });

  it.each([
    ["1G", "1Gi"],
    ["1", "1001m"],
    ["1", ""],
    ["a", "a"],
    ["1Xi", "1Xi"],
    [true, true],
  ])("%s does not equal %s", (a, b) => {
    expect(equalQuantities(a, b)).toBe(false);
  });

  it("rounds up below a billionth", () => {
    expect(parseQuantity("0.0000000001")).toBe(1n);
  });
});
