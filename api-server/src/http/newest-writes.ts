import type { ApiMetrics } from "./api-metrics.ts";

/** What this process keeps in memory, each by a watch of its own: resourceVersions of one say nothing about the other. */
export type WriteKind = "projects" | "jobRuns";

/**
 * Publishes the resourceVersion of each write to all replicas, so that a read of the organization waits until the replica that
 * serves it has seen the write.
 *
 * Only `ProjectStore` publishes, and `JobRunStore` for runs: a route that writes a Project awaits `projects.observe(written)`,
 * one that deletes a Project awaits `projects.waitForDeletion(project, …)`. Every request of the organization reads the newest
 * version together with its rate limit.
 */
export interface NewestWrites {
  /**
   * Keeps the resourceVersion of a write (of a Project by default), unless a newer one is known. Never rejects: losing one
   * only causes a read of another replica to be some milliseconds stale.
   */
  publish(organizationId: string, resourceVersion: string, of?: WriteKind): Promise<void>;
}

/** For a single replica: its own store has its writes already. */
export const localWrites: NewestWrites = { publish: () => Promise.resolve() };

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
 * Waits until a memory is as new as the newest write of the caller's organization, written through any
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
