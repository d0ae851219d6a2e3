import { type Filter, type Selection, type Store, StoreUnavailable, type Window } from "@slipway/analytics";
import { ConcurrencyLimiter } from "@slipway/process";
import { failures } from "../errors/catalog.ts";
import type { ApiProject } from "../projects/api-project.ts";

/** Queries of the analytics store: limited by organization; those of network analytics are cached for two seconds. */

/** Answers that are given again for a short while, also while they are still being worked out. */
export class Recent<T> {
  readonly #entries = new Map<string, { since: number; answer: Promise<T> }>();
  readonly #ttlMs: number;
  readonly #maxEntries: number;
  readonly #now: () => number;

  /**
   * @param ttlMs how long an answer is returned again, from the start of its query
   * @param maxEntries answers that are cached
   * @param now milliseconds that never go back
   */
  constructor(ttlMs: number, maxEntries: number, now: () => number = () => performance.now()) {
    this.#ttlMs = ttlMs;
    this.#maxEntries = maxEntries;
    this.#now = now;
  }

  /** The answer to this very question, or a new one. A failure is not given again. */
  of(question: string, work: () => Promise<T>): Promise<T> {
    const now = this.#now();
    const known = this.#entries.get(question);
    if (known && now - known.since <= this.#ttlMs) {
      return known.answer;
    }
    const entry = { since: now, answer: work() };
    this.#entries.delete(question);
    this.#entries.set(question, entry);
    // The oldest come first.
    for (const [key, { since }] of this.#entries) {
      if (now - since <= this.#ttlMs && this.#entries.size <= this.#maxEntries) {
        break;
      }
      this.#entries.delete(key);
    }
    entry.answer.catch(() => {
      if (this.#entries.get(question) === entry) {
        this.#entries.delete(question);
      }
    });
    return entry.answer;
  }
}

/** Milliseconds for which an answer is given again. */
const RECENT_MS = 2_000;
const RECENT_ANSWERS = 1_000;

/** Queries that the store works at for this process, and for one organization. */
const LIMITS = { total: 8, perKey: 2, waiting: 200, waitingPerKey: 50, waitMs: 5_000 };

/** The same of searches, and of histories, which may take as long as the store allows: each apart from others, and four organizations' concurrently. */
const SEARCH_LIMITS = { total: 4, perKey: 1, waiting: 100, waitingPerKey: 20, waitMs: 5_000 };

/** How long all queries of one history may take, in milliseconds: so long it keeps its place. */
const HISTORY_MS = 10_000;

/** The window as the client requested it: a range ends now. */
export type RequestedWindow = { rangeMs: number } | Window;

export interface Question {
  /** The query: an operation's name, and what else its answer depends on. */
  about: readonly unknown[];
  window: RequestedWindow;
  filter: Filter;
}

/** Answers about a window are given with the window that they are about. */
export interface Answered<T> {
  window: Window;
  value: T;
}

/** Reads what became of projects' requests. */
export class Analytics {
  readonly #store: Store | undefined;
  readonly #keepsLogs: boolean;
  readonly #keepsMetrics: boolean;
  readonly #now: () => Date;
  readonly #historyMs: number;
  readonly #recent = new Recent<Answered<unknown>>(RECENT_MS, RECENT_ANSWERS);
  readonly #limiter = new ConcurrencyLimiter({ ...LIMITS, refuse: failures.analyticsBusy });
  readonly #searches = new ConcurrencyLimiter({ ...SEARCH_LIMITS, refuse: failures.analyticsBusy });
  readonly #histories = new ConcurrencyLimiter({ ...SEARCH_LIMITS, refuse: failures.analyticsBusy });

