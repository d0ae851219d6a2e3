import { expect, it } from "vitest";
import { parseExact } from "./exact.ts";

it("reads numbers as the text that they have, and nothing else", () => {
  const text = '{"a":[0.1234567890123456789,12345678901234567891,-2.50],"b":"1.0","c":null,"d":true}';
  expect(parseExact(text)).toEqual({
    a: ["0.1234567890123456789", "12345678901234567891", "-2.50"],
    b: "1.0",
    c: null,
    d: true,
  });
});
