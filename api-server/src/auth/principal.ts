import type { Role } from "@slipway/ledger";
import type { GrantSet } from "../policy/permissions.ts";

/** Who a request comes from, and what it may do in its one organization. */
export interface Principal {
  /** Counts against rate limits; one per key, or per user and organization. */
  credentialId: string;
  /** How the audit log and the logs name it: `api-key:<id>` or `user:<id>`. */
  actor: string;
  organizationId: string;
  kind: "api-key" | "user";
  /** Only of users. */
  role?: Role;
  grants: GrantSet;
  /** When a user token ends, in milliseconds since 1970. */
  expiresAt?: number;
}

export interface PrincipalCacheOptions {
  /** How long an answer counts as fresh, and so how long a revocation takes at most. */
  freshMs: number;
  /** How long an answer may be used while the ledger is unavailable. */
  staleMs: number;
  /** After a failed lookup, how long the last answer is used before the next lookup. */
  retryMs: number;
  /** How long a call waits for a lookup while there is an answer that may still be used. */
  maxWaitMs: number;
  /** Maximum number of principals, and of refusals: invented credentials do not evict real ones. */
  capacity: number;
  /** Monotonic milliseconds. */
  now: () => number;
}

/** A refusal is cached, too: `undefined` means "not valid". */
interface Entry {
  principal: Principal | undefined;
  loadedAt: number;
  /** Until then there is no lookup. */
  freshUntil: number;
}

/**
 * Caches the owner of a credential for a few seconds, so that a read needs no query of the ledger. Concurrent calls
 * share one lookup. While the ledger is unavailable or slow, the last answer is used, up to `staleMs`: nothing can be
 * revoked in a ledger that is unavailable.
 */
export class PrincipalCache {
  readonly #entries = new Map<string, Entry>();
  readonly #refusals = new Map<string, Entry>();
  readonly #loading = new Map<string, Promise<Principal | undefined>>();
  readonly #options: PrincipalCacheOptions;

  constructor(options: Partial<PrincipalCacheOptions> = {}) {
    this.#options = {
      freshMs: 3_000,
      staleMs: 15 * 60_000,
      retryMs: 1_000,
      maxWaitMs: 500,
      capacity: 10_000,
      now: () => performance.now(),
      ...options,
    };
  }

  /** The answer when it is fresh: `{principal}`, which may be undefined. Never waits. */
  peek(credential: string): { readonly principal: Principal | undefined } | undefined {
    const entry = this.#entry(credential);
    return entry && this.#options.now() < entry.freshUntil ? entry : undefined;
  }

  /** Whether the credential was valid at its last lookup, and may be used while the ledger is unavailable. */
  knows(credential: string): boolean {
    return this.#servable(credential)?.principal !== undefined;
  }

  /**
   * The answer, queried when there is no fresh one.
   * @throws what `load` throws, when there is no answer that may still be used
   */
  async get(credential: string, load: () => Promise<Principal | undefined>): Promise<Principal | undefined> {
    const fresh = this.peek(credential);
    if (fresh) {
      return fresh.principal;
    }
    let loading = this.#loading.get(credential);
    if (!loading) {
      loading = this.#load(credential, load).finally(() => this.#loading.delete(credential));
      this.#loading.set(credential, loading);
    }
    const known = this.#servable(credential);
    return known ? orAfter(loading, this.#options.maxWaitMs, known.principal) : loading;
  }

  async #load(
    credential: string,
    load: () => Promise<Principal | undefined>,
  ): Promise<Principal | undefined> {
    const { now, freshMs, retryMs } = this.#options;
    const startedAt = now();
    try {
      const principal = await load();
      this.#store(credential, { principal, loadedAt: startedAt, freshUntil: startedAt + freshMs });
      return principal;
    } catch (error) {
      const known = this.#servable(credential);
      if (!known) {
        throw error;
      }
      known.freshUntil = now() + retryMs;
      return known.principal;
    }
  }

  /** The last answer, unless it is too old to be used. */
  #servable(credential: string): Entry | undefined {
    const entry = this.#entry(credential);
    return entry && this.#options.now() - entry.loadedAt < this.#options.staleMs ? entry : undefined;
  }

  #entry(credential: string): Entry | undefined {
    return this.#entries.get(credential) ?? this.#refusals.get(credential);
  }

  #store(credential: string, entry: Entry): void {
    // Deleted first: the map's order is the order of lookups, and the oldest is evicted first.
    this.#entries.delete(credential);
    this.#refusals.delete(credential);
    const entries = entry.principal === undefined ? this.#refusals : this.#entries;
    if (entries.size >= this.#options.capacity) {
      const [oldest] = entries.keys();
      if (oldest !== undefined) {
        entries.delete(oldest);
      }
    }
    entries.set(credential, entry);
  }
}

/** What the promise resolves to, or the other value when that takes too long. */
async function orAfter<T>(promise: Promise<T>, ms: number, other: T): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<T>((resolve) => {
    timer = setTimeout(() => resolve(other), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
