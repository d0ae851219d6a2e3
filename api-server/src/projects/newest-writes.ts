/** What this process keeps in memory, each by a watch of its own: resourceVersions of one say nothing about the other. */
export type WriteKind = "projects" | "jobRuns";

/**
 * Publishes the resourceVersion of each write to all replicas, so that a read of the organization waits until the replica that
 * serves it has seen the write.
 *
 * Only `ProjectStore` publishes, and `JobRunStore` for runs: a route that writes a Project awaits `projects.observe(written)`,
 * one that deletes a Project awaits `projects.waitUntilGone(project, …)`. Every request of the organization reads the newest
 * version together with its rate limit.
 */
export interface NewestWrites {
  /**
   * Keeps the resourceVersion of a write (of a Project by default), unless a newer one is known. Never rejects: losing one
   * only makes a read of another replica some milliseconds old.
   */
  publish(organizationId: string, resourceVersion: string, of?: WriteKind): Promise<void>;
}

/** For a single replica: its own store has its writes already. */
export const localWrites: NewestWrites = { publish: () => Promise.resolve() };
