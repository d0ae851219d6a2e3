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
    typeof value === "number" ? (context?.source ?? String(value)) : value,
  );
