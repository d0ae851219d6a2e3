import { describe, expect, it } from "vitest";
import {
  ago,
  brl,
  bytes,
  clock,
  cores,
  count,
  dateTime,
  duration,
  milliseconds,
  percent,
  words,
} from "./format.ts";

describe("an amount of money", () => {
  it.each([
    [0, "R$0.00"],
    [100, "R$1.00"],
    [123_456, "R$1,234.56"],
    [1.5, "R$0.015"],
    [0.02, "R$0.0002"],
    [0.0001, "R$0.000001"],
    // 0.1 + 0.2 cents as the API adds them, and what a division would make of 1.1.
    [0.3, "R$0.003"],
    [1.1, "R$0.011"],
    [1e-7, "R$0.00"],
    [12_345.6789, "R$123.456789"],
    ["0", "R$0.00"],
    ["-1080.5", "-R$10.805"],
    // More digits than a number has.
    ["12345678901234567890.1", "R$123,456,789,012,345,678.901"],
    ["100.123456789", "R$1.00123456789"],
    ["-0.0000000019", "-R$0.00000000001"],
    ["1e3", "–"],
    ["<b>", "–"],
  ])("of %s cents is %s", (cents, shown) => {
    expect(brl(cents)).toBe(shown);
  });
});

it.each([
  [0, "0"],
  [999_999, "999,999"],
  [3_400_000, "3.4M"],
  [2_000_000_000, "2G"],
])("the number %d is shown as %s", (value, shown) => {
  expect(count(value)).toBe(shown);
});

it.each([
  [0, "0 B"],
  [1_023, "1,023 B"],
  [1_024, "1 KiB"],
  [1_536, "1.5 KiB"],
  [2 ** 30, "1 GiB"],
  [2 ** 60, "1,024 PiB"],
])("%d bytes are %s", (value, shown) => {
  expect(bytes(value)).toBe(shown);
});

it.each([
  [0.4242, "0.424 ms"],
  [12, "12 ms"],
  [999.4, "999 ms"],
  [1_500, "1.5 s"],
])("%d ms are %s", (value, shown) => {
  expect(milliseconds(value)).toBe(shown);
});

it.each([
  [0, "0"],
  [0.00368, "3.68 mCPU"],
  [0.25, "250 mCPU"],
  [1, "1 core"],
  [1.5, "1.5 cores"],
])("%d cores are %s", (value, shown) => {
  expect(cores(value)).toBe(shown);
});

it.each([
  [0, "0 s"],
  [0.9, "0 s"],
  [59, "59 s"],
  [60, "1 min"],
  [61, "1 min 1 s"],
  [3_600, "1 h"],
  [3_660, "1 h 1 min"],
  // Neighbouring units only.
  [3_601, "1 h"],
  [90_000, "1 d 1 h"],
  [-5, "0 s"],
])("%d seconds last %s", (value, shown) => {
  expect(duration(value)).toBe(shown);
});

it("shows what is not known as a dash", () => {
  for (const shown of [brl, count, bytes, milliseconds, cores, duration, percent]) {
    expect([shown(null), shown(undefined), shown(Number.NaN)]).toEqual(["–", "–", "–"]);
  }
  expect(ago(Number.NaN, 0)).toBe("–");
});

it.each([
  [0, "just now"],
  [4_000, "just now"],
  [65_000, "1 min ago"],
  [7_300_000, "2 h ago"],
  [-90_000, "in 1 min"],
])("a moment %d ms ago was %s", (before, shown) => {
  const now = Date.UTC(2026, 10, 22);
  expect(ago(now - before, now)).toBe(shown);
});

it("shows times in the time zone of the browser", () => {
  const moment = new Date(2026, 0, 2, 3, 4, 5);
  expect([dateTime(moment), clock(moment), clock(moment, true)]).toEqual([
    "2026-01-02 03:04:05",
    "03:04",
    "03:04:05",
  ]);
  expect([percent(0.1234), words("deadline_exceeded")]).toEqual(["12.3 %", "deadline exceeded"]);
});
