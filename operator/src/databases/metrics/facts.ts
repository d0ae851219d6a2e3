/** What an engine reported of itself at one moment, and what two such moments show together. Pure. */

/** Values by the names that the engine (or the query) gives them. Numbers only: no text but names of states. */
export type Facts = Readonly<Record<string, number | string | boolean | null>>;

/** One reading of one instance, as the ledger keeps it. */
export interface RawSample {
  /** Identifies one server process: pod, start of the container, start of the server. */
  process: string;
  /** When it was read, by the clock of the server: milliseconds since 1970. */
  clockMs: number;
  facts: Facts;
}

/** What was kept as JSON; undefined where it has another shape. */
export function parseRaw(given: unknown): RawSample | undefined {
  const { process, clockMs, facts } = (given ?? {}) as Partial<RawSample>;
  const known = typeof process === "string" && typeof clockMs === "number" && typeof facts === "object";
  return known && facts !== null ? { process, clockMs, facts } : undefined;
}

/** A number that is not negative; null for everything else. Engines report some numbers as text. */
export function number(value: Facts[string] | undefined): number | null {
  const found = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof found === "number" && Number.isFinite(found) && found >= 0 ? found : null;
}

/** A whole number; null where it is none, or larger than is exact. */
export function count(value: Facts[string] | undefined): number | null {
  const found = number(value);
  const whole = found === null ? null : Math.round(found);
  return whole !== null && Number.isSafeInteger(whole) ? whole : null;
}

/** Null when one of them is. */
export function sum(...values: (number | null)[]): number | null {
  let total = 0;
  for (const value of values) {
    if (value === null) {
      return null;
    }
    total += value;
  }
  return total;
}

/** Part of a whole, between 0 and 1; null without a whole. */
export function ratio(part: number | null, whole: number | null): number | null {
  return part === null || whole === null || whole <= 0 ? null : Math.min(1, Math.max(0, part / whole));
}

/** Shortest time between two samples that a rate is computed from, in milliseconds. */
const SHORTEST_MS = 1_000;

/** What changed between two samples of one process. */
export class Interval {
  readonly #before: Facts;
  readonly #now: Facts;
  /** Milliseconds. */
  readonly length: number;

  private constructor(before: RawSample, now: RawSample) {
    this.#before = before.facts;
    this.#now = now.facts;
    this.length = now.clockMs - before.clockMs;
  }

  /** Undefined where the two are not of one process, or not in order. */
  static between(before: RawSample | undefined, now: RawSample): Interval | undefined {
    if (before === undefined || before.process !== now.process) {
      return undefined;
    }
    const interval = new Interval(before, now);
    return interval.length >= SHORTEST_MS ? interval : undefined;
  }

  /** Whether a fact is the same in both, such as the moment of a reset; so is one that neither has. */
  same(name: string): boolean {
    return (this.#before[name] ?? null) === (this.#now[name] ?? null);
  }

  /** How much a counter has grown; null where it is not in both, or was reset. */
  growth(...names: string[]): number | null {
    const before = sum(...names.map((name) => number(this.#before[name])));
    const now = sum(...names.map((name) => number(this.#now[name])));
    return before === null || now === null || now < before ? null : now - before;
  }

  /** Growth in a second. */
  rate(...names: string[]): number | null {
    const growth = this.growth(...names);
    return growth === null ? null : growth / (this.length / 1_000);
  }
}
