/** Tables as text. Pure. */

export type Cell = string | number | undefined;

const RED = "\u001b[31m";
const GREEN = "\u001b[32m";
const YELLOW = "\u001b[33m";
const BOLD = "\u001b[1m";
const PLAIN = "\u001b[0m";

const COLOURS: Readonly<Record<string, string>> = {
  running: GREEN,
  succeeded: GREEN,
  success: GREEN,
  paid: GREEN,
  ok: GREEN,
  failed: RED,
  failing: RED,
  creating: YELLOW,
  deploying: YELLOW,
  building: YELLOW,
  pending: YELLOW,
  open: YELLOW,
};

/** What a terminal would act on is shown as `\xNN`: names and log lines come from outside. */
export const printable = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
  text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (character) => {
    return `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
  });

/**
 * Columns apart by two spaces, the titles in capitals. No row has an end of spaces.
 * @param titles none for a table without them
 */
export function formatTable(
  titles: readonly string[],
  rows: readonly (readonly Cell[])[],
  { hasColour }: { hasColour: boolean },
): string {
  const texts = rows.map((row) => row.map((cell) => printable(String(cell ?? ""))));
  const head = titles.map((title) => title.toUpperCase());
  const all = head.length === 0 ? texts : [head, ...texts];
  const widths: number[] = [];
  for (const row of all) {
    row.forEach((text, at) => {
      widths[at] = Math.max(widths[at] ?? 0, text.length);
    });
  }
  const lineOf = (row: readonly string[], paint: (text: string) => string) =>
    row
      .map((text, at) =>
        at === row.length - 1 ? paint(text) : paint(text) + " ".repeat((widths[at] ?? 0) - text.length),
      )
      .join("  ")
      .trimEnd();
  const bold = (text: string) => (hasColour ? `${BOLD}${text}${PLAIN}` : text);
  const painted = (text: string) => {
    const colour = hasColour ? COLOURS[text] : undefined;
    return colour === undefined ? text : `${colour}${text}${PLAIN}`;
  };
  const lines = [
    ...(head.length === 0 ? [] : [lineOf(head, bold)]),
    ...texts.map((row) => lineOf(row, painted)),
  ];
  return lines.map((line) => `${line}\n`).join("");
}
