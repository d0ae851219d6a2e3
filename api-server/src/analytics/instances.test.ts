import { expect, test } from "vitest";
import { quantity } from "./instances.ts";

test.each([
  ["250m", 0.25],
  ["1", 1],
  ["123456789n", 0.123456789],
  ["1500u", 0.0015],
  ["64Mi", 67_108_864],
  ["123456Ki", 126_418_944],
  ["1G", 1_000_000_000],
  [undefined, null],
  ["", null],
  ["many", null],
])("%s is %s", (text, number) => {
  expect(quantity(text)).toBe(number);
});
