/** A row of a table, or the text of a section, as it is in the page. */
export interface Section {
  readonly page: string;
  readonly heading: string;
  readonly anchor: string;
  /** With single spaces. */
  readonly text: string;
  /** The rows of its tables without heads, without the outer pipes. */
  readonly rows: readonly string[];
}

/** The sections of a page, each without those below it. */
export function sectionsOf(page: string, markdown: string): Section[] {
  const sections: { heading: string; lines: string[] }[] = [];
  let fenced = false;
  for (const line of markdown.split("\n")) {
    fenced = line.startsWith("```") ? !fenced : fenced;
    const [, heading] = fenced ? [] : (/^#+ (.*)$/.exec(line) ?? []);
    if (heading === undefined) {
      sections.at(-1)?.lines.push(line);
    } else {
      sections.push({ heading, lines: [] });
    }
  }
  const seen = new Map<string, number>();
  return sections.map(({ heading, lines }) => {
    const slug = anchorOf(heading);
    const before = seen.get(slug) ?? 0;
    seen.set(slug, before + 1);
    return {
      page,
      heading,
      anchor: before === 0 ? slug : `${slug}-${before}`,
      text: oneSpaced(lines.join(" ")),
      rows: rowsOf(lines),
    };
  });
}

export const oneSpaced = (text: string): string => text.replace(/\s+/g, " ").trim();

/** As GitHub makes it. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replace(/ /g, "-");

const isSeparator = (line: string | undefined): boolean => line?.startsWith("|-") ?? false;

function rowsOf(lines: readonly string[]): string[] {
  return lines
    .filter((line, at) => line.startsWith("|") && !isSeparator(line) && !isSeparator(lines[at + 1]))
    .map((line) => oneSpaced(line.replace(/^\|\s*/, "").replace(/\s*\|$/, "")));
}
