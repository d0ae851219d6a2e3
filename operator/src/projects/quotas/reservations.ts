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
export interface SlotLedger {
  take(request: SlotRequest): Promise<SlotAnswer>;
  /** Returns whether there was one that fits the condition. */
  release(identity: SlotIdentity, condition?: ReleaseCondition): Promise<boolean>;
  list(): Promise<HeldSlot[]>;
}

/** The real one. */
export const ledgerSlots = (ledger: Ledger): SlotLedger => ({
  take: (request) => takeSlot(ledger, request),
  release: ({ organizationId, projectId }, condition) =>
    releaseSlot(ledger, projectId, organizationId, condition),
  list: () => listSlots(ledger),
});

export interface SlotIdentity {
  organizationId: string;
  projectId: string;
}

/** The ledger does not answer. */
export class LedgerAway extends Error {
  override readonly name = "LedgerAway";
}

interface Held extends SlotIdentity {
  plan: string;
  scope: string | null;
  slots: number;
  version: string;
  /** Taken by others, so lately that what they took it for may not be written yet: no view of this process is about it. */
  ahead?: boolean;
}

/** A project that found no slot. */
interface Refused extends SlotIdentity {
  plan: string;
}

/** For so long after a failure the ledger is not asked again, lest every project waits for it in turn. */
const BACK_OFF_MS = 2_000;
/**
 * A slot that was asked for so lately may belong to a change that the API has not written yet: it is no difference to
 * act upon.
 */
const SETTLED_SECONDS = 60;
/**
 * How long the ledger may take for an answer; it is away then. Reconciles wait for it, and a network that drops
 * everything would hold up one after the other. What was asked may be done later: nothing relies on it.
 */
const ANSWER_MS = 5_000;

export class SlotKeeper {
  readonly #ledger: SlotLedger;
  readonly #log: Logger;
  readonly #now: () => number;
  readonly #answerMs: number;
  readonly #held = new Map<string, Held>();
  readonly #refused = new Map<string, Refused>();
  /** Projects that could not ask and went on by what they had. */
  readonly #unsure = new Map<string, SlotIdentity>();
  #wake: (identity: SlotIdentity) => void = () => {};
  #loading: Promise<unknown> | undefined;
  #awayUntil = Number.NEGATIVE_INFINITY;
  #away = false;

  /** @param now monotonic milliseconds */
  constructor(ledger: SlotLedger, log: Logger, now: () => number, answerMs = ANSWER_MS) {
    this.#ledger = ledger;
    this.#log = log;
    this.#now = now;
    this.#answerMs = answerMs;
  }

  /** Calls the listener with each project that should look again, since a slot was freed or its own has changed. */
  onWake(listener: (identity: SlotIdentity) => void): () => void {
    this.#wake = listener;
    return () => {
      this.#wake = () => {};
    };
  }

