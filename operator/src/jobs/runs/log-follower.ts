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
   * Logs read at once, and those of one organization: 50 and 20 unless given. A run beyond that has its log read once it has
   * ended, if its node still has it.
   */
  limits?: Pick<ConcurrencyLimits, "total" | "perKey">;
}

/** Whoever stops a run waits for its log to be open for so long, and no longer. */
const OPEN_MS = 1_000;
/** While so many are awaited, of one organization or of all, nodes are silent: nobody waits for one more. */
const MAX_OPENING = { total: 8, perKey: 4 };
/** One that broke off is opened again after so long. */
const REOPEN_MS = 5_000;
/** What a log writes last comes within so long of its container's end: nodes look once a second whether it has ended. */
const TRAILING_OUTPUT_MS = 5_000;
/** Logs whose end is kept in memory, until they are stored: 51,200 bytes each, and one chunk. */
const MAX_KEPT = 500;

interface Entry {
  readonly organizationId: string;
  readonly abort: AbortController;
  /** Monotonic time at which it was begun. */
  readonly since: number;
  /** Opened, or being opened. */
  reading: boolean;
  /** What has come, also of the time before it broke off. */
  log?: FollowedLog | undefined;
}

export class LogFollower {
  readonly #options: Omit<LogFollowerOptions, "limits">;
  readonly #limiter: ConcurrencyLimiter;
  readonly #opening = new ConcurrencyLimiter(MAX_OPENING);
  /** By uid of the JobRun, in the order in which they were begun. */
  readonly #entries = new Map<string, Entry>();
  #stopped = false;

  constructor(options: LogFollowerOptions) {
    this.#options = options;
    this.#limiter = new ConcurrencyLimiter(options.limits ?? { total: 50, perKey: 20 });
  }

  /**
   * Begins to follow a run's log, unless it is followed already or too many are. Never rejects.
   * @returns once the log is open, or cannot be opened, or that takes too long
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
   * Keeps what was read of an ended run's log, which may take a moment more to come.
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
    // One that stops to lead has broken it off itself.
    signal.throwIfAborted();
    return await log.store();
  }

  /** Drops what was read of a run, and reads no more of it. */
  forget(uid: string): void {
    this.#entries.get(uid)?.abort.abort();
    this.#entries.delete(uid);
  }

  /** Ends them all, and begins none any more. */
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
   * Of the organization with most logs whose reading is over the oldest is dropped; there is one, for most of them cannot be read
   * at once.
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
