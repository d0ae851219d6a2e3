import fc from "fast-check";
import { expect, test } from "vitest";
import { middleOf } from "./queries.ts";

/** As the store cuts a number: the first 16 bits of a float. */
function cut(value: number): number {
  const view = new DataView(new ArrayBuffer(4));
  view.setFloat32(0, value);
  view.setUint16(2, 0);
  return view.getFloat32(0);
}

// Shows: docs/analytics.md#the-api: p95 within 0.4 %
test("what is read of a cut number is within 0.4 % of it", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 24 }), (value) => {
      expect(Math.abs(middleOf(cut(value)) - value)).toBeLessThanOrEqual(value / 256);
    }),
    { numRuns: 2_000 },
  );
});

test("small numbers are exact", () => {
  for (let value = 0; value < 256; value++) {
    expect(middleOf(cut(value))).toBe(value);
  }
});
