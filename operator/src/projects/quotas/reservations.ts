/**
 * The ledger's quotas of projects, cached by this process: an unchanged project sends no query. The cache is read from the
 * ledger at start and again every minute, so that changes of other processes are observed.
 */

import {
  type Ledger,
  listQuotaReservations,
  type QuotaDecision,
  type QuotaRequest,
  type QuotaReservation,
  type ReleaseCondition,
  releaseQuota,
  reserveQuota,
} from "@slipway/ledger";
import { type Logger, withTimeout } from "@slipway/process";

/** Quotas in the ledger. Each call throws when the ledger is unavailable. */
export interface QuotaLedger {
  reserve(request: QuotaRequest): Promise<QuotaDecision>;
  /** Returns whether there was one that fits the condition. */
  release(identity: ProjectIdentity, condition?: ReleaseCondition): Promise<boolean>;
  list(): Promise<QuotaReservation[]>;
}

/** The real one. */
export const ledgerQuotas = (ledger: Ledger): QuotaLedger => ({
  reserve: (request) => reserveQuota(ledger, request),
  release: ({ organizationId, projectId }, condition) =>
    releaseQuota(ledger, projectId, organizationId, condition),
  list: () => listQuotaReservations(ledger),
});

export interface ProjectIdentity {
  organizationId: string;
  projectId: string;
}

/** The ledger does not answer. */
export class LedgerUnavailableError extends Error {
  override readonly name = "LedgerUnavailableError";
}

interface Reserved extends ProjectIdentity {
  plan: string;
  scope: string | null;
  amount: number;
  version: string;
  /** Reserved by another process so recently that its project may not be written yet: this process must not release it. */
  ahead?: boolean;
}

/** A project whose quota was refused. */
interface Refused extends ProjectIdentity {
  plan: string;
}

/** After a failure the ledger is not queried for this long, lest every project waits for it in turn. */
const BACKOFF_MS = 2_000;
/**
 * A quota that was reserved more recently may belong to a change that the API has not written yet: the difference is
 * ignored.
 */
const PENDING_SECONDS = 60;
/**
 * Timeout of a query; the ledger counts as unavailable then. Reconciles wait for it, and a network that drops packets
 * would delay one after the other. A query may still take effect later: nothing relies on it.
 */
const TIMEOUT_MS = 5_000;

export class QuotaReservations {
  readonly #ledger: QuotaLedger;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #timeoutMs: number;
  readonly #reserved = new Map<string, Reserved>();
  readonly #refused = new Map<string, Refused>();
  /** Projects that continued without an answer from the ledger. */
  readonly #unchecked = new Map<string, ProjectIdentity>();
  #wake: (identity: ProjectIdentity) => void = () => {};
  #loading: Promise<unknown> | undefined;
  #unavailableUntil = Number.NEGATIVE_INFINITY;
  #isUnavailable = false;

  /** @param now monotonic milliseconds */
  constructor(ledger: QuotaLedger, log: Logger, now: () => number, timeoutMs = TIMEOUT_MS) {
    this.#ledger = ledger;
    this.#log = log;
    this.#now = now;
    this.#timeoutMs = timeoutMs;
  }

  /** Calls the listener with each project to reconcile again, since a quota was released or its own has changed. */
  onWake(listener: (identity: ProjectIdentity) => void): () => void {
    this.#wake = listener;
    return () => {
      this.#wake = () => {};
    };
  }

