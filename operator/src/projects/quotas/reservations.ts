/**
 * What this process knows of the ledger's slots: a settled project asks nothing. The memory is read from the ledger at
 * start and again every minute, so what others did there is found out, and a slot of a project that is gone is freed.
 */

import {
  type HeldSlot,
  type Ledger,
  listSlots,
  type ReleaseCondition,
  releaseSlot,
  type SlotAnswer,
  type SlotRequest,
  takeSlot,
} from "@slipway/ledger";
import { type Logger, withTimeout } from "@slipway/process";

/** The ledger's slots. Each call may throw when the ledger is away. */
export interface QuotaLedger {
  take(request: SlotRequest): Promise<SlotAnswer>;
  /** Returns whether there was one that fits the condition. */
  release(identity: ProjectIdentity, condition?: ReleaseCondition): Promise<boolean>;
  list(): Promise<HeldSlot[]>;
}

/** The real one. */
export const ledgerQuotas = (ledger: Ledger): QuotaLedger => ({
  take: (request) => takeSlot(ledger, request),
  release: ({ organizationId, projectId }, condition) =>
    releaseSlot(ledger, projectId, organizationId, condition),
  list: () => listSlots(ledger),
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
  slots: number;
  version: string;
  /** Taken by others, so lately that what they took it for may not be written yet: no view of this process is about it. */
  ahead?: boolean;
}

/** A project that found no slot. */
interface Refused extends ProjectIdentity {
  plan: string;
}

/** For so long after a failure the ledger is not asked again, lest every project waits for it in turn. */
const BACKOFF_MS = 2_000;
/**
 * A slot that was asked for so lately may belong to a change that the API has not written yet: it is no difference to
 * act upon.
 */
const PENDING_SECONDS = 60;
/**
 * How long the ledger may take for an answer; it is away then. Reconciles wait for it, and a network that drops
 * everything would hold up one after the other. What was asked may be done later: nothing relies on it.
 */
const TIMEOUT_MS = 5_000;

export class QuotaReservations {
  readonly #ledger: QuotaLedger;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #timeoutMs: number;
  readonly #reserved = new Map<string, Reserved>();
  readonly #refused = new Map<string, Refused>();
  /** Projects that could not ask and went on by what they had. */
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

  /** Calls the listener with each project that should look again, since a slot was freed or its own has changed. */
  onWake(listener: (identity: ProjectIdentity) => void): () => void {
    this.#wake = listener;
    return () => {
      this.#wake = () => {};
    };
  }

  /**
   * Holds what is asked for, in place of what the project reserved.
   * @throws LedgerUnavailableError
   */
  async reserve(request: SlotRequest): Promise<SlotAnswer> {
    await this.#load();
    const key = keyOf(request);
    const before = this.#reserved.get(key);
    if (before && isSame(before, request)) {
      return { taken: true, version: before.version };
    }
    const answer = await this.#query(() => {
      // Without an answer it may be done or not: then what the ledger has is not known.
      this.#reserved.delete(key);
      return this.#ledger.take(request);
    });
    if (!answer.taken) {
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

  /** Has a project that went on without an answer look again once the ledger can be read. */
  requeueWhenAvailable(identity: ProjectIdentity): void {
    this.#unchecked.set(keyOf(identity), identity);
  }

  /**
   * Gives back what a paused project is known to hold, but not what was taken since: by a resume that this process does
   * not see yet. What fails now is found by the reaper.
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

  /** Gives back whatever a project that is going away may hold; what fails now is found by the reaper. */
  async release(identity: ProjectIdentity): Promise<void> {
    this.#refused.delete(keyOf(identity));
    await this.#releaseFromLedger(identity);
  }

  /** Whether there was one that fits or not: what is reserved is not known any more, so whoever needs it asks. */
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
   * Reads all slots, and wakes every project whose slot is no longer what this process thought.
   * @throws LedgerUnavailableError
   */
  async refresh(): Promise<HeldSlot[]> {
    const known = new Map(this.#reserved);
    const rows = await this.#query(() => this.#ledger.list());
    const seen = new Set<string>();
    for (const row of rows) {
      const reserved = reservedOfRow(row);
      const key = keyOf(reserved);
      seen.add(key);
      const before = this.#reserved.get(key);
      // What is known is kept with its version: only that may be given back.
      if (before && reserved.ahead) {
        continue;
      }
      this.#reserved.set(key, reserved);
      if (before && !isSameReserved(before, reserved)) {
        this.#wake(reserved);
      }
    }
    for (const [key, reserved] of known) {
      // What was taken while the rows were read is in none of them.
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

  /** Frees the slot of a project that is gone, unless it was asked for again lately. */
  async reap(identity: ProjectIdentity, idleSeconds: number): Promise<void> {
    const freed = await this.#query(() => this.#ledger.release(identity, { idleSeconds }));
    if (!freed) {
      return;
    }
    const before = this.#reserved.get(keyOf(identity));
    this.#reserved.delete(keyOf(identity));
    this.#log.info({ organization: identity.organizationId, project: identity.projectId }, "freed a slot");
    if (before) {
      this.#wakeRefused(before);
    }
  }

  /** What the ledger has at the start; when it is away then, the reaper reads it later. */
  async #load(): Promise<void> {
    this.#loading ??= this.refresh().catch(() => undefined);
    await this.#loading;
  }

  /** Whoever may fit now: the organization's other projects, and everybody's on the same plan. */
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
        this.#log.info({}, "slots can be counted again");
      }
      this.#isUnavailable = false;
      return answer;
    } catch (error) {
      this.#unavailableUntil = this.#now() + BACKOFF_MS;
      if (!this.#isUnavailable) {
        this.#log.warn({ err: error }, "slots cannot be counted");
      }
      this.#isUnavailable = true;
      throw new LedgerUnavailableError("the ledger does not answer", { cause: error });
    }
  }
}

const keyOf = ({ organizationId, projectId }: ProjectIdentity): string => `${organizationId}/${projectId}`;

const reservedOf = (request: SlotRequest, version: string): Reserved => ({
  organizationId: request.organizationId,
  projectId: request.projectId,
  plan: request.plan,
  scope: request.limit?.scope ?? null,
  slots: request.slots,
  version,
});

const reservedOfRow = (row: HeldSlot): Reserved => ({
  organizationId: row.organization_id,
  projectId: row.project_id,
  plan: row.plan,
  scope: row.scope,
  slots: row.slots,
  version: row.version,
  ahead: row.idle_seconds < PENDING_SECONDS,
});

const isSame = (reserved: Reserved, request: SlotRequest): boolean =>
  isSameReserved(reserved, reservedOf(request, reserved.version));

const isSameReserved = (a: Reserved, b: Reserved): boolean =>
  a.plan === b.plan && a.scope === b.scope && a.slots === b.slots;
