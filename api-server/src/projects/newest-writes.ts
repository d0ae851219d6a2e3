/** What is kept in memory, each by a watch of its own: versions of one say nothing of how new another is. */
export type Noted = "projects" | "jobRuns";

/**
 * Tells every replica how far it must have watched before it answers the next read of an organization.
 *
 * Nobody calls it but `ProjectStore`, and `JobRunStore` for runs: a route that writes a Project awaits `projects.observe(written)`, one that deletes
 * a Project awaits `projects.waitUntilGone(project, …)`, and both have noted the write when they resolve. Every
 * request of the organization then learns the newest note together with its rate limit, and the guard lets a
 * read wait until this replica's store has seen it.
 */
export interface WriteNotes {
  /**
   * Keeps the resourceVersion of a write (of a Project unless said), unless a newer one is known. Never rejects: a note that is lost costs another
   * replica a read that is some milliseconds old.
   */
  note(organizationId: string, resourceVersion: string, of?: Noted): Promise<void>;
}

/** For a single replica: its own store holds its writes already. */
export const noNotes: WriteNotes = { note: () => Promise.resolve() };
