/** What a project had, and from when on: docs/billing.md#what-is-recorded. */

/** How a plan of an application, a worker or a database is paid. */
export type PlanPaymentMode = "hourly" | "monthly" | "yearly";

/** What a project's price depends on. */
export interface BillableState {
  readonly plan: string;
  readonly paymentMode: PlanPaymentMode;
  /** Whether a term that ends is followed by another one. */
  readonly renews: boolean;
  /** Instances that exist under the plan, unless the project is paused. */
  readonly instances: number;
  readonly paused: boolean;
  /** GB of storage that are charged: paused or not. */
  readonly billedGb: number;
}

export interface BillableChange extends BillableState {
  /** From when on, in milliseconds. */
  readonly at: number;
}

/** All that was recorded of a project, oldest first. No change is earlier than the one before; of several at one instant the last counts. */
export interface BillableHistory {
  readonly projectUid: string;
  readonly changes: readonly BillableChange[];
  /** When the project was deleted, in milliseconds; no change is later. */
  readonly deletedAt?: number;
}

/** A time without a change: `from` is in it, `to` is not. Milliseconds. */
export interface Stretch extends BillableState {
  readonly from: number;
  readonly to: number;
}

/**
 * The stretches of a history up to an instant, none of them empty.
 * @throws RangeError when the history is not in order
 */
export function stretchesOf({ changes, deletedAt }: BillableHistory, until: number): Stretch[] {
  const end = Math.min(deletedAt ?? until, until);
  return changes.flatMap((change, index) => {
    const next = changes[index + 1]?.at ?? deletedAt;
    if (next !== undefined && next < change.at) {
      throw new RangeError("changes of a project must be in order");
    }
    const { at: from, ...state } = change;
    const to = Math.min(next ?? end, end);
    return from < to ? [{ ...state, from, to }] : [];
  });
}

/** Whether an instance exists, by its number from 0 up. */
export const hasInstance = ({ instances, paused }: BillableState, instance: number): boolean =>
  !paused && instance < instances;

/** Whether nothing differs that a contract depends on. */
export const isSameContract = (a: BillableState, b: BillableState): boolean =>
  a.plan === b.plan && a.paymentMode === b.paymentMode && a.renews === b.renews;
