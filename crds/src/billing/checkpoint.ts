/** What charges after an instant depend on of all that was before it, so that not all of a history is computed again. */

import {
  type BillableCheckpoint,
  type BillableHistory,
  instancesOf,
  originOf,
  stretchesOf,
} from "./history.ts";
import { HOUR_MS } from "./hours.ts";
import type { PriceList } from "./prices.ts";
import { contractsOf } from "./terms.ts";

/**
 * The checkpoint with which charges that are not final before an instant can be computed. With it, and with the changes from its own instant on, they
 * are the same as with the whole history.
 * @param since in milliseconds, not before the history's own checkpoint
 * @returns undefined while there is nothing to leave out
 */
export function checkpointOf(
  history: BillableHistory,
  lists: readonly PriceList[],
  since: number,
): BillableCheckpoint | undefined {
  const origin = originOf(history) ?? since;
  // An hour that ends at the instant is final then, and not before.
  const at = origin + Math.max(0, Math.ceil((since - origin) / HOUR_MS) - 1) * HOUR_MS;
  if (at <= (history.checkpoint?.at ?? origin)) {
    return history.checkpoint;
  }
  const stretches = stretchesOf(history, at);
  const last = stretches.at(-1);
  if (last === undefined || last.to < at) {
    return undefined;
  }
  const { from: _, to: __, ...state } = last;
  const contracts = Array.from(
    { length: instancesOf(history, stretches) },
    (___, instance) =>
      contractsOf(stretches, instance, lists, { start: history.checkpoint?.contracts[instance] }).end,
  );
  // Of those beyond the last one that is paid by something nothing need be known.
  const end = contracts.findLastIndex(({ term, lapsed }) => term !== undefined || lapsed !== undefined);
  return { origin, at, state, contracts: contracts.slice(0, end + 1) };
}
