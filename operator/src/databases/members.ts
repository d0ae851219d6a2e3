/** Which members of a database run: those that are requested, and those whose data no other is known to have. Pure. */

import { annotations } from "@slipway/crds";
import { ordinalOf, stayingPrimary } from "./common/pods.ts";
import type { LiveClaim, LiveDatabase } from "./driver.ts";

/** How many members a database is to have. */
export interface Members {
  /** Pods of the StatefulSet. */
  replicas: number;
  /** Members that the engine counts, whether they run now or not. */
  members: number;
}

/**
 * A claim above the requested size may have the newest data until it is marked as unused. So a database whose
 * instances were reduced while it was paused starts with all of them, and members that run are stopped by `releaseMembers`
 * alone, which queries the primary. A marked claim has old data: no member starts from it without a primary to follow.
 */
export function planMembers(
  instances: number,
  paused: boolean,
  live: Pick<LiveDatabase, "statefulSet" | "pods" | "claims">,
): Members {
  const running = live.statefulSet?.spec?.replicas ?? 0;
  const needed = 1 + Math.max(-1, ...live.claims.filter(mayBeNeeded).map(ordinalOf));
  const unused = Math.min(...live.claims.filter((claim) => unusedSince(claim) !== undefined).map(ordinalOf));
  const served = stayingPrimary({ instances }, live) !== undefined;
  const replicas = replicasOf({ instances, running, needed, unused, served });
  return { replicas: paused ? 0 : replicas, members: Math.max(replicas, needed) };
}

function replicasOf(found: {
  instances: number;
  running: number;
  needed: number;
  unused: number;
  served: boolean;
}): number {
  const { instances, running, needed, unused, served } = found;
  if (running > instances) {
    return running;
  }
  return served
    ? Math.max(running, Math.min(instances, unused))
    : Math.max(running, needed, Math.min(instances, unused));
}

/** Since when a claim has been marked as unused. */
export function unusedSince({ metadata }: LiveClaim): Date | undefined {
  const text = metadata?.annotations?.[annotations.unusedSince];
  const time = Date.parse(text ?? "");
  return Number.isNaN(time) ? undefined : new Date(time);
}

/** Whether an annotation keeps a claim. */
export function isKept({ metadata }: LiveClaim): boolean {
  return metadata?.annotations?.[annotations.keep] !== undefined;
}

/** A claim that was never bound has no data. */
function mayBeNeeded(claim: LiveClaim): boolean {
  return (
    claim.status?.phase === "Bound" && !claim.metadata?.deletionTimestamp && unusedSince(claim) === undefined
  );
}
