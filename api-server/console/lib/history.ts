import type { Sample } from "./series.ts";

/** What an instance used before the page was opened, as `data.history` of its metrics has it. Pure. */

export const HISTORY_RANGES = [
  [3_600, "1 hour"],
  [86_400, "24 hours"],
  [691_200, "8 days"],
] as const;

export interface HistoryPoint {
  at: string;
  cpu: number | null;
  memory: number | null;
  received_bytes_per_second: number | null;
  transmitted_bytes_per_second: number | null;
}

export interface History {
  from: string;
  to: string;
  resolution_seconds: number;
  instances: { instance: string; points: HistoryPoint[] }[];
  other_instances: string[];
}

/** The range of the address: an hour unless it names another. */
export function historyRange(wanted: string | undefined): number {
  return HISTORY_RANGES.find(([seconds]) => String(seconds) === wanted)?.[0] ?? HISTORY_RANGES[0][0];
}

/** Names of all instances that have a history. */
export function namesOf({ instances, other_instances: others }: History): string[] {
  return [...instances.map(({ instance }) => instance), ...others].sort();
}

/** A step, or a gap of at least one: everything in it is null. */
export interface PastSample extends Sample {
  received: number | null;
  transmitted: number | null;
}

/**
 * The steps of an instance, at their middles, with what is unknown between them.
 * @param now milliseconds since the epoch: the last step may have begun and not be over, and ends there
 */
export function pastOf(
  { resolution_seconds: step, instances }: History,
  instance: string,
  now: number,
): PastSample[] {
  const points = instances.find((one) => one.instance === instance)?.points ?? [];
  const stepMs = step * 1_000;
  const past: PastSample[] = [];
  for (const { at: text, ...used } of points) {
    const begin = Date.parse(text);
    const at = begin + Math.min(stepMs, Math.max(0, now - begin)) / 2;
    const before = past.at(-1)?.at;
    if (before !== undefined && begin - before > stepMs) {
      past.push({ at: before + stepMs, cpu: null, memory: null, received: null, transmitted: null });
    }
    past.push({
      ...{ at, cpu: used.cpu, memory: used.memory },
      ...{ received: used.received_bytes_per_second, transmitted: used.transmitted_bytes_per_second },
    });
  }
  return past;
}

/** The past, and what the page itself has measured after it. */
export function continued(past: readonly Sample[], live: readonly Sample[]): Sample[] {
  const last = past.at(-1)?.at ?? Number.NEGATIVE_INFINITY;
  return [...past, ...live.filter(({ at }) => at > last)];
}
