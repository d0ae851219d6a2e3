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
  /** Seconds of the rate that may come together: lines are counted in windows of this length. */
  burstSeconds: number;
}

/** What an owner has written in one window. */
interface Written {
  lines: number;
  bytes: number;
}

/** Windows of owners that are remembered, the newest. One that is forgotten has nothing written in it. */
const REMEMBERED = 20_000;

/**
 * How many lines of a project, and of an organization, are kept. Lines count in the window of their own times, which the node's
 * runtime writes: in which order they are read, and how long after, changes nothing. Nor does a clock that is set back, whose lines
 * are in a window that has been used already.
 */
export class LogBounds {
  readonly #options: LogBoundsOptions;
  readonly #windows = new Map<string, Written>();

  constructor(options: LogBoundsOptions) {
    this.#options = options;
  }

  /** Whether a line is within the rates; it counts only then. @param at milliseconds since the epoch */
  admits({ organization, project }: Owner, at: number, bytes: number): boolean {
    const { burstSeconds, ...rates } = this.#options;
    const window = Math.floor(at / (burstSeconds * 1000));
    const ofProject = this.#of(`${organization}/${project}/${window}`);
    const ofOrganization = this.#of(`${organization}/${window}`);
    const isWithin = ({ lines, bytes: written }: Written, rate: Rate) =>
      lines + 1 <= rate.linesPerSecond * burstSeconds && written + bytes <= rate.bytesPerSecond * burstSeconds;
    if (!isWithin(ofProject, rates.project) || !isWithin(ofOrganization, rates.organization)) {
      return false;
    }
    for (const written of [ofProject, ofOrganization]) {
      written.lines += 1;
      written.bytes += bytes;
    }
    return true;
  }

  #of(key: string): Written {
    const known = this.#windows.get(key);
    if (known) {
      return known;
    }
    const written = { lines: 0, bytes: 0 };
    this.#windows.set(key, written);
    if (this.#windows.size > REMEMBERED) {
      const [oldest = ""] = this.#windows.keys();
      this.#windows.delete(oldest);
    }
    return written;
  }
}
