/** Amounts of cents as the platform writes them: a decimal text, or a number. Exact, never rounded. Pure. */
export function formatCents(amount: string | number, currency = "brl"): string {
  const [, sign = "", whole = "0", fraction = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(String(amount)) ?? [];
  const digits = whole.padStart(3, "0");
  const units = digits.slice(0, -2);
  // Fractions of a cent stay as far as there are any.
  const rest = `${digits.slice(-2)}${fraction.replace(/0+$/, "")}`;
  return `${sign}${units}.${rest} ${currency.toUpperCase()}`;
}
