import type { Principal } from "./principal.ts";

export interface PrincipalCacheOptions {
  /** How long an answer counts as fresh, and so how long a revocation takes at most. */
  freshMs: number;
  /** How long an answer may serve while the ledger cannot be asked. */
  staleMs: number;
  /** Answers kept at most. */
  capacity: number;
  /** Monotonic milliseconds. */
  now: () => number;
}

/** A refusal is kept too: `undefined` is "not valid". */
interface Entry {
  principal: Principal | undefined;
  loadedAt: number;
}

/**
 * Remembers for a few seconds who a credential is, so that a read asks the ledger nothing. Calls at the same time
 * share one look-up. While the ledger is away the last answer serves on, up to `staleMs`.
 */
export class PrincipalCache {
  readonly #entries = new Map<string, Entry>();
  readonly #loading = new Map<string, Promise<Principal | undefined>>();
  readonly #options: PrincipalCacheOptions;

  constructor(options: Partial<PrincipalCacheOptions> = {}) {
    this.#options = {
      freshMs: 3_000,
      staleMs: 15 * 60_000,
      capacity: 10_000,
      now: () => performance.now(),
      ...options,
    };
  }

  /** The answer when it is fresh: `{principal}`, which may be undefined. Never waits. */
  peek(credential: string): { readonly principal: Principal | undefined } | undefined {
    const entry = this.#entries.get(credential);
    if (!entry || this.#options.now() - entry.loadedAt >= this.#options.freshMs) return undefined;
    return entry;
  }

  /**
   * The answer, looked up when there is no fresh one.
   * @throws what `load` throws, when there is no answer that may serve on
   */
  async get(credential: string, load: () => Promise<Principal | undefined>): Promise<Principal | undefined> {
    const fresh = this.peek(credential);
    if (fresh) return fresh.principal;
    let loading = this.#loading.get(credential);
    if (!loading) {
      loading = this.#load(credential, load).finally(() => this.#loading.delete(credential));
      this.#loading.set(credential, loading);
    }
    return loading;
  }

  async #load(
    credential: string,
    load: () => Promise<Principal | undefined>,
  ): Promise<Principal | undefined> {
    const { now, staleMs } = this.#options;
    const startedAt = now();
    try {
      const principal = await load();
      this.#store(credential, { principal, loadedAt: startedAt });
      return principal;
    } catch (error) {
      const known = this.#entries.get(credential);
      if (known && now() - known.loadedAt < staleMs) return known.principal;
      throw error;
    }
  }

  #store(credential: string, entry: Entry): void {
    // Taken out first: the map's order is the order of look-ups, and the oldest goes first.
    this.#entries.delete(credential);
    if (this.#entries.size >= this.#options.capacity) {
      const [oldest] = this.#entries.keys();
      if (oldest !== undefined) this.#entries.delete(oldest);
    }
    this.#entries.set(credential, entry);
  }
}
