/**
 * Exact decimals for money, as scaled integers. Prices are BRL cents written as decimal strings; nothing here ever
 * becomes a floating-point number.
 */
export interface Decimal {
  /** The digits without the point. */
  readonly units: bigint;
  /** How many of them are decimals. */
  readonly scale: number;
}

/** Reads `"12.50"`. @throws RangeError when the text is no plain decimal */
export function parseDecimal(text: string): Decimal {
  const match = /^([0-9]+)(?:\.([0-9]+))?$/.exec(text);
  if (match === null) {
    throw new RangeError("not a decimal");
  }
  const fraction = match[2] ?? "";
  return { units: BigInt(`${match[1]}${fraction}`), scale: fraction.length };
}

/** True when both are the same amount, however many zeros are at the end. */
export function equalDecimal(a: Decimal, b: Decimal): boolean {
  return a.units * 10n ** BigInt(b.scale) === b.units * 10n ** BigInt(a.scale);
}

/** A decimal times a whole number, exactly. */
export function timesDecimal(a: Decimal, factor: bigint): Decimal {
  return { units: a.units * factor, scale: a.scale };
}

/** Negative, zero or positive as `a` is less than, equal to or more than `b`. */
export function compareDecimal(a: Decimal, b: Decimal): number {
  const difference = a.units * 10n ** BigInt(b.scale) - b.units * 10n ** BigInt(a.scale);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

/** The shortest text of the amount: `"12.5"`, `"0.1"`, `"3"`. */
export function formatDecimal({ units, scale }: Decimal): string {
  const digits = units.toString().padStart(scale + 1, "0");
  if (scale === 0) {
    return digits;
  }
  const fraction = digits.slice(-scale).replace(/0+$/, "");
  const whole = digits.slice(0, -scale);
  return fraction === "" ? whole : `${whole}.${fraction}`;
}