  /**
   * Reserves what is requested, in place of what the project had reserved.
   * @throws LedgerUnavailableError
   */
  async reserve(request: QuotaRequest): Promise<QuotaDecision> {
    await this.#load();
    const key = keyOf(request);
    const before = this.#reserved.get(key);
    if (before && isSame(before, request)) {
      return { reserved: true, version: before.version };
    }
    const answer = await this.#query(() => {
      // Without an answer it may be done or not: then what the ledger has is not known.
      this.#reserved.delete(key);
      return this.#ledger.reserve(request);
    });
    if (!answer.reserved) {
      if (before) {
        this.#reserved.set(key, before);
      }
      this.#refused.set(key, request);
      return answer;
    }
    this.#refused.delete(key);
    this.#reserved.set(key, reservedOf(request, answer.version));
    if (before) {
      this.#wakeRefused(before);
    }
    return answer;
  }

  /** Reconciles a project that continued without an answer once the ledger can be read. */
  requeueWhenAvailable(identity: ProjectIdentity): void {
    this.#unchecked.set(keyOf(identity), identity);
  }

  /**
   * Releases the known quota of a paused project, but not one that was reserved since, by a resume that this process does
   * not see yet. The reaper repeats what fails.
   */
  async releaseOfPaused(identity: ProjectIdentity): Promise<void> {
    await this.#load();
    const key = keyOf(identity);
    this.#refused.delete(key);
    const reserved = this.#reserved.get(key);
    if (reserved && !reserved.ahead) {
      await this.#releaseFromLedger(identity, { version: reserved.version });
    }
  }

  /** Releases the quota of a project that is being deleted; the reaper repeats what fails. */
  async release(identity: ProjectIdentity): Promise<void> {
    this.#refused.delete(keyOf(identity));
    await this.#releaseFromLedger(identity);
  }

  /** Drops the cached quota whether the condition matched or not: the next caller queries the ledger. */
  async #releaseFromLedger(identity: ProjectIdentity, condition?: ReleaseCondition): Promise<void> {
    const key = keyOf(identity);
    const before = this.#reserved.get(key);
    try {
      await this.#query(() => this.#ledger.release(identity, condition));
    } catch {
      return;
    }
    if (this.#reserved.get(key) === before) {
      this.#reserved.delete(key);
    }
    if (before) {
      this.#wakeRefused(before);
    }
  }

  /**
   * Reads all quotas, and wakes every project whose quota differs from the cached one.
   * @throws LedgerUnavailableError
   */
  async refresh(): Promise<QuotaReservation[]> {
    const known = new Map(this.#reserved);
    const rows = await this.#query(() => this.#ledger.list());
    const seen = new Set<string>();
    for (const row of rows) {
      const reserved = reservedOfRow(row);
      const key = keyOf(reserved);
      seen.add(key);
      const before = this.#reserved.get(key);
      // The cached one is kept with its version: only that may be released.
      if (before && reserved.ahead) {
        continue;
      }
      this.#reserved.set(key, reserved);
      if (before && !isSameReserved(before, reserved)) {
        this.#wake(reserved);
      }
    }
    for (const [key, reserved] of known) {
      // A quota that was reserved while the rows were read is in none of them.
      if (seen.has(key) || this.#reserved.get(key) !== reserved) {
        continue;
      }
      this.#reserved.delete(key);
      this.#wake(reserved);
      this.#wakeRefused(reserved);
    }
    for (const identity of this.#unchecked.values()) {
      this.#wake(identity);
    }
    this.#unchecked.clear();
    return rows;
  }

  /** Releases the quota of a deleted project, unless it was reserved again recently. */
  async reap(identity: ProjectIdentity, idleSeconds: number): Promise<void> {
    const freed = await this.#query(() => this.#ledger.release(identity, { idleSeconds }));
    if (!freed) {
      return;
    }
    const before = this.#reserved.get(keyOf(identity));
    this.#reserved.delete(keyOf(identity));
    this.#log.info(
      { organization: identity.organizationId, project: identity.projectId },
      "released a quota",
    );
    if (before) {
      this.#wakeRefused(before);
    }
  }

  /** Reads the ledger at the start; when it is unavailable, the reaper reads it later. */
  async #load(): Promise<void> {
    this.#loading ??= this.refresh().catch(() => undefined);
    await this.#loading;
  }

  /** Wakes refused projects that may fit now: those of the organization, and those on the same plan. */
  #wakeRefused({ organizationId, plan }: Reserved): void {
    for (const refused of this.#refused.values()) {
      if (refused.organizationId === organizationId || refused.plan === plan) {
        this.#wake(refused);
      }
    }
  }

  async #query<T>(query: () => Promise<T>): Promise<T> {
    if (this.#now() < this.#unavailableUntil) {
      throw new LedgerUnavailableError("the ledger did not answer a moment ago");
    }
    try {
      const answer = await withTimeout(query(), this.#timeoutMs);
      if (this.#isUnavailable) {
        this.#log.info({}, "quotas can be reserved again");
      }
      this.#isUnavailable = false;
      return answer;
    } catch (error) {
      this.#unavailableUntil = this.#now() + BACKOFF_MS;
      if (!this.#isUnavailable) {
        this.#log.warn({ err: error }, "quotas cannot be reserved");
      }
      this.#isUnavailable = true;
      throw new LedgerUnavailableError("the ledger does not answer", { cause: error });
    }
  }
}

const keyOf = ({ organizationId, projectId }: ProjectIdentity): string => `${organizationId}/${projectId}`;

const reservedOf = (request: QuotaRequest, version: string): Reserved => ({
  organizationId: request.organizationId,
  projectId: request.projectId,
  plan: request.plan,
  scope: request.limit?.scope ?? null,
  amount: request.amount,
  version,
});

const reservedOfRow = (row: QuotaReservation): Reserved => ({
  organizationId: row.organization_id,
  projectId: row.project_id,
  plan: row.plan,
  scope: row.scope,
  amount: row.slots,
  version: row.version,
  ahead: row.idle_seconds < PENDING_SECONDS,
});

const isSame = (reserved: Reserved, request: QuotaRequest): boolean =>
  isSameReserved(reserved, reservedOf(request, reserved.version));

const isSameReserved = (a: Reserved, b: Reserved): boolean =>
  a.plan === b.plan && a.scope === b.scope && a.amount === b.amount;
