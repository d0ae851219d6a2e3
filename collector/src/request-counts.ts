import type { Clock } from "@slipway/process";
import type { Owner } from "./traefik-names.ts";

/** A request that ended longer ago is no load of now: it was waiting in a log that was not read. Less than the time between two readings. */
const RECENT_MS = 5_000;
/** For how long a log that such a request was found in counts as not read to its end. */
const BEHIND_MS = 15_000;
/** A project without a request for so long is forgotten; its count begins at 0 again. */
const FORGET_MS = 600_000;

/** What the operator reads, at `/requests` of the operations port. */
export interface RequestCountsAnswer {
  /** Another one after each start: its counts have begun at 0. */
  process: string;
  /** When this is, by the monotonic clock, in milliseconds. */
  at: number;
  /** Whether the counts have every request that ended up to a moment ago. */
  complete: boolean;
  /** Requests that reached instances, by `<organization>/<project>`, since the process has started. */
  counts: Record<string, number>;
}

export interface RequestCountsOptions {
  /** Distinguishes this process from those before it. */
  process: string;
  clock: Clock;
  /** Whether logs are being read. */
  isReading: () => boolean;
}

/** Counts requests by project: one number for each, whatever is requested. */
export class RequestCounts {
  readonly #options: RequestCountsOptions;
  readonly #counts = new Map<string, { requests: number; at: number }>();
  #behindUntil = Number.NEGATIVE_INFINITY;

  constructor(options: RequestCountsOptions) {
    this.#options = options;
  }

  /** @param endedAt by the wall clock, in milliseconds; counted unless it is long ago */
  add({ organization, project }: Owner, endedAt: number): void {
    const { clock } = this.#options;
    const now = clock.monotonic();
    if (clock.now().getTime() - endedAt > RECENT_MS) {
      this.behind();
      return;
    }
    const key = `${organization}/${project}`;
    const count = this.#counts.get(key) ?? { requests: 0, at: now };
    count.requests += 1;
    count.at = now;
    this.#counts.set(key, count);
  }

  /** Requests were missed, or read late: the counts are incomplete for a while. */
  behind(): void {
    this.#behindUntil = this.#options.clock.monotonic() + BEHIND_MS;
  }

  /** As of now. Forgets projects without requests. */
  answer(): RequestCountsAnswer {
    const { process, clock, isReading } = this.#options;
    const now = clock.monotonic();
    for (const [key, { at }] of this.#counts) {
      if (now - at > FORGET_MS) {
        this.#counts.delete(key);
      }
    }
    return {
      process,
      at: now,
      complete: isReading() && now >= this.#behindUntil,
      counts: Object.fromEntries([...this.#counts].map(([key, { requests }]) => [key, requests])),
    };
  }
}