  /**
   * @param store undefined where the platform has none
   * @param options.keepsLogs whether projects' logs are collected into it
   * @param options.keepsMetrics whether what their instances use is
   */
  constructor(
    store: Store | undefined,
    {
      keepsLogs = true,
      keepsMetrics = true,
      now = () => new Date(),
      historyMs = HISTORY_MS,
    }: { keepsLogs?: boolean; keepsMetrics?: boolean; now?: () => Date; historyMs?: number } = {},
  ) {
    this.#store = store;
    this.#keepsLogs = keepsLogs;
    this.#keepsMetrics = keepsMetrics;
    this.#now = now;
    this.#historyMs = historyMs;
  }

  /**
   * Answers a query about a project. Equal queries get the same answer, about the same window, for two seconds.
   * @throws Failure 503 when there is no store, when it does not answer, or has too much to do
   */
  answer<T>(
    { organizationId: organization, id: project }: Pick<ApiProject, "organizationId" | "id">,
    { about, window: requested, filter }: Question,
    read: (store: Store, selection: Selection) => Promise<T>,
  ): Promise<Answered<T>> {
    const store = this.#store;
    if (store === undefined) {
      throw failures.analyticsNotConfigured();
    }
    const question = JSON.stringify([organization, project, about, requested, filter]);
    const work = async (): Promise<Answered<T>> => {
      const window = windowOf(requested, this.#now());
      const value = await read(store, { organization, project, window, filter }).catch(asFailure);
      return { window, value };
    };
    return this.#recent.of(question, () => this.#limiter.run(organization, work)) as Promise<Answered<T>>;
  }

  /** @throws Failure 503 where the platform keeps no logs of projects */
  requireLogs(): void {
    if (this.#store === undefined || !this.#keepsLogs) {
      throw failures.analyticsNotConfigured("logs of projects");
    }
  }

  /**
   * Answers a question about logs, whose answer is too long to be given again. It waits for its turn among searches, and keeps its place until `read` ends.
   * @param signal one that has aborted when its turn comes begins nothing
   * @throws Failure as {@link answer}
   */
  search<T>(organization: string, signal: AbortSignal, read: (store: Store) => Promise<T>): Promise<T> {
    const store = this.#keepsLogs ? this.#store : undefined;
    return alone(this.#searches, store, "logs of projects", { organization, signal, read });
  }

  /**
   * The same of what instances used: histories wait for each other alone.
   * @param query its signal aborts with that of the caller, and after ten seconds of the queries together
   */
  history<T>(
    organization: string,
    signal: AbortSignal,
    query: (store: Store, within: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const store = this.#keepsMetrics ? this.#store : undefined;
    const read = async (from: Store): Promise<T> => {
      const deadline = AbortSignal.timeout(this.#historyMs);
      try {
        return await query(from, AbortSignal.any([signal, deadline]));
      } catch (error) {
        throw deadline.aborted && error instanceof StoreUnavailable
          ? new StoreUnavailable(error, true)
          : error;
      }
    };
    return alone(this.#histories, store, "metrics of instances", { organization, signal, read });
  }

  async close(): Promise<void> {
    await this.#store?.client.close();
  }
}

/** A query that is too long to be given again, in its turn among those of its kind. */
function alone<T>(
  limiter: ConcurrencyLimiter,
  store: Store | undefined,
  what: string,
  {
    organization,
    signal,
    read,
  }: { organization: string; signal: AbortSignal; read: (store: Store) => Promise<T> },
): Promise<T> {
  if (store === undefined) {
    throw failures.analyticsNotConfigured(what);
  }
  return limiter.run(organization, async () => {
    if (signal.aborted) {
      throw failures.analyticsUnavailable(signal.reason);
    }
    return read(store).catch(asFailure);
  });
}

function windowOf(requested: RequestedWindow, now: Date): Window {
  if (!("rangeMs" in requested)) {
    return requested;
  }
  const to = now.getTime();
  return { from: to - requested.rangeMs, to };
}

function asFailure(error: unknown): never {
  if (!(error instanceof StoreUnavailable)) {
    throw error;
  }
  throw error.busy ? failures.analyticsBusy(error) : failures.analyticsUnavailable(error);
}
