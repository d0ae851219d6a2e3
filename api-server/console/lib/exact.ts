/** JSON whose numbers are amounts: they are read as their own text, since a number of JavaScript has fewer digits. Pure. */

declare global {
  interface JSON {
    /** ECMAScript's "JSON.parse source text access": `source` is the text of a value that has no members. */
    parse(
      text: string,
      reviver: (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown,
    ): unknown;
  }
}

/** JSON with each number as the text that it has there. A browser that does not know that text yet has the digits of its number. */
export const parseExact = (text: string): unknown =>
  JSON.parse(text, (_key, value, context) =>
    typeof value === "number" ? (context?.source ?? decimalOf(value)) : value,
  );

/** A number in decimal: its own text has an exponent where it is below a millionth or has more than 21 digits. */
export function decimalOf(value: number): string {
  const text = String(value);
  if (!text.includes("e")) {
    return text;
  }
  return Number.isInteger(value) ? String(BigInt(value)) : value.toFixed(20).replace(/\.?0+$/, "");
}
