/**
 * The ledger's quotas of projects, cached by this process: an unchanged project sends no query. The cache is read from the
 * ledger at start and again every minute, so that changes of other processes are observed.
 */

import type { QuotaDecision, QuotaRequest, QuotaReservation, ReleaseCondition } from "@slipway/ledger";
import type { Logger } from "@slipway/process";
import {
  isSame,
  isSameReserved,
  keyOf,
  LedgerQueries,
  type ProjectIdentity,
  type QuotaLedger,
  type Reserved,
  reservedOf,
  reservedOfRow,
} from "./quota-ledger.ts";

/** A project whose quota was refused. */
interface Refused extends ProjectIdentity {
  plan: string;
}

export class QuotaReservations {
  readonly #ledger: QuotaLedger;
  readonly #log: Logger;
  readonly #queries: LedgerQueries;
  readonly #reserved = new Map<string, Reserved>();
  readonly #refused = new Map<string, Refused>();
  /** Projects that continued without an answer from the ledger. */
  readonly #unchecked = new Map<string, ProjectIdentity>();
  #wake: (identity: ProjectIdentity) => void = () => {};
  #loading: Promise<unknown> | undefined;

  /** @param now monotonic milliseconds */
  constructor(ledger: QuotaLedger, log: Logger, now: () => number, timeoutMs?: number) {
    this.#ledger = ledger;
    this.#log = log;
    this.#queries = new LedgerQueries(log, now, timeoutMs);
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
    const answer = await this.#queries.query(() => {
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
      await this.#queries.query(() => this.#ledger.release(identity, condition));
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
    const rows = await this.#queries.query(() => this.#ledger.list());
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
    const freed = await this.#queries.query(() => this.#ledger.release(identity, { idleSeconds }));
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
}
