import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isCron, normalizeCron } from "./cron.ts";

describe("isCron", () => {
  it.each([
    "* * * * *",
    "*/5 * * * *",
    "0 0 1 1 0",
    "59 23 31 12 6",
    "0,15,30-45/5 8-18 * jan-DEC Mon-fri",
    "5/10 * * * *",
  ])("accepts %s", (text) => expect(isCron(text)).toBe(true));

  it("accepts every number of a field's range and none beside it", () => {
    const fields = [
      [0, 59],
      [0, 23],
      [1, 31],
      [1, 12],
      [0, 6],
    ] as const;
    fields.forEach(([from, to], index) => {
      const at = (value: number) => ["*", "*", "*", "*", "*"].with(index, String(value)).join(" ");
      for (let value = 0; value <= 99; value += 1) {
        expect(isCron(at(value)), at(value)).toBe(value >= from && value <= to);
      }
    });
  });
});

describe("normalizeCron", () => {
  it("trims and leaves one space, and changes nothing else", () => {
    expect(normalizeCron(" \t0  3 *\t* 1\n")).toBe("0 3 * * 1");
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(normalizeCron(normalizeCron(text))).toBe(normalizeCron(text));
      }),
    );
  });
});
