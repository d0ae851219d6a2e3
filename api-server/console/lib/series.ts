/** What plots show: time ranges in bars, and samples of CPU and memory. Pure. */

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

/** What one instance used at a moment. */
export interface Sample {
  /** Milliseconds since the epoch. */
  at: number;
  /** Cores. */
  cpu: number | null;
  /** Bytes. */
  memory: number | null;
}

/** An hour, a sample every few seconds. */
const MAX_SAMPLES = 720;

/**
 * Adds what was measured to what is known. Pure. The API keeps no series, so the page keeps its own for as long as it is open; the
 * same measurement, reported twice, counts once.
 */
export function addSample(known: readonly Sample[], next: Sample): readonly Sample[] {
  const last = known.at(-1);
  if (last !== undefined && next.at <= last.at) {
    return known;
  }
  return [...known, next].slice(-MAX_SAMPLES);
}

interface ReportedSample {
  observed_at?: unknown;
  cpu?: unknown;
  memory?: unknown;
  resource?: { cpu_usage_cores?: unknown; memory_usage_bytes?: unknown };
  availability?: unknown;
}

const number = (value: unknown): number | null =>
  typeof value === "number" && Number.isFinite(value) ? value : null;

/** CPU and memory of a snapshot of metrics, as any type of project has them. Undefined while nothing was measured. Pure. */
export function sampleOf(reported: object, now: number): Sample | undefined {
  const { observed_at, cpu, memory, resource, availability } = reported as ReportedSample;
  // Valkey's legacy numbers are 0 where nothing is known.
  if (availability === "unavailable") {
    return undefined;
  }
  const sample = {
    at: typeof observed_at === "string" ? Date.parse(observed_at) : now,
    cpu: number(resource?.cpu_usage_cores ?? cpu),
    memory: number(resource?.memory_usage_bytes ?? memory),
  };
  return sample.cpu === null && sample.memory === null ? undefined : sample;
}
