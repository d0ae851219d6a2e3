/** From when on a cancelled run is not billed. Pure. */

import type { JobRun } from "@slipway/crds";
import { CLOCKS_APART_MS } from "./settings.ts";

const dateOf = (text: string | undefined) => (text === undefined ? undefined : new Date(text));

/**
 * The moment that a request to cancel counts from; undefined without one. That is what the request says, within what is known:
 * the run was observed without the request at `lastObservedRunningAt`, so it was not made before, and it is not made in the
 * future. Once it is in the status it stays, whatever the run is observed as later.
 */
export function cancelEffectiveAt({ spec, status }: JobRun, now: Date): Date | undefined {
  const asked = dateOf(spec.cancelRequestedAt);
  if (!asked) {
    return undefined;
  }
  const recorded = dateOf(status?.cancelEffectiveAt);
  if (recorded) {
    return recorded;
  }
  const observed = dateOf(status?.lastObservedRunningAt);
  if (observed && observed.getTime() - asked.getTime() > CLOCKS_APART_MS) {
    return new Date(observed.getTime() - CLOCKS_APART_MS);
  }
  return asked.getTime() - now.getTime() > CLOCKS_APART_MS ? now : asked;
}
