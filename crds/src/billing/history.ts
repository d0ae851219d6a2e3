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

/** A term of an instance. Milliseconds. */
export interface RunningTerm {
  readonly plan: string;
  readonly paymentMode: PlanPaymentMode;
  readonly from: number;
  readonly to: number;
  /** The beginning of the first of terms that follow each other by renewal, and the number of this one. */
  readonly first: number;
  readonly number: number;
}

/** What an instance is paid by at an instant, beside what the project has then. */
export interface ContractState {
  readonly term?: RunningTerm | undefined;
  /** What the project had when a term ended and was not renewed, while that stays so. */
  readonly lapsed?: Contract | undefined;
}

/** What an earlier part of a history comes to, in place of its changes. It follows from them. */
export interface BillableCheckpoint {
  /** The first instant of the history, in milliseconds. */
  readonly origin: number;
  /** The beginning of an hour of the project, in milliseconds: changes before it are left out. */
  readonly at: number;
  /** What the project had just before that. */
  readonly state: BillableState;
  /** By the numbers of instances. */
  readonly contracts: readonly ContractState[];
}

/** All that was recorded of a project, oldest first. No change is earlier than the one before; of several at one instant the last counts. */
export interface BillableHistory {
  readonly projectUid: string;
  readonly changes: readonly BillableChange[];
  /** Of what was before the changes; none unless given. */
  readonly checkpoint?: BillableCheckpoint | undefined;
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
export function stretchesOf(history: BillableHistory, until: number): Stretch[] {
  const { checkpoint, deletedAt } = history;
  const changes = checkpoint
    ? [{ ...checkpoint.state, at: checkpoint.at }, ...history.changes]
    : history.changes;
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

/** The first instant of a history, in milliseconds; undefined where nothing is recorded. */
export const originOf = ({ checkpoint, changes }: BillableHistory): number | undefined =>
  checkpoint?.origin ?? changes[0]?.at;

/** One more than the highest number that an instance of a history has. A history may be longer than the arguments of a call. */
export const instancesOf = ({ checkpoint }: BillableHistory, stretches: readonly Stretch[]): number =>
  stretches.reduce((most, { instances }) => Math.max(most, instances), checkpoint?.contracts.length ?? 0);

/** Whether an instance exists, by its number from 0 up. */
export const hasInstance = ({ instances, paused }: BillableState, instance: number): boolean =>
  !paused && instance < instances;

/** What an instance is paid by. */
export type Contract = Pick<BillableState, "plan" | "paymentMode" | "renews">;

/** Whether nothing differs that a contract depends on. */
export const isSameContract = (a: Contract, b: Contract): boolean =>
  a.plan === b.plan && a.paymentMode === b.paymentMode && a.renews === b.renews;
