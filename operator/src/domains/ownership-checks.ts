/** Schedules the look-ups of each claim's ownership, apart from the controller's workers, which never wait for a name server. */

import { type BackoffOptions, backoffDelay } from "@slipway/controller-runtime";
import { type Clock, ConcurrencyLimiter, type ConcurrencyLimits, type Random } from "@slipway/process";
import { type Challenge, evaluateAnswer, type Proof } from "./ownership.ts";
import type { TxtLookup } from "./txt-lookup.ts";

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
