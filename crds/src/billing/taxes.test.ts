import fc from "fast-check";
import { expect, test } from "vitest";
import { type TaxTable, taxCents, taxLines, taxRatesOf } from "./taxes.ts";

test.each([
  [1_000n, "5", 50n],
  [10n, "5", 1n],
  [9n, "5", 0n],
  [30n, "5", 2n],
  [10_001n, "2.9", 290n],
  [10_018n, "2.9", 291n],
  [0n, "19", 0n],
  [12_345n, "0", 0n],
  [10n ** 20n, "0.000000001", 10n ** 9n],
])("of %s cents %s percent are %s", (net, rate, cents) => {
  expect(taxCents(net, rate)).toBe(cents);
});

test("is at most half a cent from the exact tax, and never less than half a cent below the next", () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: 0n, max: 10n ** 15n }),
      fc.integer({ min: 0, max: 99_999 }),
      (net, thousandths) => {
        const rate = `${Math.floor(thousandths / 1_000)}.${String(thousandths % 1_000).padStart(3, "0")}`;
        const exact = net * BigInt(thousandths);
        const twice = 2n * (taxCents(net, rate) * 100_000n - exact);
        expect(twice > -100_000n && twice <= 100_000n).toBe(true);
      },
    ),
  );
});

const table: TaxTable = {
  default: [{ name: "VAT", rate: "20" }],
  countries: { BR: [{ name: "ISS", rate: "2.9" }], US: [] },
};

test.each([
  ["BR", ["ISS"]],
  ["US", []],
  ["DE", ["VAT"]],
  ["constructor", ["VAT"]],
  [undefined, ["VAT"]],
])("an organization of %s has the taxes %j", (country, names) => {
  expect(taxRatesOf(table, country).map(({ name }) => name)).toEqual(names);
});

test("no tax is of another tax", () => {
  const rates = [
    { name: "A", rate: "10" },
    { name: "B", rate: "10" },
  ];
  expect(taxLines(1_000n, rates).map(({ cents }) => cents)).toEqual([100n, 100n]);
});