  /**
   * Holds what is asked for, in place of what the project held.
   * @throws LedgerAway
   */
  async hold(request: SlotRequest): Promise<SlotAnswer> {
    await this.#load();
    const key = keyOf(request);
    const before = this.#held.get(key);
    if (before && isSame(before, request)) {
      return { taken: true, version: before.version };
    }
    const answer = await this.#ask(() => {
      // Without an answer it may be done or not: then what the ledger has is not known.
      this.#held.delete(key);
      return this.#ledger.take(request);
    });
    if (!answer.taken) {
      if (before) {
        this.#held.set(key, before);
      }
      this.#refused.set(key, request);
      return answer;
    }
    this.#refused.delete(key);
    this.#held.set(key, heldOf(request, answer.version));
    if (before) {
      this.#wakeRefused(before);
    }
    return answer;
  }

  /** Has a project that went on without an answer look again once the ledger can be read. */
  lookAgain(identity: SlotIdentity): void {
    this.#unsure.set(keyOf(identity), identity);
  }

  /**
   * Gives back what a paused project is known to hold, but not what was taken since: by a resume that this process does
   * not see yet. What fails now is found by the reaper.
   */
  async release(identity: SlotIdentity): Promise<void> {
    await this.#load();
    const key = keyOf(identity);
    this.#refused.delete(key);
    const held = this.#held.get(key);
    if (held && !held.ahead) {
      await this.#giveBack(identity, { version: held.version });
    }
  }

  /** Gives back whatever a project that is going away may hold; what fails now is found by the reaper. */
  async forget(identity: SlotIdentity): Promise<void> {
    this.#refused.delete(keyOf(identity));
    await this.#giveBack(identity);
  }

  /** Whether there was one that fits or not: what is held is not known any more, so whoever needs it asks. */
  async #giveBack(identity: SlotIdentity, condition?: ReleaseCondition): Promise<void> {
    const key = keyOf(identity);
    const before = this.#held.get(key);
    try {
      await this.#ask(() => this.#ledger.release(identity, condition));
    } catch {
      return;
    }
    if (this.#held.get(key) === before) {
      this.#held.delete(key);
    }
    if (before) {
      this.#wakeRefused(before);
    }
  }

  /**
   * Reads all slots, and wakes every project whose slot is no longer what this process thought.
   * @throws LedgerAway
   */
  async refresh(): Promise<HeldSlot[]> {
    const known = new Map(this.#held);
    const rows = await this.#ask(() => this.#ledger.list());
    const seen = new Set<string>();
    for (const row of rows) {
      const held = heldOfRow(row);
      const key = keyOf(held);
      seen.add(key);
      const before = this.#held.get(key);
      // What is known is kept with its version: only that may be given back.
      if (before && held.ahead) {
        continue;
      }
      this.#held.set(key, held);
      if (before && !isSameHeld(before, held)) {
        this.#wake(held);
      }
    }
    for (const [key, held] of known) {
      // What was taken while the rows were read is in none of them.
      if (seen.has(key) || this.#held.get(key) !== held) {
        continue;
      }
      this.#held.delete(key);
      this.#wake(held);
      this.#wakeRefused(held);
    }
    for (const identity of this.#unsure.values()) {
      this.#wake(identity);
    }
    this.#unsure.clear();
    return rows;
  }

  /** Frees the slot of a project that is gone, unless it was asked for again lately. */
  async reap(identity: SlotIdentity, idleSeconds: number): Promise<void> {
    const freed = await this.#ask(() => this.#ledger.release(identity, { idleSeconds }));
    if (!freed) {
      return;
    }
    const before = this.#held.get(keyOf(identity));
    this.#held.delete(keyOf(identity));
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
  #wakeRefused({ organizationId, plan }: Held): void {
    for (const refused of this.#refused.values()) {
      if (refused.organizationId === organizationId || refused.plan === plan) {
        this.#wake(refused);
      }
    }
  }

  async #ask<T>(query: () => Promise<T>): Promise<T> {
    if (this.#now() < this.#awayUntil) {
      throw new LedgerAway("the ledger did not answer a moment ago");
    }
    try {
      const answer = await withTimeout(query(), this.#answerMs);
      if (this.#away) {
        this.#log.info({}, "slots can be counted again");
      }
      this.#away = false;
      return answer;
    } catch (error) {
      this.#awayUntil = this.#now() + BACK_OFF_MS;
      if (!this.#away) {
        this.#log.warn({ err: error }, "slots cannot be counted");
      }
      this.#away = true;
      throw new LedgerAway("the ledger does not answer", { cause: error });
    }
  }
}

const keyOf = ({ organizationId, projectId }: SlotIdentity): string => `${organizationId}/${projectId}`;

const heldOf = (request: SlotRequest, version: string): Held => ({
  organizationId: request.organizationId,
  projectId: request.projectId,
  plan: request.plan,
  scope: request.limit?.scope ?? null,
  slots: request.slots,
  version,
});

const heldOfRow = (row: HeldSlot): Held => ({
  organizationId: row.organization_id,
  projectId: row.project_id,
  plan: row.plan,
  scope: row.scope,
  slots: row.slots,
  version: row.version,
  ahead: row.idle_seconds < SETTLED_SECONDS,
});

const isSame = (held: Held, request: SlotRequest): boolean => isSameHeld(held, heldOf(request, held.version));

const isSameHeld = (a: Held, b: Held): boolean =>
  a.plan === b.plan && a.scope === b.scope && a.slots === b.slots;
