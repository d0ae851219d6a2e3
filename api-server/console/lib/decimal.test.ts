import { expect, it } from "vitest";
import { centsOf, hasReached, percentOf, reaisOf } from "./decimal.ts";

it.each([
  ["150", "15000", "150.00"],
  ["1.005", "100.5", "1.005"],
  ["0.00000000001", "0.000000001", "0.00000000001"],
  // More digits than a number has.
  ["999999999.99999999999", "99999999999.999999999", "999999999.99999999999"],
  ["0", "0", "0.00"],
  ["-2.5", "-250", "-2.50"],
])("R$%s are %s cents", (reais, cents, shown) => {
  expect([centsOf(reais), reaisOf(cents)]).toEqual([cents, shown]);
});

it.each(["", "1,5", "1e3", " 1", "1.", ".5", "NaN", "0x1"])("%j is no amount", (text) => {
  expect([centsOf(text), reaisOf(text), hasReached(text, "0"), percentOf(text, "1")]).toEqual([
    undefined,
    "",
    false,
    "0",
  ]);
});

it.each([
  ["8120.5", "15000", "54.1", false],
  // Not yet everything, by the least that there is.
  ["14999.999999999", "15000", "99.9", false],
  ["15000", "15000.0", "100", true],
  ["45000", "15000", "300", true],
  ["-200", "15000", "0", false],
  ["0", "15000", "0", false],
])("%s of %s is %s percent", (part, whole, percent, isReached) => {
  expect([percentOf(part, whole), hasReached(part, whole)]).toEqual([percent, isReached]);
});
