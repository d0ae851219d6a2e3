import type { RateLimit } from "../policy/table.ts";

export interface Decision {
  allowed: boolean;
  limit: number;
  /** Calls left in the window. */
  remaining: number;
  /** Seconds until the window ends, rounded up. */
  resetSeconds: number;
  /**
   * The resourceVersion of the newest write of the organization that was asked about, when one was published in the last
   * minute: see `projects/newest-writes.ts`.
   */
  newestWrite?: string;
  /** The same of the runs of its jobs. */
  newestRun?: string;
}

/**
 * Counts calls. The memory limiter answers immediately; one that is shared by replicas answers with a promise.
 * `bucket` names who and what is counted; `organizationId` asks for that organization's newest write as well.
 */
export interface RateLimiter {
  take(
    bucket: string,
    limit: number,
    windowSeconds: number,
    organizationId?: string,
  ): Decision | Promise<Decision>;
}

/** The limit after `SLIPWAY_RATE_LIMIT_SCALE`: rounded up, at least 1. */
export function scaledLimit(rateLimit: RateLimit, scale: number): number {
  return Math.max(1, Math.ceil(rateLimit.limit * scale));
}

/** `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers: what is allowed. */
export function rateLimitPolicyHeader(limit: number, windowSeconds: number): string {
  return `"default";q=${limit};w=${windowSeconds}`;
}

/** `RateLimit` of the same draft: what is left of it. */
export function rateLimitHeader({ remaining, resetSeconds }: Decision): string {
  return `"default";r=${remaining};t=${resetSeconds}`;
}
