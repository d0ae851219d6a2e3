/**
 * The grammar of a schedule: exactly five fields with one space between them, interpreted in UTC. No seconds, no
 * macros (`@daily`), no `H`, `L`, `W`, `#`, `?`. It is one regular expression, used by zod and by CEL (RE2) alike;
 * ranges must ascend and values must lie in their field's range, which the expression spells out.
 */

/** A regular expression for the whole numbers `from..to`, both at most 59, without leading zeros. */
function numbers(from: number, to: number): string {
  const parts: string[] = [];
  for (let tens = Math.floor(from / 10); tens <= Math.floor(to / 10); tens += 1) {
    const low = Math.max(from - tens * 10, 0);
    const high = Math.min(to - tens * 10, 9);
    const digit = low === high ? `${low}` : `[${low}-${high}]`;
    parts.push(tens === 0 ? digit : `${tens}${digit}`);
  }
  return parts.length === 1 ? (parts[0] ?? "") : `(${parts.join("|")})`;
}

/** Ascending ranges `a-b` with `from <= a <= b <= to`. */
function numberRanges(from: number, to: number): string {
  const parts: string[] = [];
  for (let start = from; start <= to; start += 1) {
    parts.push(`${start}-${numbers(start, to)}`);
  }
  return `(${parts.join("|")})`;
}

/** Names as Kubernetes reads them, in either case, alone or as ascending ranges. */
function names(all: readonly string[]): string {
  const either = (name: string): string =>
    [...name].map((letter) => `[${letter}${letter.toLowerCase()}]`).join("");
  return all.map((name, index) => `${either(name)}(-(${all.slice(index).map(either).join("|")}))?`).join("|");
}

/** `*`, a value or a range, each with an optional step, joined by commas. */
function field(from: number, to: number, named: readonly string[] = []): string {
  const extra = named.length === 0 ? "" : `|${names(named)}`;
  const item = `(\\*|${numberRanges(from, to)}|${numbers(from, to)}${extra})(/[1-9][0-9]?)?`;
  return `${item}(,${item})*`;
}

const MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/** Source of the expression. It holds no quotes and no backslash but `\*`. */
export const CRON_PATTERN = `^${[field(0, 59), field(0, 23), field(1, 31), field(1, 12, MONTHS), field(0, 6, DAYS)].join(" ")}$`;

const CRON = new RegExp(CRON_PATTERN);

/** Longest schedule accepted, in characters. */
export const CRON_MAX_LENGTH = 100;

/** True when the text is a schedule of five fields. */
export function isCron(text: string): boolean {
  return text.length <= CRON_MAX_LENGTH && CRON.test(text);
}

/** What `/v1` does to a schedule before it is checked: trims it and leaves one space between fields. */
export function normalizeCron(text: string): string {
  return text.trim().replace(/[ \t]+/g, " ");
}
