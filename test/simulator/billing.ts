/** What a run should cost, worked out apart from the operator: whole numbers only. */

const SCALE = 12;

/** A decimal as a whole number of 10^-12. */
export function units(decimal: string): bigint {
  const [whole = "0", fraction = ""] = decimal.split(".");
  return BigInt(whole + fraction.padEnd(SCALE, "0").slice(0, SCALE));
}

/** Minutes to be charged between two moments: every begun one, 1 to 60. */
export function minutesBetween(from: number, to: number): number {
  let minutes = 1;
  while (minutes < 60 && from + minutes * 60_000 < to) {
    minutes += 1;
  }
  return minutes;
}

/** Moments that a status holds. */
export function time(text: string | undefined): number {
  return text === undefined ? Number.NaN : Date.parse(text);
}
