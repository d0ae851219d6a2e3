/** New projects whose creation through `/v1` is not over. Pure. */

import type { Project } from "@slipway/crds";

/** How long a new project waits for the API, in milliseconds: it may have crashed. */
const PENDING_MS = 30_000;

/**
 * For how many more milliseconds a new project is not reconciled: the API claims its hostnames, and deletes it when one is
 * claimed already. Otherwise two creations that want the same ones could each get some, and neither all.
 */
export function creationPendingMs({ metadata, spec }: Project, now: Date): number {
  const { creationTimestamp = "", deletionTimestamp } = metadata;
  if (!spec.creationPending || deletionTimestamp !== undefined) {
    return 0;
  }
  return Math.max(0, Date.parse(creationTimestamp) + PENDING_MS - now.getTime()) || 0;
}
