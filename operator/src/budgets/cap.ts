/** What a hard cap does with a project. Pure. */

import type { Project } from "@slipway/crds";

export type CapAction = "pause" | "resume";

/**
 * Whether a project is to be paused, or resumed by who paused it. Undefined where it is as it should be: what a user has paused stays so.
 * @param isExhausted whether its organization's budget has a hard cap that is reached
 */
export function capAction({ metadata, spec }: Project, isExhausted: boolean): CapAction | undefined {
  if (metadata.deletionTimestamp !== undefined) {
    return undefined;
  }
  if (isExhausted) {
    return spec.paused === true ? undefined : "pause";
  }
  // Of one that is not paused any more the mark goes: a user may pause it later.
  return spec.pausedBy === "budget" ? "resume" : undefined;
}

/** The merge patch of an action: conditional, so that a change by a user in between is what holds. */
export function capPatch({ metadata: { uid, resourceVersion } }: Project, action: CapAction): object {
  const spec = action === "pause" ? { paused: true, pausedBy: "budget" } : { paused: null, pausedBy: null };
  return { metadata: { uid, resourceVersion }, spec };
}
