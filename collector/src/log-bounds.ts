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
  /** Of all projects of an organization together, in a day of UTC. */
  organizationBytesPerDay: number;
}

/** Of one window. */
interface Amount {
  lines: number;
  bytes: number;
}

const DAY_SECONDS = 86_400;

/**
 * How many lines of a project, and of an organization, are kept. Lines count in the window of their own times, which the node's
 * runtime writes: in which order they are read, and how long after, changes nothing. Nor does a clock that is set back, whose lines
 * are in a window that has been used already. A process that begins has counted nothing.
 */
export class LogBounds {
  readonly #ofProject: Windows;
  readonly #ofOrganization: Windows;
  readonly #ofDay: Windows;

  constructor({ project, organization, burstSeconds, organizationBytesPerDay }: LogBoundsOptions) {
    const within = ({ linesPerSecond, bytesPerSecond }: Rate): Amount => ({
      lines: linesPerSecond * burstSeconds,
      bytes: bytesPerSecond * burstSeconds,
    });
    this.#ofProject = new Windows(burstSeconds, within(project));
    this.#ofOrganization = new Windows(burstSeconds, within(organization));
    this.#ofDay = new Windows(DAY_SECONDS, {
      lines: Number.POSITIVE_INFINITY,
      bytes: organizationBytesPerDay,
    });
  }

  /** Whether a line is within the bounds; it counts only then. @param at milliseconds since the epoch */
  admits({ organization, project }: Owner, at: number, bytes: number): boolean {
    const counted = [
      this.#ofProject.at(`${organization}/${project}`, at),
      this.#ofOrganization.at(organization, at),
      this.#ofDay.at(organization, at),
    ];
    if (
      counted.some(
        ({ written, most }) => written.lines + 1 > most.lines || written.bytes + bytes > most.bytes,
      )
    ) {
      return false;
    }
    for (const { written } of counted) {
      written.lines += 1;
      written.bytes += bytes;
    }
    return true;
  }
}

/** Windows of owners that are remembered, the newest. One that is forgotten has nothing written in it. */
const REMEMBERED = 10_000;

/** What owners have written in windows of one length. */
class Windows {
  readonly #seconds: number;
  readonly #most: Amount;
  readonly #windows = new Map<string, Amount>();

  constructor(seconds: number, most: Amount) {
    this.#seconds = seconds;
    this.#most = most;
  }

  /** What the owner has written in the window of a time, and the most that it may. */
  at(owner: string, time: number): { written: Amount; most: Amount } {
    const key = `${owner}/${Math.floor(time / (this.#seconds * 1000))}`;
    const written = this.#windows.get(key) ?? { lines: 0, bytes: 0 };
    if (written.lines === 0) {
      this.#windows.set(key, written);
    }
    if (this.#windows.size > REMEMBERED) {
      const [oldest = ""] = this.#windows.keys();
      this.#windows.delete(oldest);
    }
    return { written, most: this.#most };
  }
}
