import type { Owner } from "./traefik-names.ts";

/** What one owner may write on one node. */
export interface Rate {
  linesPerSecond: number;
  bytesPerSecond: number;
}

export interface LogBoundsOptions {
  project: Rate;
  /** All projects of an organization together. */
  organization: Rate;
  /** Seconds of the rate that may come together, after as long a silence. */
  burstSeconds: number;
}

/** What is left of an owner's rate. */
interface Bucket {
  lines: number;
  bytes: number;
  /** The newest time of its lines, in milliseconds since the epoch. */
  at: number;
}

/** Owners that are remembered. One that is forgotten has all of its rate again. */
const REMEMBERED = 10_000;

/**
 * How many lines of a project, and of an organization, are kept. It goes by the lines' own times, which the node's runtime writes: lines
 * that waited for the collector have been written within their rate and are kept.
 */
export class LogBounds {
  readonly #options: LogBoundsOptions;
  readonly #buckets = new Map<string, Bucket>();

  constructor(options: LogBoundsOptions) {
    this.#options = options;
  }

  /** Whether a line is within the rates; it counts only then. @param at milliseconds since the epoch */
  admits({ organization, project }: Owner, at: number, bytes: number): boolean {
    const { organization: ofOrganization, project: ofProject } = this.#options;
    const buckets = [
      this.#bucket(`${organization}/${project}`, ofProject, at),
      this.#bucket(organization, ofOrganization, at),
    ];
    if (buckets.some((bucket) => bucket.lines < 1 || bucket.bytes < bytes)) {
      return false;
    }
    for (const bucket of buckets) {
      bucket.lines -= 1;
      bucket.bytes -= bytes;
    }
    return true;
  }

  #bucket(key: string, { linesPerSecond, bytesPerSecond }: Rate, at: number): Bucket {
    const { burstSeconds } = this.#options;
    const [lines, bytes] = [linesPerSecond * burstSeconds, bytesPerSecond * burstSeconds];
    const known = this.#buckets.get(key);
    if (!known) {
      const [oldest] = this.#buckets.size >= REMEMBERED ? this.#buckets.keys() : [];
      this.#buckets.delete(oldest ?? "");
      const bucket = { lines, bytes, at };
      this.#buckets.set(key, bucket);
      return bucket;
    }
    // A clock that was set back gives nothing twice.
    const seconds = Math.max(0, at - known.at) / 1000;
    known.lines = Math.min(lines, known.lines + seconds * linesPerSecond);
    known.bytes = Math.min(bytes, known.bytes + seconds * bytesPerSecond);
    known.at = Math.max(known.at, at);
    return known;
  }
}
