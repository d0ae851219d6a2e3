import type { Logger } from "pino";
import type { ApiMetrics } from "../http/api-metrics.ts";
import { localWrites, type NewestWrites } from "../http/newest-writes.ts";
import { MemoryRateLimiter, type RateLimiter } from "./limiter.ts";
import { ValkeyRateLimiter } from "./valkey.ts";

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
