import {
  type AuditEntry,
  type AuditFinish,
  type AuditIntent,
  type AuditKey,
  type AuditOutcome,
  beginAudits,
  finishAudits,
  insertAuditEntries,
  isRefusedRow,
  type Ledger,
} from "@slipway/ledger";
import type { Logger } from "pino";
import { BatchWriter } from "./batches.ts";

/** The audit log: writes a row before a call changes anything, and its outcome in batches afterwards. */

/** Rows of refusals that one organization gets: a burst, and a rate per minute. */
const BURST = 60;
const PER_MINUTE = 30;
/** Organizations whose budget is kept; a full one need not be. */
const MAX_COUNTED = 10_000;

/** A budget of rows for refusals by organization: each has its own, and none uses another's. */
export class RefusalBudget {
  readonly #left = new Map<string, { rows: number; at: number }>();

  /**
   * Counts one row against an organization's budget.
   * @param now milliseconds
   * @returns whether there was one
   */
  take(organizationId: string, now: number): boolean {
    const known = this.#left.get(organizationId);
    const since = known ? Math.max(0, now - known.at) : 0;
    const rows = known ? Math.min(BURST, known.rows + (since * PER_MINUTE) / 60_000) : BURST;
    if (!known && this.#left.size >= MAX_COUNTED) {
      this.#forgetFull(now);
    }
    const isAdmitted = rows >= 1;
    this.#left.set(organizationId, { rows: isAdmitted ? rows - 1 : rows, at: now });
    return isAdmitted;
  }

  #forgetFull(now: number): void {
    for (const [organizationId, { rows, at }] of this.#left) {
      if (rows + ((now - at) * PER_MINUTE) / 60_000 >= BURST) {
        this.#left.delete(organizationId);
      }
    }
  }
}

/** The outcome of an audited call. */
export interface CallOutcome extends AuditOutcome {
  /** Set when the call resolved, or created, its project only after it had begun. */
  projectId: string | null;
}

/**
 * Every write, as the ledger keeps it. What may change something has a row before it does; a refusal that came before
 * that has one afterwards, within its organization's budget.
 */
export interface AuditLog {
  /**
   * Writes the row of a call that is about to change something.
   * @returns its key, for `finish`
   * @throws when the ledger does not store it: then nothing may be changed
   */
  begin(intent: AuditIntent): Promise<AuditKey>;
  /** Adds the outcome to a begun row. Never throws and never delays the client. */
  finish(key: AuditKey, outcome: CallOutcome): void;
  /** Queues the row of a refusal. Never throws and never delays the client. */
  record(entry: AuditEntry): void;
}

/** What is not in the audit log, by why. */
export interface AuditObserver {
  /** An outcome or a line could not be written. */
  lost(): void;
  /** A refusal got no line: of the rate limit, or beyond the organization's budget. */
  unrecorded(reason: "rate_limit" | "budget"): void;
}

/** A call that waits for its row. */
interface Begin {
  intent: AuditIntent;
  done: (key: AuditKey) => void;
  fail: (error: unknown) => void;
}

/** Pending outcomes: one for each audited call, so that the ledger itself bounds them. */
const MAX_OUTCOMES = 10_000;
/** Refusals that wait, in all and of one organization. */
const MAX_REFUSALS = 10_000;
const MAX_REFUSALS_PER_KEY = 500;
const RETRY_MS = 1_000;

/**
 * Writes in batches: intents, outcomes and refusals each in a queue of its own, so that refusals never keep an outcome from
 * being written. Outcomes and refusals wait in this process while the ledger is unavailable. A row whose outcome is lost stays
 * without one, which reads as unknown.
 */
export class LedgerAuditLog implements AuditLog {
  readonly #ledger: Ledger;
  readonly #observer: AuditObserver;
  readonly #logger: Logger;
  readonly #budget = new RefusalBudget();
  readonly #outcomes: BatchWriter<AuditFinish>;
  readonly #refusals: BatchWriter<{ entry: AuditEntry; at: Date }>;
  #begins: Begin[] = [];
  #beginning = false;

  constructor(ledger: Ledger, logger: Logger, observer: AuditObserver) {
    this.#ledger = ledger;
    this.#logger = logger;
    this.#observer = observer;
    const common = {
      retryMs: RETRY_MS,
      onRetry: (error: unknown, waiting: number) =>
        logger.warn({ err: error, waiting }, "audit lines not yet written"),
      onLost: (line: object) => this.#lose(line),
    };
    this.#outcomes = new BatchWriter<AuditFinish>({
      ...common,
      write: (batch) => finishAudits(ledger, batch),
      keyOf: () => "",
      maxItems: MAX_OUTCOMES,
      maxItemsPerKey: MAX_OUTCOMES,
    });
    this.#refusals = new BatchWriter<{ entry: AuditEntry; at: Date }>({
      ...common,
      write: (batch) => insertAuditEntries(ledger, batch),
      keyOf: ({ entry }) => entry.organizationId ?? "",
      maxItems: MAX_REFUSALS,
      maxItemsPerKey: MAX_REFUSALS_PER_KEY,
    });
  }

  begin(intent: AuditIntent): Promise<AuditKey> {
    return new Promise((done, fail) => {
      this.#begins.push({ intent, done, fail });
      if (!this.#beginning) {
        void this.#writeBegins();
      }
    });
  }

  finish(key: AuditKey, { status, code, projectId }: CallOutcome): void {
    this.#outcomes.add({ key, status, code, projectId, finishedAt: new Date() });
  }

  record(entry: AuditEntry): void {
    const at = new Date();
    // A caller over its limit would have the ledger write for every call that it is refused.
    if (entry.status === 429) {
      this.#observer.unrecorded("rate_limit");
    } else if (!this.#budget.take(entry.organizationId ?? "", at.getTime())) {
      this.#observer.unrecorded("budget");
    } else {
      this.#refusals.add({ entry, at });
    }
  }

  /** Writes what waits, trying each once more at most. */
  async close(): Promise<void> {
    await Promise.all([this.#outcomes.close(), this.#refusals.close()]);
  }

  /** Rows that arrive while a batch is written are the next batch. */
  async #writeBegins(): Promise<void> {
    this.#beginning = true;
    while (this.#begins.length > 0) {
      const batch = this.#begins;
      this.#begins = [];
      await this.#writeBatch(batch);
    }
    this.#beginning = false;
  }

  async #writeBatch(batch: readonly Begin[]): Promise<void> {
    try {
      const keys = await beginAudits(
        this.#ledger,
        batch.map(({ intent }) => intent),
      );
      for (const [index, { done }] of batch.entries()) {
        done(keys[index] as AuditKey);
      }
    } catch (error) {
      // One that the ledger refuses for what is in it must not refuse the others.
      if (batch.length > 1 && isRefusedRow(error)) {
        for (const one of batch) {
          await this.#writeBatch([one]);
        }
      } else {
        for (const { fail } of batch) {
          fail(error);
        }
      }
    }
  }

  /** The line itself is in the process's log then. */
  #lose(line: object): void {
    this.#observer.lost();
    this.#logger.error({ audit: line }, "audit line lost");
  }
}
