import { expect, it } from "vitest";
import { decimalOf, parseExact } from "./exact.ts";

it("reads numbers as the text that they have, and nothing else", () => {
  const text = '{"a":[0.1234567890123456789,12345678901234567891,-2.50],"b":"1.0","c":null,"d":true}';
  expect(parseExact(text)).toEqual({
    a: ["0.1234567890123456789", "12345678901234567891", "-2.50"],
    b: "1.0",
    c: null,
    d: true,
  });
});

it.each([
  [1e-9, "0.000000001"],
  [1.5e-7, "0.00000015"],
  [-2.5e-7, "-0.00000025"],
  [0.000001, "0.000001"],
  [731, "731"],
  [-2.5, "-2.5"],
  [1e21, "1000000000000000000000"],
  [0, "0"],
])("where a browser does not know the text of %d, it is %s", (value, text) => {
  expect(decimalOf(value)).toBe(text);
});
