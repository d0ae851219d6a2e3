/** Taxes of an invoice: docs/billing.md#taxes. */

import { parseDecimal } from "../billing.ts";

/** A tax of a percentage, as a decimal in text: `"2.9"`. */
export interface TaxRate {
  readonly name: string;
  readonly rate: string;
}

/** The taxes by country (ISO 3166-1, two capital letters), and those of organizations whose country is not known or not listed. */
export interface TaxTable {
  readonly default: readonly TaxRate[];
  readonly countries: Readonly<Record<string, readonly TaxRate[]>>;
}

/** A line of an invoice's taxes. */
export interface TaxLine extends TaxRate {
  readonly cents: bigint;
}

/** The taxes of an organization in a country. */
export function taxRatesOf({ countries, default: others }: TaxTable, country?: string): readonly TaxRate[] {
  return country !== undefined && Object.hasOwn(countries, country) ? (countries[country] ?? []) : others;
}

/**
 * A tax of an amount: rounded once, to the nearest cent, half a cent up.
 * @param rate percent, a plain decimal
 * @throws RangeError when it is no plain decimal
 */
export function taxCents(netCents: bigint, rate: string): bigint {
  const { units, scale } = parseDecimal(rate);
  const divisor = 100n * 10n ** BigInt(scale);
  return (2n * netCents * units + divisor) / (2n * divisor);
}

/** Each tax is of the same amount: none is of another one. */
export function taxLines(netCents: bigint, rates: readonly TaxRate[]): TaxLine[] {
  return rates.map(({ name, rate }) => ({ name, rate, cents: taxCents(netCents, rate) }));
}
