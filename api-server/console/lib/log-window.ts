/** The time that a search of logs is about, as the page's address has it. Pure. */

/** Ranges that end now, by their seconds. */
export const RANGES = [
  ["3600", "Last hour"],
  ["86400", "Last day"],
  ["604800", "Last 7 days"],
] as const;

/** In the place of a range where moments are given. */
export const CHOSEN = "chosen";

type Query = ReadonlyMap<string, string>;

/** The range of the address: the last hour unless it names another, {@link CHOSEN} with moments. */
export function rangeOf(query: Query): string {
  const { from, to } = momentsOf(query);
  if (from !== undefined || to !== undefined) {
    return CHOSEN;
  }
  const [range] = RANGES.find(([seconds]) => seconds === query.get("range")) ?? RANGES[0];
  return range;
}

/** The moments of the address, as ISO 8601 in UTC; what is none is left out. */
export function momentsOf(query: Query): { from?: string; to?: string } {
  return { from: isoOf(query.get("from")), to: isoOf(query.get("to")) };
}

/** What the API is asked for. @param now milliseconds since the epoch */
export function windowOf(query: Query, now: number): { from?: string; to?: string } {
  const range = rangeOf(query);
  return range === CHOSEN ? momentsOf(query) : { from: new Date(now - Number(range) * 1_000).toISOString() };
}

/** A moment as ISO 8601 in UTC; without a zone it is in the browser's, as inputs have it. */
export function isoOf(text: string | undefined): string | undefined {
  const at = new Date(text ?? "");
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}
