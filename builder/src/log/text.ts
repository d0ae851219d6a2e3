import { stripVTControlCharacters } from "node:util";

/** Without colours and control characters, which would also stand between the characters of a secret. Tabs and line feeds stay. Pure. */
export function clean(text: string): string {
  return (
    stripVTControlCharacters(text)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
      .replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, "")
      .toWellFormed()
  );
}
