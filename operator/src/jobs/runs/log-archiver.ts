/** Archives the logs of ended runs: a few concurrently, and each within a time limit. */

import { type JobRun, organizationOfNamespace } from "@slipway/crds";
import { type Clock, ConcurrencyLimiter, type ConcurrencyLimits, type Logger, sleep } from "@slipway/process";
import { LogFollower } from "./log-follower.ts";
import type { RunLogSource, RunLogs } from "./ports.ts";

export interface LogArchiverOptions {
  logs: RunLogs;
  clock: Clock;
  log: Logger;
  /** Logs that are read concurrently, in all and of one organization: 12 and 4 by default. */
  limits?: Pick<ConcurrencyLimits, "total" | "perKey">;
}

/** A log that cannot be read within this time is abandoned. */
const TIMEOUT_MS = 30_000;
/** The least time left once the ledger is known to answer. */
const AFTER_CHARGE_MS = 10_000;
const RETRY_MS = 2_000;
/** Longest attempt. */
const ATTEMPT_TIMEOUT_MS = 15_000;

interface Entry {
  key: string;
  uid: string;
  run: RunLogSource;
  /** Monotonic time of the first try. */
  since: number;
  /** Monotonic time from which the ledger is known to answer. */
  chargedSince?: number;
  result?: "stored" | "unavailable";
}

/** Archives logs in the background; callers get the result once it is known. */
export class LogArchiver {
  readonly #options: Omit<LogArchiverOptions, "limits">;
  readonly #entries = new Map<string, Entry>();
  readonly #limiter: ConcurrencyLimiter;
  readonly #listeners = new Set<(key: string) => void>();
  readonly #stop = new AbortController();
  readonly #follower: LogFollower;

  constructor(options: LogArchiverOptions) {
    this.#options = options;
    this.#limiter = new ConcurrencyLimiter(options.limits ?? { total: 12, perKey: 4 });
    this.#follower = new LogFollower({ logs: options.logs, clock: options.clock, log: options.log });
  }

  /** Registers a listener for keys whose run's log was archived or abandoned. Returns how to remove it. */
  onArchived(listener: (key: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Follows the log of a run that is being stopped while its container still writes, for its node may remove it soon after the
   * end. Never rejects.
   * @param uid of the JobRun
   * @returns once the log is open, or after a second at most
   */
  follow(uid: string, run: RunLogSource): Promise<void> {
    return this.#follower.follow(uid, run);
  }

  /**
   * Whether the log was archived; undefined while that is in progress.
   * @param uid of the JobRun
   * @param charged whether the charge is in, so that the ledger is known to answer
   */
  archive(
    key: string,
    uid: string,
    run: RunLogSource,
    charged: boolean,
  ): "stored" | "unavailable" | undefined {
    const now = this.#options.clock.monotonic();
    let entry = this.#entries.get(uid);
    if (!entry) {
      entry = { key, uid, run, since: now };
      this.#entries.set(uid, entry);
      this.#begin(entry);
    }
    if (charged) {
      entry.chargedSince ??= now;
    }
    return entry.result;
  }

  /** Drops a run that is charged or deleted. */
  forget(uid: string): void {
    const entry = this.#entries.get(uid);
    if (entry) {
      entry.result ??= "unavailable";
    }
    this.#entries.delete(uid);
    this.#follower.forget(uid);
  }

  /** Stops reading. What was not archived is left to the next leader. */
  stop(): void {
    this.#stop.abort();
    this.#follower.stop();
  }

  /** Starts an attempt, as its organization's limit permits. */
  #begin(entry: Entry): void {
    if (this.#stop.signal.aborted) {
      return;
    }
    void this.#limiter.run(entry.run.organizationId, () => this.#try(entry));
  }

  /** Never rejects. */
  async #try(entry: Entry): Promise<void> {
    if (entry.result || this.#stop.signal.aborted) {
      return;
    }
    const { clock } = this.#options;
    try {
      this.#finish(entry, await this.#limited((signal) => this.#read(entry, signal)));
    } catch (error) {
      if (this.#isOverdue(entry)) {
        this.#finish(entry, await this.#abandon(entry, error));
      } else {
        void sleep(clock, RETRY_MS, this.#stop.signal).then(() => this.#begin(entry));
      }
    }
  }

  /** The log on the node is complete; what was followed while the container ran may have failed before its end. */
  async #read({ uid, run }: Entry, signal: AbortSignal): Promise<"stored" | "unavailable"> {
    const kept = await this.#options.logs.archive(run, signal);
    return kept === "stored" ? kept : await this.#follower.store(uid, signal);
  }

  /** Never rejects. */
  async #abandon({ uid, run }: Entry, reason: unknown): Promise<"stored" | "unavailable"> {
    try {
      if ((await this.#limited((signal) => this.#follower.store(uid, signal))) === "stored") {
        return "stored";
      }
    } catch {
      // The first reason is logged.
    }
    this.#options.log.warn({ err: reason, run: run.runId }, "the log of a run could not be kept");
    return "unavailable";
  }

  async #limited<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const abort = new AbortController();
    const limit = this.#options.clock.setTimeout(
      () => abort.abort(new DOMException("reading a log took too long", "TimeoutError")),
      ATTEMPT_TIMEOUT_MS,
    );
    try {
      return await work(AbortSignal.any([abort.signal, this.#stop.signal]));
    } finally {
      limit.cancel();
    }
  }

  #isOverdue({ since, chargedSince }: Entry): boolean {
    const now = this.#options.clock.monotonic();
    return now - since >= TIMEOUT_MS && chargedSince !== undefined && now - chargedSince >= AFTER_CHARGE_MS;
  }

  #finish(entry: Entry, result: "stored" | "unavailable"): void {
    entry.result ??= result;
    for (const listener of this.#listeners) {
      listener(entry.key);
    }
  }
}

/** What identifies a run's log; undefined outside of organizations' namespaces. Pure. */
export function logSourceOf({ metadata, spec }: JobRun, podName: string): RunLogSource | undefined {
  const { name, namespace = "" } = metadata;
  const organizationId = organizationOfNamespace(namespace);
  if (organizationId === undefined) {
    return undefined;
  }
  return {
    organizationId,
    namespace,
    projectId: spec.projectRef.name,
    runId: name,
    scheduledAt: new Date(spec.scheduledAt),
    podName,
  };
}
