/**
 * What a run of a job costs, and in which cycle: the specification's "Billing". Pure and exact; the operator charges by it,
 * and the API shows by it what a run costs that is not in the ledger yet.
 */

/** Most minutes that a run is billed: the specification's deadline of a run. */
export const MAX_BILLED_MINUTES = 60;

/** Whole seconds between two moments, never below zero. */
export function durationSeconds(startedAt: Date, finishedAt: Date): number {
  return Math.max(0, Math.floor((finishedAt.getTime() - startedAt.getTime()) / 1_000));
}

/** Minutes charged for a run that was billed from one moment to another: rounded up, 1 to 60. */
export function billedMinutes(startedAt: Date, billedUntil: Date): number {
  const minutes = Math.ceil((billedUntil.getTime() - startedAt.getTime()) / 60_000);
  return Math.min(Math.max(minutes, 1), MAX_BILLED_MINUTES);
}

/**
 * Charge of a run in BRL cents, exact, as a decimal in text.
 * @param pricePerMinute BRL cents, a plain decimal
 * @throws RangeError when the price is no plain decimal or the minutes are no whole number
 */
export function runAmount(pricePerMinute: string, minutes: number): string {
  return formatDecimal(timesDecimal(parseDecimal(pricePerMinute), BigInt(minutes)));
}

/** Decimals of a cent of the minute's price of an application's plan. */
const MINUTE_SCALE = 9;

/**
 * What a minute costs where the hour has a price: a sixtieth, rounded down to a thousand-millionth of a cent, so that an hour never costs
 * more than its price.
 * @param pricePerHour BRL cents, a plain decimal
 * @throws RangeError when it is no plain decimal
 */
export function minutePrice(pricePerHour: string): string {
  const { units, scale } = parseDecimal(pricePerHour);
  const scaled = units * 10n ** BigInt(MINUTE_SCALE);
  return formatDecimal({ units: scaled / (60n * 10n ** BigInt(scale)), scale: MINUTE_SCALE });
}

/** A billing cycle: a calendar month in UTC. */
export interface BillingCycle {
  /** First moment. */
  readonly startedAt: Date;
  /** First moment of the next one. */
  readonly nextResetAt: Date;
}

/** The cycle that a moment lies in. */
export function billingCycle(at: Date): BillingCycle {
  const [year, month] = [at.getUTCFullYear(), at.getUTCMonth()];
  return {
    startedAt: new Date(Date.UTC(year, month, 1)),
    nextResetAt: new Date(Date.UTC(year, month + 1, 1)),
  };
}

/** Whole cents of an exact amount, and the fraction that the next cycle begins with. Both add up to it. */
export function settle(amount: Decimal): { cents: bigint; carry: Decimal } {
  const one = 10n ** BigInt(amount.scale);
  return { cents: amount.units / one, carry: { units: amount.units % one, scale: amount.scale } };
}

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

/**
 * The exact sum of amounts, of which those that are credits begin with `-`; as the shortest text.
 * @throws RangeError when one is no decimal
 */
export function sumDecimals(amounts: readonly string[]): string {
  const signed = amounts.map((text) => {
    const { units, scale } = parseDecimal(text.replace(/^-/, ""));
    return { units: text.startsWith("-") ? -units : units, scale };
  });
  const scale = signed.reduce((most, one) => Math.max(most, one.scale), 0);
  const units = signed.reduce((sum, one) => sum + one.units * 10n ** BigInt(scale - one.scale), 0n);
  return units < 0n ? `-${formatDecimal({ units: -units, scale })}` : formatDecimal({ units, scale });
}
