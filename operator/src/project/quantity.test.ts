import { expect, test } from "vitest";
import { bytes, millicores } from "./quantity.ts";

test.each([
  ["1", 1000],
  ["0.5", 500],
  ["250m", 250],
  ["2.25", 2250],
])("%s cores are %d millicores", (text, expected) => {
  expect(millicores(text)).toBe(expected);
});

test.each([
  ["512Mi", 536_870_912],
  ["1.5Gi", 1_610_612_736],
  ["1G", 1_000_000_000],
  ["1024", 1024],
])("%s are %d bytes", (text, expected) => {
  expect(bytes(text)).toBe(expected);
});

test.each(["", "m", "1x", "-1", "1 Gi"])("%j is refused", (text) => {
  expect(() => millicores(text)).toThrow("is not a CPU quantity");
  expect(() => bytes(text)).toThrow("is not a memory");
});
