import { runAmount } from "@slipway/crds";
import { describe, expect, it } from "vitest";
import { jsonDecimal } from "./json-decimal.ts";

const printed = (text: string) => JSON.stringify({ amount: jsonDecimal(text) });

describe("jsonDecimal", () => {
  // Shows: docs/jobs.md#the-job-its-settings-its-runs: amounts are exact, and their JSON is the decimal
  it("prints an amount as it is, and never as a float would", () => {
    expect(0.1 * 3).not.toBe(0.3);
    expect(printed(runAmount("0.1", 3))).toBe('{"amount":0.3}');
    expect(printed("0.30")).toBe('{"amount":0.3}');
    expect(printed("1.000")).toBe('{"amount":1}');
    expect(printed("0")).toBe('{"amount":0}');
    expect(printed("0.0000001")).toBe('{"amount":0.0000001}');
  });

  it("keeps digits that a float would lose", () => {
    expect(printed("12345678901234567890.123456789")).toBe('{"amount":12345678901234567890.123456789}');
  });

  it("prints nothing but a plain decimal", () => {
    for (const text of ["", "1e3", "NaN", "-1", "1,5", '"1"']) {
      expect(() => jsonDecimal(text)).toThrow(RangeError);
    }
  });
});
