/** Windows of time of plots. Pure. */

export interface Range {
  seconds: number;
  name: string;
  /** How long a bar lasts. */
  bucketSeconds: number;
}

/** The ranges of network analytics, each in at most fifteen bars: one question each. */
export const ranges: readonly [Range, ...Range[]] = [
  { seconds: 300, name: "5 minutes", bucketSeconds: 30 },
  { seconds: 3_600, name: "1 hour", bucketSeconds: 300 },
  { seconds: 21_600, name: "6 hours", bucketSeconds: 1_800 },
  { seconds: 86_400, name: "24 hours", bucketSeconds: 7_200 },
  { seconds: 604_800, name: "7 days", bucketSeconds: 43_200 },
];

export interface Bucket {
  /** Milliseconds since the epoch. */
  from: number;
  to: number;
  /** Whether nothing can be added to it any more. */
  isComplete: boolean;
}

/** After so long all that happened in a window is counted. */
const LATE_MS = 10_000;

/** The bars of a range up to now: they begin at round moments, so that those that are complete are loaded once. */
export function bucketsOf({ seconds, bucketSeconds }: Range, now: number): Bucket[] {
  const size = bucketSeconds * 1_000;
  const last = Math.floor(now / size) * size;
  const first = last - Math.ceil((seconds * 1_000) / size) * size + size;
  const found: Bucket[] = [];
  for (let from = first; from <= last; from += size) {
    found.push({ from, to: from + size, isComplete: from + size + LATE_MS <= now });
  }
  return found;
}
