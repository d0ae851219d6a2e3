import { formatDecimal, parseDecimal } from "@slipway/crds";

declare global {
  interface JSON {
    /** ECMAScript's "JSON.parse source text access": a value whose JSON text is this very text. */
    rawJSON(text: string): unknown;
  }
}

/**
 * A decimal as a JSON number of all its digits: `JSON.stringify` writes what it returns as the shortest text of the very
 * amount, `0.3` for `"0.30"`. It never becomes a floating-point number here.
 * @throws RangeError when the text is no plain decimal
 */
export function jsonDecimal(text: string): unknown {
  return JSON.rawJSON(formatDecimal(parseDecimal(text)));
}
