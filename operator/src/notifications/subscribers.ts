/** Which organizations have webhooks: of all others nothing is observed. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "@slipway/process";

const PERIOD_MS = 5_000;

/** Organizations with a webhook that is not switched off, and when the newest of them was changed. */
export type ListSubscribers = () => Promise<readonly { organizationId: string; changedAt: Date }[]>;

export class Subscribers {
  readonly #list: ListSubscribers;
  readonly #log: Logger;
  readonly #listeners = new Set<(organizationIds: ReadonlySet<string>) => void>();
  #changedAt: ReadonlyMap<string, number> = new Map();

  constructor(list: ListSubscribers, log: Logger) {
    this.#list = list;
    this.#log = log;
  }

  has(organizationId: string): boolean {
    return this.#changedAt.has(organizationId);
  }

  /** Calls the listener with the organizations whose webhooks have changed, all of one read together. Returns how to stop it. */
  onChange(listener: (organizationIds: ReadonlySet<string>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Reads them once. @throws whatever the ledger throws */
  async refresh(): Promise<void> {
    const before = this.#changedAt;
    const rows = await this.#list();
    this.#changedAt = new Map(
      rows.map(({ organizationId, changedAt }) => [organizationId, changedAt.getTime()]),
    );
    const changed = [...this.#changedAt].filter(([id, changedAt]) => before.get(id) !== changedAt);
    if (changed.length === 0) {
      return;
    }
    const ids = new Set(changed.map(([id]) => id));
    for (const listener of this.#listeners) {
      listener(ids);
    }
  }

  /** Reads them every few seconds until the signal aborts. */
  async run(signal: AbortSignal, periodMs = PERIOD_MS): Promise<void> {
    while (!signal.aborted) {
      await this.refresh().catch((error: unknown) => {
        this.#log.warn({ err: error }, "the organizations with webhooks cannot be read");
      });
      await sleep(periodMs, undefined, { signal }).catch(() => undefined);
    }
  }
}
