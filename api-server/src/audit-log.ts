import { setTimeout as sleep } from "node:timers/promises";
import {
  type AuditEntry,
  type AuditIntent,
  type AuditOutcome,
  beginAudit,
  finishAudit,
  insertAuditEntry,
  type Ledger,
} from "@slipway/ledger";
import type { Logger } from "pino";

/** What became of a call that was begun. */
export interface CallOutcome extends AuditOutcome {
  /** Set when the call found out, or made, what it is about only after it was begun. */
  projectId: string | null;
}

/**
 * Every write, as the ledger keeps it. What may change something has a row before it does; a refusal that came before
 * that has one afterwards.
 */
export interface AuditLog {
  /**
   * Writes the row of a call that is about to change something.
   * @returns its id, for `finish`
   * @throws when the ledger does not take it: then nothing may be changed
   */
  begin(intent: AuditIntent): Promise<string>;
  /** Adds the outcome to a begun row. Never throws and never makes the client wait. */
  finish(id: string, outcome: CallOutcome): void;
  /** Takes the line of a refusal. Never throws and never makes the client wait. */
  record(entry: AuditEntry): void;
}

const MOST_WAITING = 10_000;
const RETRY_MS = 1_000;

/** A line or an outcome that is not yet in the ledger. */
type Waiting = { at: Date } & ({ line: AuditEntry } | { id: string; outcome: CallOutcome });

/**
 * Writes outcomes and refusals in order, and keeps them while the ledger is away: in this process, up to 10,000. A row
 * whose outcome is lost stays without one, which reads as unknown.
 */
export class LedgerAuditLog implements AuditLog {
  readonly #ledger: Ledger;
  readonly #logger: Logger;
  readonly #onLost: () => void;
  readonly #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;
  #closing = false;

  constructor(ledger: Ledger, logger: Logger, onLost: () => void) {
    this.#ledger = ledger;
    this.#logger = logger;
    this.#onLost = onLost;
  }

  begin(intent: AuditIntent): Promise<string> {
    return beginAudit(this.#ledger, intent);
  }

  finish(id: string, outcome: CallOutcome): void {
    this.#add({ at: new Date(), id, outcome });
  }

  record(entry: AuditEntry): void {
    this.#add({ at: new Date(), line: entry });
  }

  /** Writes what waits, trying each once more at most. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.#writing;
  }

  #add(waiting: Waiting): void {
    if (this.#waiting.length >= MOST_WAITING) {
      this.#lose(waiting);
      return;
    }
    this.#waiting.push(waiting);
    this.#writing ??= this.#drain().finally(() => {
      this.#writing = undefined;
    });
  }

  async #drain(): Promise<void> {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      try {
        await this.#write(next);
        this.#waiting.shift();
      } catch (error) {
        if (this.#closing) {
          for (const lost of this.#waiting.splice(0)) this.#lose(lost);
          return;
        }
        this.#logger.warn({ err: error, waiting: this.#waiting.length }, "audit line not yet written");
        await sleep(RETRY_MS);
      }
    }
  }

  #write(waiting: Waiting): Promise<void> {
    if ("line" in waiting) return insertAuditEntry(this.#ledger, waiting.line, waiting.at);
    return finishAudit(this.#ledger, waiting.id, waiting.outcome, waiting.at);
  }

  /** The line itself is in the process's log then. */
  #lose(waiting: Waiting): void {
    this.#onLost();
    this.#logger.error({ audit: waiting }, "audit line lost");
  }
}
