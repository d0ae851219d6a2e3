import type { ApiMetrics } from "./api-metrics.ts";

/** Milliseconds that a read waits for the memory to catch up with a write; then it answers what it has. */
const LIMIT_MS = 2_000;

/** What is kept in memory by a watch. */
export interface Memory {
  /** Whether it is as new as a write that returned this resourceVersion. */
  hasSeen(resourceVersion: string): boolean;
  /** Resolves true once it is, false after `timeoutMs`. */
  waitUntilSeen(resourceVersion: string, timeoutMs: number): Promise<boolean>;
}

/**
 * Waits until a memory is as new as the newest write of the caller's organization, made through whichever
 * replica. Nearly always it is: then nothing is waited for, and there is no promise.
 */
export function seeNewestWrite(
  newestWrite: string | undefined,
  memory: Memory,
  { metrics }: { metrics: Pick<ApiMetrics, "waitedForWrite"> },
): void | Promise<void> {
  if (newestWrite === undefined || memory.hasSeen(newestWrite)) {
    return;
  }
  return memory.waitUntilSeen(newestWrite, LIMIT_MS).then((seen) => metrics.waitedForWrite(seen));
}
