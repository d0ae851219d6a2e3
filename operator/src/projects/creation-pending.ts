/** New projects whose creation through `/v1` is not over. Pure. */

import type { Project } from "@slipway/crds";

/** How long the API is left alone with a new project, in milliseconds: it may have died. */
const PENDING_MS = 30_000;

/**
 * For how many more milliseconds a new project is left to the API, which claims its hostnames and takes it back when one is
 * taken. Otherwise two creations that want the same ones could each get some, and neither all.
 */
export function creationPendingMs({ metadata, spec }: Project, now: Date): number {
  const { creationTimestamp = "", deletionTimestamp } = metadata;
  if (!spec.creationPending || deletionTimestamp !== undefined) {
    return 0;
  }
  return Math.max(0, Date.parse(creationTimestamp) + PENDING_MS - now.getTime()) || 0;
}
