/** What is billed of a project, and its changes in the project's status: docs/billing.md#what-is-recorded. Pure. */

import {
  BILLABLE_CHANGES_LISTED,
  type BillableState,
  type BillableStatusChange,
  billableState,
  type Catalog,
  findPlan,
  isInstanceType,
  type Project,
  type ProjectStatus,
  statusState,
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
  return { number, at: new Date(at), state: deleted ? undefined : statusState(change) };
}

/** The changes in a status, oldest first. */
export const changesOf = ({ status }: Pick<Project, "status">): NumberedChange[] =>
  (status?.billing?.changes ?? []).map(numberedChange);

/** What there is of a project, beside its status. */
export interface Live {
  /** Instances that its Deployment or StatefulSet is to have; undefined where there is none. */
  replicas?: number | undefined;
  /** Identifies the version that its Deployment has. */
  template?: string | undefined;
  /** Size of its volume, also where the spec does not request it any more. */
  volumeGb?: number | undefined;
  /** What was reported of it last, where the status was not written. */
  before?: BillableState | undefined;
}

interface Found {
  /** What a reconcile is about to write. */
  status: ProjectStatus;
  live: Live;
  catalog: Catalog;
}

/** What is billed of a project whose spec was carried out. */
export function stateInForce(project: Project, { status, live, catalog }: Found): BillableState | undefined {
  const { spec } = project;
  const before = live.before ?? lastState(status);
  const contract = contractInForce(project, status, live.template, before);
  // Those of a database are the spec's, also where a failure has kept the status as it was.
  const desired = isInstanceType(spec.type) ? status.desiredInstances : undefined;
  const instances = spec.paused ? undefined : desired;
  const inForce = { ...spec, ...contract };
  return findPlan(catalog, contract.plan) === undefined
    ? ofRetiredPlan(inForce, { ...live, before }, instances)
    : billableState(catalog, inForce, { instances, before, volumeGb: live.volumeGb });
}

/**
 * The same under a plan that the catalog has no more: what does not depend on what the plan includes. A volume whose storage was billed is billed by
 * its size, also once that has grown.
 */
function ofRetiredPlan(
  { type, plan, paymentMode, paused = false, storage, ...spec }: Project["spec"],
  { before, volumeGb = 0 }: Pick<Live, "before" | "volumeGb">,
  instances = spec.instances ?? 1,
): BillableState | undefined {
  if (before?.plan !== plan || type === "job" || paymentMode === "per_minute") {
    return undefined;
  }
  const same = { ...before, paymentMode, paused };
  if (!isInstanceType(type)) {
    return same;
  }
  const size = storage?.persistent ? (storage.capacity ?? 0) : volumeGb;
  return { ...same, instances, billedGb: before.billedGb > 0 ? Math.max(before.billedGb, size) : 0 };
}

/**
 * The same of one whose spec is rejected: what it had, but for a pause, and for what its autoscaler has changed. One that runs, and of which nothing
 * was reported, has the plan of its version, or else the one that its status or its spec has.
 */
export function stateOfRejected(
  project: Project,
  { status, live, catalog }: Found,
): BillableState | undefined {
  const { spec } = project;
  const { replicas, template, volumeGb } = live;
  const before = live.before ?? lastState(status);
  if (before === undefined) {
    const version = status.deployments?.find(({ settingsHash }) => settingsHash === template)?.settings;
    const plan = version?.plan ?? status.plan ?? spec.plan;
    const contract: Contract = { plan, paymentMode: version?.paymentMode ?? "hourly" };
    const instances = spec.paused ? undefined : replicas;
    return replicas === undefined
      ? undefined
      : billableState(catalog, { ...spec, ...contract }, { instances, volumeGb });
  }
  const paused = before.paused || spec.paused === true;
  const instances = paused || !isInstanceType(spec.type) ? before.instances : (replicas ?? before.instances);
  return { ...before, paused, instances };
}

type Contract = Pick<Project["spec"], "plan" | "paymentMode">;

const lastState = ({ billing }: ProjectStatus): BillableState | undefined => {
  const last = billing?.changes.at(-1);
  return last && numberedChange(last).state;
};

/**
 * The plan that instances were created for, and how that one is paid: an earlier one, while the version of the spec may not begin, or after it
 * has failed. What the spec says of the payment of another plan was not requested of this one.
 */
function contractInForce(
  { spec: { type, plan, paymentMode } }: Project,
  status: ProjectStatus,
  template: string | undefined,
  before: BillableState | undefined,
): Contract {
  const wanted = { plan, paymentMode };
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
 * @param at when it came to have that, by the caller's clock; called where something has changed
 */
export function withState(
  changes: readonly BillableStatusChange[],
  state: BillableState | undefined,
  { at, known }: { at: () => Date; known: KnownRecord | undefined },
): readonly BillableStatusChange[] {
  const goesOnAfter = isBehind(changes, known) ? known?.goesOnAfter : undefined;
  // Nothing follows an end.
  if (goesOnAfter !== undefined && goesOnAfter.state === undefined) {
    return changes;
  }
  const current = goesOnAfter === undefined ? changes : renumbered(changes, goesOnAfter);
  const listed = current.at(-1);
  const last = listed ? numberedChange(listed) : goesOnAfter;
  if (listed !== undefined && isSameState(last?.state, state)) {
    return current;
  }
  if (last !== undefined && last.state === undefined) {
    return current;
  }
  const unrecorded = current.filter(({ number }) => number > (known?.number ?? 0));
  const isFull = unrecorded.length >= BILLABLE_CHANGES_LISTED - 1 && state !== undefined;
  if (isFull || (last === undefined && state === undefined)) {
    return current;
  }
  const latest = Math.max(at().getTime(), last?.at.getTime() ?? 0);
  const change = { number: (last?.number ?? 0) + 1, at: new Date(latest).toISOString() };
  return [...unrecorded, state === undefined ? { ...change, deleted: true } : { ...change, ...state }];
}

/**
 * The changes of a status that were observed after what the ledger has last, with the numbers that follow that: all of those of a status that had lost
 * its list, and none of a status from an earlier state of the cluster. None follows an end.
 */
export function renumbered(
  changes: readonly BillableStatusChange[],
  last: NumberedChange,
): readonly BillableStatusChange[] {
  const later =
    last.state === undefined ? [] : changes.filter(({ at }) => Date.parse(at) > last.at.getTime());
  return later.map((change, index) => ({ ...change, number: last.number + 1 + index }));
}

/** Whether the ledger has another history than a list, whose changes have no numbers of that yet. */
export const isBehind = (
  changes: readonly Pick<BillableStatusChange, "number">[],
  known: KnownRecord | undefined,
): boolean => known?.goesOnAfter !== undefined && (changes[0]?.number ?? 0) <= known.goesOnAfter.number;

const isSameState = (a: BillableState | undefined, b: BillableState | undefined): boolean =>
  a === b ||
  (a !== undefined &&
    b !== undefined &&
    (Object.keys(a) as (keyof BillableState)[]).every((field) => a[field] === b[field]));
