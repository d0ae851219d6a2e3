/** Looks up TXT records. */

import { Resolver } from "node:dns/promises";
import type { TxtAnswer } from "./ownership.ts";

/** Looks up the TXT records of a name; never throws, and always answers in bounded time. */
export type TxtLookup = (name: string) => Promise<TxtAnswer>;

export interface TxtLookupOptions {
  /** `ip` or `ip:port` of the name servers; the system's unless given. */
  servers?: readonly string[];
  /** Milliseconds for one try of one server. */
  timeoutMs?: number;
  tries?: number;
  /** Milliseconds after which a look-up is cancelled, whatever it waits for. */
  limitMs?: number;
}

/** Codes of an answer without such a record. */
const NO_RECORD = new Set(["ENODATA", "ENOTFOUND"]);

/** Creates a look-up at the given servers. The strings of a record are joined. */
export function createTxtLookup({
  servers = [],
  timeoutMs = 2_000,
  tries = 2,
  limitMs = 10_000,
}: TxtLookupOptions = {}): TxtLookup {
  return async (name) => {
    // One for each look-up: nothing of an earlier answer is kept, and cancelling one does not affect the others.
    const resolver = new Resolver({ timeout: timeoutMs, tries });
    if (servers.length > 0) {
      resolver.setServers([...servers]);
    }
    const limit = setTimeout(() => resolver.cancel(), limitMs);
    try {
      return { records: (await resolver.resolveTxt(name)).map((strings) => strings.join("")) };
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      return NO_RECORD.has(code ?? "") ? { records: [] } : { failed: true };
    } finally {
      clearTimeout(limit);
    }
  };
}
