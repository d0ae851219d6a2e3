/** Texts that came from outside: what is kept of them is valid, printable and bounded. */

/** C0, DEL and C1: nothing that a terminal or a log would act on. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are searched for
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/g;

const encoder = new TextEncoder();

/** The longest beginning of a text that takes at most so many bytes in UTF-8; never half of a character. */
export function cutToBytes(text: string, maxBytes: number): string {
  // No character takes more than three bytes for each UTF-16 unit.
  if (text.length * 3 <= maxBytes) {
    return text;
  }
  return text.slice(0, encoder.encodeInto(text, new Uint8Array(maxBytes)).read);
}

/** A text without control characters and halves of characters, of at most so many bytes in UTF-8. */
export function printable(text: string, maxBytes: number, replacement: string): string {
  // Cut first: what follows then takes no longer for a text of a megabyte.
  const head = text.length > maxBytes ? text.slice(0, maxBytes) : text;
  return cutToBytes(head.toWellFormed().replace(CONTROL, replacement), maxBytes);
}

/** Whether {@link printable} would leave the text as it is, however long it may be. */
export function isPrintable(text: string): boolean {
  CONTROL.lastIndex = 0;
  return text.isWellFormed() && !CONTROL.test(text);
}
