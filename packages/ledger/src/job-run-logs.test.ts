import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { endOfLog, MAX_LOG_BYTES } from "./job-run-logs.ts";

describe("the end of a log", () => {
  it("is the log itself while it fits", () => {
    expect(endOfLog("")).toBe("");
    expect(endOfLog("x".repeat(MAX_LOG_BYTES))).toHaveLength(MAX_LOG_BYTES);
    expect(endOfLog(`a${"x".repeat(MAX_LOG_BYTES)}`)).toBe("x".repeat(MAX_LOG_BYTES));
  });

  it("never begins in the middle of a character", () => {
    const log = `${"€".repeat(MAX_LOG_BYTES / 2)}end`;
    const end = endOfLog(log);
    expect(log.endsWith(end)).toBe(true);
    expect(Buffer.byteLength(end)).toBe(MAX_LOG_BYTES - ((MAX_LOG_BYTES - 3) % 3));
  });

  it("is valid text without NUL of at most 50 KiB, whatever was logged", () => {
    const unit = fc.constantFrom("\0", "a", "é", "€", "😀", "\ud800", "\udc00", "\n");
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 40 }), fc.nat(3), (units, shift) => {
        const end = endOfLog(`${units.join("")}${"€😀é".repeat(6_000)}${"x".repeat(shift)}${units.join("")}`);
        expect(end.isWellFormed()).toBe(true);
        expect(end).not.toContain("\0");
        expect(Buffer.byteLength(end)).toBeLessThanOrEqual(MAX_LOG_BYTES);
        expect(Buffer.byteLength(end)).toBeGreaterThan(MAX_LOG_BYTES - 4);
      }),
    );
  });
});
