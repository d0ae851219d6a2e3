/** Whether TXT records prove the ownership of a hostname: what they have to hold, how and when they are looked up. */

import { Resolver } from "node:dns/promises";
import { type BackoffOptions, backoffDelay } from "@slipway/controller-runtime";
import { challengeName, challengeValue, type DomainClaim, organizationOfNamespace } from "@slipway/crds";
import { type Clock, ConcurrencyLimiter, type ConcurrencyLimits, type Random } from "@slipway/process";

/** The result of a TXT look-up; a failed one proves nothing about the records. */
export type TxtAnswer = { records: readonly string[] } | { failed: true };

/** What an answer proves; `another`: that another organization of the platform owns the hostname. */
export type Proof = "proved" | "missing" | "wrong" | "another" | "failed";

/** The name of the TXT record, and the value that it must have. */
export interface Challenge {
  /** Whose it is. */
  organizationId: string;
  name: string;
  value: string;
}

/**
 * The challenge of a claim. The organization is that of the project's namespace: the one that the claim names could be
 * somebody else's, whose record is public.
 */
export function challengeOf({ spec: { hostname, projectRef } }: DomainClaim): Challenge {
  const organizationId = organizationOfNamespace(projectRef.namespace) ?? "";
  return {
    organizationId,
    name: challengeName(hostname),
    value: challengeValue(organizationId, hostname),
  };
}

/** A challenge's value, whosever it is. */
const ANY_VALUE = /^slipway-verification=[0-9a-f]{32}$/;

/**
 * What an answer proves about a challenge; other records do no harm.
 * @param others the organizations that may prove it in the claim's place; called only where the answer contains another value
 */
export function evaluateAnswer(
  answer: TxtAnswer,
  { value }: Pick<Challenge, "value">,
  { hostname, others }: { hostname: string; others: () => readonly string[] },
): Proof {
  if ("failed" in answer) {
    return "failed";
  }
  const records = answer.records.map((record) => record.trim());
  if (records.includes(value)) {
    return "proved";
  }
  const values = new Set(records.filter((record) => ANY_VALUE.test(record)));
  if (
    values.size > 0 &&
    others().some((organization) => values.has(challengeValue(organization, hostname)))
  ) {
    return "another";
  }
  return records.length > 0 ? "wrong" : "missing";
}

// Looks up TXT records.

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

// Schedules the look-ups of each claim's ownership, apart from the controller's workers, which never wait for a name server.

export interface OwnershipChecksOptions {
  lookup: TxtLookup;
  clock: Clock;
  random: Random;
  /** Pauses between two look-ups of a hostname: 15 s growing to 5 min, unless given; up to a quarter is added by chance. */
  retry?: BackoffOptions;
  /** Concurrent look-ups, and those of one organization, which chooses its name servers: 16 and 4 unless given. */
  limits?: Pick<ConcurrencyLimits, "total" | "perKey">;
  /** Ids of the organizations that want a hostname, and may prove it in the claim's place; none unless given. */
  contenders?: (hostname: string) => readonly string[];
  /** Whether a proof is looked up again; not unless given. */
  repeats?: boolean;
}

/** The state of one claim's ownership. */
export interface OwnershipCheck {
  /** What the last look-up proved; absent before the first answer. */
  proof?: Proof;
  /** Milliseconds until the next look-up; absent while one is running, whose end calls the listener. */
  againInMs?: number;
}

interface Entry {
  /** Of the claim: a later one of the same hostname starts over. */
  uid: string;
  challenge: Challenge;
  proof?: Proof;
  /** Look-ups that have ended. */
  ended: number;
  /** Monotonic time of the next look-up; undefined while one waits or runs. */
  dueAt?: number;
}

/** Runs the look-ups of many claims, a bounded number concurrently that organizations share, each on its own schedule. */
export class OwnershipChecks {
  readonly #options: OwnershipChecksOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #limiter: ConcurrencyLimiter;
  #onEnd: (hostname: string) => void = () => {};

  constructor(options: OwnershipChecksOptions) {
    this.#options = options;
    this.#limiter = new ConcurrencyLimiter(options.limits ?? { total: 16, perKey: 4 });
  }

  /** Calls the listener with the hostname of every look-up that has ended. Returns how to unsubscribe. */
  onEnd(listener: (hostname: string) => void): () => void {
    this.#onEnd = listener;
    return () => {
      this.#onEnd = () => {};
    };
  }

  /** The state of a claim's ownership; starts a look-up when one is due, and never waits for it. */
  check(hostname: string, uid: string, challenge: Challenge): OwnershipCheck {
    const now = this.#options.clock.monotonic();
    let entry = this.#entries.get(hostname);
    if (entry?.uid !== uid) {
      entry = { uid, challenge, ended: 0, dueAt: now + this.#firstPause() };
      this.#entries.set(hostname, entry);
    }
    const { proof, dueAt } = entry;
    if ((proof === "proved" && !this.#options.repeats) || dueAt === undefined) {
      return { proof };
    }
    if (dueAt > now) {
      return { proof, againInMs: dueAt - now };
    }
    entry.dueAt = undefined;
    void this.#run(hostname, entry);
    return { proof };
  }

  /** Forgets a hostname that is proved, expired or released. */
  forget(hostname: string): void {
    this.#entries.delete(hostname);
  }

  /** Claims that are proved are spread over the period, or a new leader would look up all of them at the same time. */
  #firstPause(): number {
    const { repeats, retry, random } = this.#options;
    return repeats ? random() * (retry?.baseMs ?? 0) : 0;
  }

  /** Never rejects. One that is forgotten while it waits is not looked up. */
  async #run(hostname: string, entry: Entry): Promise<void> {
    const isLookedUp = await this.#limiter.run(entry.challenge.organizationId, async () => {
      if (this.#entries.get(hostname) !== entry) {
        return false;
      }
      await this.#lookUp(hostname, entry);
      return true;
    });
    if (isLookedUp) {
      this.#onEnd(hostname);
    }
  }

  async #lookUp(hostname: string, entry: Entry): Promise<void> {
    const { lookup, clock, random, retry = { baseMs: 15_000, maxMs: 300_000 } } = this.#options;
    const others = () => this.#options.contenders?.(hostname) ?? [];
    try {
      entry.proof = evaluateAnswer(await lookup(entry.challenge.name), entry.challenge, { hostname, others });
    } catch {
      entry.proof = "failed";
    }
    entry.dueAt = clock.monotonic() + backoffDelay(entry.ended, retry) * (1 + random() / 4);
    entry.ended += 1;
  }
}
