/**
 * Reads the logs of containers that are being stopped while they still write: a node removes a deleted pod's container with
 * its log about a second after its end, before that end is known here.
 */

import {
  type Clock,
  ConcurrencyLimiter,
  type ConcurrencyLimits,
  type Logger,
  type Release,
  sleep,
} from "@slipway/process";
import type { FollowedLog, RunLogSource, RunLogs } from "./ports.ts";

export interface LogFollowerOptions {
  logs: Pick<RunLogs, "follow">;
  clock: Clock;
  log: Logger;
  /**
   * Logs that are read concurrently, in all and of one organization: 50 and 20 by default. The log of a run beyond that is read
   * after its end, if its node still has it.
   */
  limits?: Pick<ConcurrencyLimits, "total" | "perKey">;
}

/** How long stopping a run waits for its log to open. */
const OPEN_MS = 1_000;
/** While so many are opening, in all or of one organization, nodes do not answer: nothing waits for one more. */
const MAX_OPENING = { total: 8, perKey: 4 };
/** After which a log whose reading failed is opened again. */
const REOPEN_MS = 5_000;
/** Within which the last output arrives after a container's end: nodes check once a second whether it has ended. */
const TRAILING_OUTPUT_MS = 5_000;
/** Logs whose end is in memory until they are stored: 51,200 bytes each, and one chunk. */
const MAX_KEPT = 500;

interface Entry {
  readonly organizationId: string;
  readonly abort: AbortController;
  /** Monotonic time of its start. */
  readonly since: number;
  /** Opened, or being opened. */
  reading: boolean;
  /** What was read, also before a failure. */
  log?: FollowedLog | undefined;
}

export class LogFollower {
  readonly #options: Omit<LogFollowerOptions, "limits">;
  readonly #limiter: ConcurrencyLimiter;
  readonly #opening = new ConcurrencyLimiter(MAX_OPENING);
  /** By uid of the JobRun, in the order of their start. */
  readonly #entries = new Map<string, Entry>();
  #stopped = false;

  constructor(options: LogFollowerOptions) {
    this.#options = options;
    this.#limiter = new ConcurrencyLimiter(options.limits ?? { total: 50, perKey: 20 });
  }

  /**
   * Begins to follow a run's log, unless it is followed already or too many are. Never rejects.
   * @returns once the log is open, or cannot be opened, or after a timeout
   */
  async follow(uid: string, run: RunLogSource): Promise<void> {
    const { clock } = this.#options;
    const known = this.#entries.get(uid);
    const now = clock.monotonic();
    if (this.#stopped || (known && (known.reading || now - known.since < REOPEN_MS))) {
      return;
    }
    const release = this.#limiter.tryAcquire(run.organizationId);
    if (!release) {
      return;
    }
    this.#makeRoom();
    const { organizationId } = run;
    const abort = new AbortController();
    const entry: Entry = { organizationId, abort, since: now, reading: true, log: known?.log };
    // Deleted first, so that it is the youngest.
    this.#entries.delete(uid);
    this.#entries.set(uid, entry);
    const opened = this.#open(entry, run, release);
    const place = this.#opening.tryAcquire(organizationId);
    if (!place) {
      return;
    }
    void opened.then(place);
    const waited = new AbortController();
    await Promise.race([opened, sleep(clock, OPEN_MS, waited.signal)]);
    waited.abort();
  }

  /**
   * Stores what was read of an ended run's log, the last of which may arrive a moment later.
   * @returns `unavailable` when nothing was
   * @throws when it should be tried again
   */
  async store(uid: string, signal: AbortSignal): Promise<"stored" | "unavailable"> {
    signal.throwIfAborted();
    const { log } = this.#entries.get(uid) ?? {};
    if (!log) {
      return "unavailable";
    }
    const waited = new AbortController();
    const limit = sleep(this.#options.clock, TRAILING_OUTPUT_MS, AbortSignal.any([signal, waited.signal]));
    await Promise.race([log.ended, limit]);
    waited.abort();
    // A process that lost the leadership has aborted its own logs.
    signal.throwIfAborted();
    return await log.store();
  }

  /** Stops to read a log, and drops what was read. */
  forget(uid: string): void {
    this.#entries.get(uid)?.abort.abort();
    this.#entries.delete(uid);
  }

  /** Aborts all, and starts no more. */
  stop(): void {
    this.#stopped = true;
    for (const uid of [...this.#entries.keys()]) {
      this.forget(uid);
    }
  }

  /** Never rejects. */
  async #open(entry: Entry, run: RunLogSource, release: Release): Promise<void> {
    const { logs, log } = this.#options;
    const over = () => {
      entry.reading = false;
      release();
    };
    try {
      const followed = await logs.follow(run, entry.abort.signal);
      entry.log = followed;
      void followed.ended.then(over);
    } catch (error) {
      over();
      if (!entry.abort.signal.aborted) {
        log.info({ err: error, run: run.runId }, "the log of a run could not be followed");
      }
    }
  }

  /**
   * Drops the oldest ended log of the organization that has most of them; there is one, for fewer than these can be read
   * concurrently.
   */
  #makeRoom(): void {
    if (this.#entries.size < MAX_KEPT) {
      return;
    }
    const ended = [...this.#entries].filter(([, { reading }]) => !reading);
    const byOrganization = Object.values(Object.groupBy(ended, ([, { organizationId }]) => organizationId));
    const [most] = byOrganization.sort((a = [], b = []) => b.length - a.length);
    const [oldest] = most ?? [];
    if (oldest) {
      this.#entries.delete(oldest[0]);
    }
  }
}
