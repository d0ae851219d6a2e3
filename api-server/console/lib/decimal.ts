/** Decimals in text: amounts of money, without floating point. Pure. */

const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?$/;

/** A decimal as a whole number of its smallest digits. */
interface Scaled {
  digits: bigint;
  decimals: number;
}

function scaled(text: string): Scaled | undefined {
  const [, sign, whole, fraction = ""] = DECIMAL.exec(text) ?? [];
  return whole === undefined
    ? undefined
    : { digits: BigInt(`${sign}${whole}${fraction}`), decimals: fraction.length };
}

/** The text of such a number, without zeros at its end. */
function textOf({ digits, decimals }: Scaled): string {
  const [sign, size] = digits < 0n ? ["-", -digits] : ["", digits];
  const all = String(size).padStart(decimals + 1, "0");
  const at = all.length - decimals;
  const fraction = all.slice(at).replace(/0+$/, "");
  return `${sign}${all.slice(0, at)}${fraction === "" ? "" : `.${fraction}`}`;
}

/** Both with as many decimals. */
function aligned(a: Scaled, b: Scaled): [bigint, bigint] {
  const decimals = Math.max(a.decimals, b.decimals);
  const digits = (one: Scaled) => one.digits * 10n ** BigInt(decimals - one.decimals);
  return [digits(a), digits(b)];
}

/** An amount of reais in cents: `1.5` is `150`. Undefined when it is no decimal. */
export function centsOf(reais: string): string | undefined {
  const found = scaled(reais);
  return found && textOf({ ...found, digits: found.digits * 100n });
}

/** An amount of cents in reais, with two decimals or more: `15000` is `150.00`, and `100.5` is `1.005`. */
export function reaisOf(cents: string): string {
  const found = scaled(cents);
  if (found === undefined) {
    return "";
  }
  const [whole = "", fraction = ""] = textOf({ ...found, decimals: found.decimals + 2 }).split(".");
  return `${whole}.${fraction.padEnd(2, "0")}`;
}

/** Whether an amount has reached another one. False where one of them is no decimal. */
export function hasReached(amount: string, other: string): boolean {
  const [a, b] = [scaled(amount), scaled(other)];
  if (a === undefined || b === undefined) {
    return false;
  }
  const [reached, wanted] = aligned(a, b);
  return reached >= wanted;
}

/**
 * How much of a whole a part is, in percent with one decimal, never rounded up: 99.9 is not everything. Nothing where the part is below
 * zero or the whole is nothing.
 */
export function percentOf(part: string, whole: string): string {
  const [a, b] = [scaled(part), scaled(whole)];
  if (a === undefined || b === undefined) {
    return "0";
  }
  const [of, all] = aligned(a, b);
  return of <= 0n || all <= 0n ? "0" : textOf({ digits: (of * 1_000n) / all, decimals: 1 });
}
