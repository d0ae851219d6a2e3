/** Polls the ledger for organizations every few seconds. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "@slipway/process";

/** How often the ledger is read, in milliseconds. */
const POLL_MS = 5_000;

export interface OrganizationSourceOptions {
  /** Reads every organization's id from the ledger. */
  list: () => Promise<string[]>;
  /** Called for each id that was not known before. */
  onAdded: (id: string) => void;
  logger: Logger;
  pollMs?: number;
}

/**
 * The organizations that the ledger has named so far. While the ledger cannot be read the last answer stays, and an id
 * that is no longer in the ledger is forgotten here but its namespace is never deleted for it.
 */
export class OrganizationSource {
  #options: OrganizationSourceOptions;
  #ids: ReadonlySet<string> = new Set();
  #failing = false;

  constructor(options: OrganizationSourceOptions) {
    this.#options = options;
  }

  /** Whether the ledger has this organization, by its last answer. */
  has(id: string): boolean {
    return this.#ids.has(id);
  }

  /** Polls until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.poll();
      await sleep(this.#options.pollMs ?? POLL_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Reads the ledger once; a failure is logged when it begins and when it ends. */
  async poll(): Promise<void> {
    const { list, onAdded, logger } = this.#options;
    try {
      const ids = new Set(await list());
      const added = [...ids].filter((id) => !this.#ids.has(id));
      this.#ids = ids;
      if (this.#failing) {
        this.#failing = false;
        logger.info({}, "ledger can be read again");
      }
      for (const id of added) {
        onAdded(id);
      }
    } catch (error) {
      if (!this.#failing) {
        this.#failing = true;
        logger.error({ err: error }, "ledger cannot be read, keeping the organizations known so far");
      }
    }
  }
}
