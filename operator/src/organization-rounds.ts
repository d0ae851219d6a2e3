/** How a round gets through all organizations that have something, such as a budget or invoices. */

import { type Clock, sleep } from "@slipway/process";

/** One page of organizations, in the order of their ids. */
export interface OrganizationPage {
  /** The last one of the page before; empty for the first. */
  after: string;
  limit: number;
}

/** Organizations of one query. Of each budget it reads a row for each day and kind of charge of the cycle. */
export const PAGE_SIZE = 500;
/** Between two queries, in milliseconds: 25,000 organizations are read within a minute. */
const PACE_MS = 1_000;

/**
 * Works on one page of organizations after the other until there is none, or the signal aborts.
 * @throws what either function throws
 */
export async function eachPage(
  list: (page: OrganizationPage) => Promise<string[]>,
  work: (organizationIds: readonly string[]) => Promise<void>,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<void> {
  let after: string | undefined = "";
  while (after !== undefined && !signal.aborted) {
    const organizationIds = await list({ after, limit: PAGE_SIZE });
    if (organizationIds.length > 0) {
      await work(organizationIds);
    }
    after = organizationIds.length < PAGE_SIZE ? undefined : organizationIds.at(-1);
    if (after !== undefined) {
      await sleep(clock, PACE_MS, signal);
    }
  }
}

/** So many failures in a row are of what all parts depend on. */
const MAX_IN_A_ROW = 5;

/** Parts of a round, of which one that fails keeps no other back. */
export class Attempts {
  readonly #onFailure: (error: unknown, of: object) => void;
  #failed = 0;
  #inARow = 0;

  constructor(onFailure: (error: unknown, of: object) => void) {
    this.#onFailure = onFailure;
  }

  /** Whether none has failed. */
  get areComplete(): boolean {
    return this.#failed === 0;
  }

  /**
   * @param of what it is about, for the log
   * @returns undefined where it has failed
   * @throws what it throws, after several in a row have failed
   */
  async run<T>(work: () => Promise<T>, of: object): Promise<T | undefined> {
    try {
      const result = await work();
      this.#inARow = 0;
      return result;
    } catch (error) {
      this.#failed += 1;
      this.#inARow += 1;
      if (this.#inARow >= MAX_IN_A_ROW) {
        throw error;
      }
      this.#onFailure(error, of);
      return undefined;
    }
  }
}
