import fc from "fast-check";
import { expect, test } from "vitest";
import { cutToBytes, isPrintable, printable } from "./text.ts";

test("cutting never leaves half of a character", () => {
  expect(cutToBytes("aé", 2)).toBe("a");
  expect(cutToBytes("aé", 3)).toBe("aé");
  expect(cutToBytes("😀", 3)).toBe("");
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.nat(40), (text, max) => {
      const cut = cutToBytes(text, max);
      expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(max);
      expect(text.startsWith(cut)).toBe(true);
      expect(cut.isWellFormed()).toBe(true);
    }),
  );
});

test("what is printable is bounded, well formed, and free of control characters", () => {
  expect(printable("a\u0000b\u001b[31m\u0085", 100, " ")).toBe("a b [31m ");
  expect(printable("\ud800", 100, " ")).toBe("\ufffd");
  expect(printable("é".repeat(200), 256, " ")).toBe("é".repeat(128));
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.nat(300), (text, max) => {
      const kept = printable(text, max, "");
      expect(Buffer.byteLength(kept)).toBeLessThanOrEqual(max);
      expect(isPrintable(kept)).toBe(true);
    }),
  );
});
