import { setTimeout as sleep } from "node:timers/promises";
import { type AuditEntry, insertAuditEntry, type Ledger } from "@slipway/ledger";
import type { Logger } from "pino";

/** Takes the line of one write. Never throws and never makes the client wait. */
export interface AuditLog {
  record(entry: AuditEntry): void;
}

const MOST_WAITING = 10_000;
const RETRY_MS = 1_000;

/** Writes audit lines to the ledger in order, and keeps them while it is away: in this process, up to 10,000. */
export class LedgerAuditLog implements AuditLog {
  readonly #ledger: Ledger;
  readonly #logger: Logger;
  readonly #onLost: () => void;
  readonly #waiting: AuditEntry[] = [];
  #writing: Promise<void> | undefined;
  #closing = false;

  constructor(ledger: Ledger, logger: Logger, onLost: () => void) {
    this.#ledger = ledger;
    this.#logger = logger;
    this.#onLost = onLost;
  }

  record(entry: AuditEntry): void {
    if (this.#waiting.length >= MOST_WAITING) {
      this.#lose(entry);
      return;
    }
    this.#waiting.push(entry);
    this.#writing ??= this.#drain().finally(() => {
      this.#writing = undefined;
    });
  }

  /** Writes what waits, trying each line once more at most. */
  async close(): Promise<void> {
    this.#closing = true;
    await this.#writing;
  }

  async #drain(): Promise<void> {
    for (let entry = this.#waiting[0]; entry !== undefined; entry = this.#waiting[0]) {
      try {
        await insertAuditEntry(this.#ledger, entry);
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

  /** The line itself is in the process's log then. */
  #lose(entry: AuditEntry): void {
    this.#onLost();
    this.#logger.error({ audit: entry }, "audit line lost");
  }
}
