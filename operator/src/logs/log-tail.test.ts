import fc from "fast-check";
import { expect, test } from "vitest";
import { TailBuffer, tailText } from "./log-tail.ts";

test("whatever chunks a log comes in, the last bytes stay and all ends of lines are counted", () => {
  const chunk = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes));
  fc.assert(
    fc.property(fc.array(chunk), fc.integer({ min: 1, max: 50 }), (chunks, limit) => {
      const tail = new TailBuffer(limit);
      for (const one of chunks) {
        tail.push(one);
      }
      const all = Buffer.concat(chunks);
      expect(tail.bytes()).toEqual(all.subarray(Math.max(0, all.length - limit)));
      expect(tail.total).toBe(all.length);
      expect(tail.lines).toBe(all.filter((byte) => byte === 10).length);
    }),
  );
});

test("a cut text begins with a whole character, wherever it was cut", () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom("a", "é", "€", "😀")), fc.nat(30), (characters, from) => {
      const text = characters.join("");
      const bytes = Buffer.from(text);
      const kept = tailText(bytes.subarray(from), from > 0);
      expect(text.endsWith(kept)).toBe(true);
      expect(Buffer.byteLength(kept)).toBeGreaterThanOrEqual(Math.max(0, bytes.length - from - 3));
    }),
  );
});

test("bytes that are no UTF-8 are shown as such, and a whole log is not cut", () => {
  expect(tailText(Buffer.from([0x80, 0x61, 0xff]), false)).toBe("\uFFFDa\uFFFD");
  expect(tailText(Buffer.from([0x80, 0x61, 0xff]), true)).toBe("a\uFFFD");
});
