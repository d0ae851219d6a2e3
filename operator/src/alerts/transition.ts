/** The state of a rule after an observation. Pure. */

import type { AlertState } from "@slipway/ledger";
import type { Verdict } from "./observe.ts";

/**
 * The state that a rule changes to; undefined where it stays. A rule of which nothing has been known yet has no state.
 * @param isMissing whether data that is not there is known to be missing: not right after the store was away
 * @param isHeld whether the state is too new to be followed by its opposite
 */
export function nextState(
  before: AlertState | undefined,
  verdict: Verdict,
  isMissing: boolean,
  isHeld: boolean,
): AlertState | undefined {
  const after = stateOf(before, verdict, isMissing);
  const isOpposite = before !== "no_data" && before !== undefined && after !== "no_data";
  return after === before || (isHeld && isOpposite) ? undefined : after;
}

function stateOf(
  before: AlertState | undefined,
  verdict: Verdict,
  isMissing: boolean,
): AlertState | undefined {
  switch (verdict) {
    case "over":
      return "firing";
    case "under":
      return "ok";
    case "undecided":
      return before;
    case "stale":
      return isMissing && before === "ok" ? "no_data" : before;
    case "forgotten":
      return isMissing && before !== undefined ? "no_data" : before;
  }
}
