import { createHash } from "node:crypto";
import type { Logger } from "pino";
import type { ApiMetrics } from "../http/api-metrics.ts";
import { localWrites, type NewestWrites, type WriteKind } from "../http/newest-writes.ts";
import { type Decision, MemoryRateLimiter, type RateLimiter } from "./limiter.ts";
import { countCallScript, giveBackScript, publishScript, ValkeyConnection } from "./valkey-connection.ts";

/** Limits the rate of calls over all replicas, with counters in Valkey. */

export interface ValkeyRateLimiterOptions {
  /** `redis://`, `rediss://`, `valkey://` or `valkeys://` of one endpoint; no cluster. */
  url: string;
  logger: Logger;
  /** Called for each call that was counted in memory because Valkey was unavailable. */
  onMemory?: () => void;
  /** Milliseconds after which Valkey counts as unavailable. */
  timeoutMs?: number;
}

const PREFIX = "slipway:";
/** Bytes of a bucket's name from which on its hash is its key: names contain ids from outside. */
const LONGEST_NAME = 100;
/** How long a published version is kept: no replica that works is further behind. */
const NOTE_MS = 60_000;

/**
 * Counts in a Valkey that all replicas share, so that a limit is exact over all of them, and reads the newest write
 * of the organization in the same round trip. While Valkey is unavailable each replica counts in its own memory.
 */
export class ValkeyRateLimiter implements RateLimiter, NewestWrites {
  readonly #connection: ValkeyConnection;
  readonly #onMemory: () => void;
  readonly #memory = new MemoryRateLimiter();

  constructor({ url, logger, timeoutMs, onMemory = () => {} }: ValkeyRateLimiterOptions) {
    this.#onMemory = onMemory;
    this.#connection = new ValkeyConnection({
      url,
      logger,
      timeoutMs,
      scripts: [countCallScript, giveBackScript, publishScript],
      // A server that is full, or a replica that only reads, answers a ping.
      probe: (run) => run(countCallScript, [`${PREFIX}probe`], ["1000000000", "1000"]),
    });
  }

  /** Resolves when the first try to connect has succeeded or failed; further ones follow by themselves. */
  start(): Promise<void> {
    return this.#connection.start();
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  /** Whether limits are counted over all replicas at present. */
  get isShared(): boolean {
    return this.#connection.isUp;
  }

  take(
    bucket: string,
    limit: number,
    windowSeconds: number,
    organizationId?: string,
  ): Decision | Promise<Decision> {
    const inMemory = (): Decision => {
      this.#onMemory();
      return this.#memory.take(bucket, limit, windowSeconds);
    };
    if (!this.#connection.isUp) {
      return inMemory();
    }
    const keys = [bucketKey(bucket)];
    if (organizationId !== undefined) {
      keys.push(writeKey(organizationId), writeKey(organizationId, "jobRuns"));
    }
    return this.#connection
      .run(countCallScript, keys, [String(limit), String(windowSeconds * 1000)])
      .then((reply) => toDecision(reply, limit), inMemory);
  }

  async giveBack(bucket: string): Promise<void> {
    if (!this.#connection.isUp) {
      this.#memory.giveBack(bucket);
      return;
    }
    // What went wrong was logged once, by the connection.
    await this.#connection.run(giveBackScript, [bucketKey(bucket)], []).catch(() => undefined);
  }

  async publish(organizationId: string, resourceVersion: string, of?: WriteKind): Promise<void> {
    if (!this.#connection.isUp) {
      return;
    }
    const args = [resourceVersion, String(NOTE_MS)];
    // What went wrong was logged once, by the connection.
    await this.#connection.run(publishScript, [writeKey(organizationId, of)], args).catch(() => undefined);
  }
}

function bucketKey(bucket: string): string {
  const name =
    bucket.length <= LONGEST_NAME ? bucket : createHash("sha256").update(bucket).digest("base64url");
  return `${PREFIX}limit:${name}`;
}

const writeKey = (organizationId: string, of: WriteKind = "projects"): string =>
  `${PREFIX}${of === "projects" ? "write" : "run"}:${organizationId}`;

function toDecision(reply: unknown, limit: number): Decision {
  const [allowed, used, endsInMs, newestWrite, newestRun] = reply as [
    number,
    number,
    number,
    string | null,
    string | null,
  ];
  return {
    allowed: allowed === 1,
    limit,
    // The limit may have been lowered since they were counted.
    remaining: Math.max(0, limit - used),
    resetSeconds: Math.max(1, Math.ceil(endsInMs / 1000)),
    ...(newestWrite === null ? {} : { newestWrite }),
    ...(newestRun === null ? {} : { newestRun }),
  };
}

/** What the replicas of the API share of each other's work. */
export interface Shared {
  rateLimiter: RateLimiter;
  writes: NewestWrites;
  close: () => Promise<void>;
}

/**
 * Opens the Valkey of this URL, or counts in memory without one, which is right for a single replica alone. A Valkey that
 * does not answer delays the start by no more than a second or two: it is tried again in the background.
 */
export async function openShared(
  valkeyUrl: string | undefined,
  logger: Logger,
  metrics: ApiMetrics,
): Promise<Shared> {
  if (valkeyUrl === undefined) {
    return { rateLimiter: new MemoryRateLimiter(), writes: localWrites, close: () => Promise.resolve() };
  }
  const onMemory = metrics.watchValkey(() => valkey.isShared);
  const valkey = new ValkeyRateLimiter({ url: valkeyUrl, logger, onMemory });
  await valkey.start();
  return { rateLimiter: valkey, writes: valkey, close: () => valkey.close() };
}
