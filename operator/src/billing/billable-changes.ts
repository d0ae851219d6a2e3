/** What is billed of a project, and its changes in the project's status: docs/billing.md#what-is-recorded. Pure. */

import {
  BILLABLE_CHANGES_LISTED,
  type BillableState,
  type BillableStatusChange,
  billableState,
  type Catalog,
  isInstanceType,
  type Project,
  type ProjectStatus,
} from "@slipway/crds";
import type { NumberedChange } from "@slipway/ledger";

/** What the ledger has of a project's history, as far as is known. */
export interface KnownRecord {
  /** All up to this number is in the ledger. */
  number: number;
  /** The ledger has others of these numbers: the history goes on after this change. */
  goesOnAfter?: NumberedChange;
}

/** A change as the ledger has it. */
export function numberedChange({ number, at, deleted, ...change }: BillableStatusChange): NumberedChange {
  return { number, at: new Date(at), state: deleted ? undefined : stateOf(change) };
}

/** The changes in a status, oldest first. */
export const changesOf = ({ status }: Pick<Project, "status">): NumberedChange[] =>
  (status?.billing?.changes ?? []).map(numberedChange);

function stateOf(change: Omit<BillableStatusChange, "number" | "at" | "deleted">): BillableState {
  const { plan = "", paymentMode = "hourly", renews = true, instances = 0, paused = false } = change;
  return { plan, paymentMode, renews, instances, paused, billedGb: change.billedGb ?? 0 };
}

/**
 * What is billed of a project whose spec was carried out.
 * @param status what a reconcile is about to write
 * @param template identifies the version that its Deployment has
 */
export function stateInForce(
  project: Project,
  { status, template, catalog }: { status: ProjectStatus; template?: string | undefined; catalog: Catalog },
): BillableState | undefined {
  const { spec } = project;
  const instances = spec.paused ? undefined : status.desiredInstances;
  const before = lastState(status);
  const contract = contractInForce(project, status, template);
  return billableState(catalog, { ...spec, ...contract }, { instances, before });
}

/** The same of one whose spec is rejected: what it had, but for a pause, and for what its autoscaler has changed. */
export function stateOfRejected(
  { spec }: Project,
  { status, replicas }: { status: ProjectStatus; replicas?: number | undefined },
): BillableState | undefined {
  const before = lastState(status);
  const paused = before?.paused || spec.paused === true;
  return (
    before && { ...before, paused, instances: paused ? before.instances : (replicas ?? before.instances) }
  );
}

type Contract = Pick<Project["spec"], "plan" | "paymentMode">;

const lastState = ({ billing }: ProjectStatus): BillableState | undefined => {
  const last = billing?.changes.at(-1);
  return last && numberedChange(last).state;
};

/**
 * The plan that instances were created for, and how that one is paid: an earlier one, while the version of the spec may not begin, or after it
 * has failed. What the spec says of the payment of another plan nobody has requested of this one.
 */
function contractInForce(
  { spec: { type, plan, paymentMode } }: Project,
  status: ProjectStatus,
  template: string | undefined,
): Contract {
  const wanted = { plan, paymentMode };
  const before = lastState(status);
  if (!isInstanceType(type)) {
    return status.plan === undefined || status.plan === plan
      ? wanted
      : { plan: status.plan, paymentMode: before?.paymentMode ?? "hourly" };
  }
  const { deployments = [] } = status;
  const live = deployments.find(({ settingsHash }) => settingsHash === template);
  if (live === undefined || live === deployments[0]) {
    return wanted;
  }
  const { settings } = live;
  return {
    plan: settings.plan,
    paymentMode: settings.paymentMode ?? before?.paymentMode ?? "hourly",
  };
}

/**
 * The changes of a status once it reports what a project has now. The same ones while nothing has changed, and while too many wait for the ledger.
 * @param state undefined when the project was deleted
 * @param at when it came to have that, by the caller's clock
 */
export function withState(
  changes: readonly BillableStatusChange[],
  state: BillableState | undefined,
  { at, known }: { at: Date; known: KnownRecord | undefined },
): readonly BillableStatusChange[] {
  const listed = changes.at(-1);
  const goesOnAfter = isBehind(listed, known) ? known?.goesOnAfter : undefined;
  const last = goesOnAfter ?? (listed && numberedChange(listed));
  if (last !== undefined && goesOnAfter === undefined && isSameState(last.state, state)) {
    return changes;
  }
  // Nothing follows an end.
  if (last !== undefined && last.state === undefined) {
    return changes;
  }
  const unrecorded = changes.filter(({ number }) => number > (known?.number ?? 0));
  const isFull = unrecorded.length >= BILLABLE_CHANGES_LISTED - 1 && state !== undefined;
  if (isFull || (last === undefined && state === undefined)) {
    return changes;
  }
  const latest = Math.max(at.getTime(), last?.at.getTime() ?? 0);
  const change = { number: (last?.number ?? 0) + 1, at: new Date(latest).toISOString() };
  return [...unrecorded, state === undefined ? { ...change, deleted: true } : { ...change, ...state }];
}

/** Whether the ledger is ahead of the status with another history. */
const isBehind = (listed: BillableStatusChange | undefined, known: KnownRecord | undefined): boolean =>
  known?.goesOnAfter !== undefined && (listed?.number ?? 0) <= known.goesOnAfter.number;

const isSameState = (a: BillableState | undefined, b: BillableState | undefined): boolean =>
  a === b ||
  (a !== undefined &&
    b !== undefined &&
    (Object.keys(a) as (keyof BillableState)[]).every((field) => a[field] === b[field]));
