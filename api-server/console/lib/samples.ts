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
