/**
 * Tells every replica how far it must have watched before it answers the next read of an organization.
 *
 * Nobody calls it but `ProjectStore`: a route that writes a Project awaits `projects.observe(written)`, one that deletes
 * a Project awaits `projects.waitUntilGone(project, …)`, and both have noted the write when they resolve. Every
 * request of the organization then learns the newest note together with its rate limit, and the guard lets a
 * read wait until this replica's store has seen it.
 */
export interface WriteNotes {
  /**
   * Keeps the resourceVersion of a write, unless a newer one is known. Never rejects: a note that is lost costs another
   * replica a read that is some milliseconds old.
   */
  note(organizationId: string, resourceVersion: string): Promise<void>;
}

/** For a single replica: its own store holds its writes already. */
export const noNotes: WriteNotes = { note: () => Promise.resolve() };
