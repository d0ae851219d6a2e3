import { readFileSync } from "node:fs";
import {
  BILLABLE_CHANGES_LISTED,
  type BillableState,
  type BillableStatusChange,
  type Deployment,
  type Project,
  type ProjectStatus,
  parseCatalog,
} from "@slipway/crds";
import { expect, test } from "vitest";
import {
  type KnownRecord,
  numberedChange,
  stateInForce,
  stateOfRejected,
  withState,
} from "./billable-changes.ts";

const catalog = parseCatalog(
  readFileSync(new URL("../../../charts/slipway/files/catalog.yaml", import.meta.url), "utf8"),
);
const one: BillableState = {
  plan: "basic",
  paymentMode: "hourly",
  renews: true,
  instances: 1,
  paused: false,
  billedGb: 0,
};
const at = (minute: number) => new Date(Date.UTC(2026, 2, 2, 10, minute));
const entry = (number: number, state = one): BillableStatusChange => ({
  number,
  at: at(number).toISOString(),
  ...state,
});
const known = (number: number): KnownRecord => ({ number });

const projectOf = (spec: object) =>
  ({ spec: { type: "http", plan: "basic", paymentMode: "hourly", ...spec } }) as Project;
const statusOf = (status: object) => status as ProjectStatus;

test("the same state again is no change, and the list stays the same one", () => {
  const list = [entry(1)];
  expect(withState(list, { ...one }, { at: () => at(5), known: known(1) })).toBe(list);
});

test("another state is the next number, and what the ledger has is dropped with it", () => {
  const two = { ...one, instances: 2 };
  expect(withState([], one, { at: () => at(1), known: undefined })).toEqual([entry(1)]);
  expect(withState([entry(1)], two, { at: () => at(2), known: undefined })).toEqual([
    entry(1),
    entry(2, two),
  ]);
  expect(withState([entry(1), entry(2)], two, { at: () => at(3), known: known(2) })).toEqual([entry(3, two)]);
});

// Shows: docs/billing.md#what-is-recorded: where a clock was set back, a change has the instant of the one before
test("no change is earlier than the one before it", () => {
  const [, change] = withState([entry(7)], { ...one, paused: true }, { at: () => at(2), known: undefined });
  expect(change).toEqual({ number: 8, at: at(7).toISOString(), ...one, paused: true });
});

test("a deletion is the last entry, once, and none where there is no history", () => {
  const ended = withState([entry(1)], undefined, { at: () => at(2), known: known(1) });
  expect(ended).toEqual([{ number: 2, at: at(2).toISOString(), deleted: true }]);
  expect(withState(ended, undefined, { at: () => at(3), known: undefined })).toBe(ended);
  expect(withState(ended, one, { at: () => at(3), known: undefined })).toBe(ended);
  expect(withState([], undefined, { at: () => at(1), known: undefined })).toEqual([]);
});

// Shows: docs/adr/0032-recorded-changes.md#decision: At most 200 wait.
test("a list that is full waits for the ledger, but a deletion does not", () => {
  const full = Array.from({ length: BILLABLE_CHANGES_LISTED - 1 }, (_, index) => entry(index + 1));
  const two = { ...one, instances: 2 };
  expect(withState(full, two, { at: () => at(999), known: undefined })).toBe(full);
  expect(withState(full, undefined, { at: () => at(999), known: undefined })).toHaveLength(
    BILLABLE_CHANGES_LISTED,
  );
  expect(withState(full, two, { at: () => at(999), known: known(198) })).toHaveLength(2);
});

test("a history of which the ledger has another goes on after that, once", () => {
  const goesOnAfter = { number: 5, at: at(9), state: { ...one, instances: 3 } };
  const behind: KnownRecord = { number: 5, goesOnAfter };
  const next = withState([entry(3)], one, { at: () => at(4), known: behind });
  expect(next).toEqual([{ number: 6, at: at(9).toISOString(), ...one }]);
  expect(withState(next, one, { at: () => at(10), known: behind })).toBe(next);
});

const deployments = (...plans: string[]): Deployment[] =>
  plans.map((plan, index) => ({ settingsHash: `hash-${index}`, settings: { plan } }) as Deployment);

// Shows: docs/adr/0032-recorded-changes.md#decision: the plan of the version that its Deployment has
test.each([
  ["the newest version", "hash-0", "premium"],
  ["the one before it, while it waits or has failed", "hash-1", "basic"],
  ["one that no status has", "hash-9", "premium"],
])("of an application that runs %s", (_what, template, plan) => {
  const status = statusOf({ desiredInstances: 2, deployments: deployments("premium", "basic") });
  const project = projectOf({ plan: "premium", instances: 2 });
  expect(stateInForce(project, { status, live: { template }, catalog })).toEqual({
    ...one,
    plan,
    instances: 2,
  });
});

// Shows: docs/billing.md#metering: is paid as it was, and not as the spec says of another plan
test("a plan that waits or has failed does not change how the one in force is paid", () => {
  const [newest, older] = deployments("premium", "basic");
  const waiting = [newest, { ...older, settings: { plan: "basic", paymentMode: "hourly" } }];
  const project = projectOf({ plan: "premium", paymentMode: "yearly" });
  const status = statusOf({ desiredInstances: 1, deployments: waiting });
  expect(stateInForce(project, { status, live: { template: "hash-1" }, catalog })).toEqual(one);
  expect(stateInForce(project, { status, live: { template: "hash-0" }, catalog })).toMatchObject({
    plan: "premium",
    paymentMode: "yearly",
  });
  const database = projectOf({ type: "postgresql", plan: "db-premium", paymentMode: "yearly" });
  const before = entry(1, { ...one, plan: "db-basic", paymentMode: "monthly" });
  const failed = (billing?: object) =>
    stateInForce(database, { status: statusOf({ plan: "db-basic", billing }), live: {}, catalog });
  expect(failed({ changes: [before] })).toMatchObject({ plan: "db-basic", paymentMode: "monthly" });
  expect(failed()).toMatchObject({ plan: "db-basic", paymentMode: "hourly" });
});

test("of a database the plan that is in force, of a paused project what the spec has, and of a job nothing", () => {
  const database = projectOf({
    type: "postgresql",
    plan: "db-premium",
    instances: 2,
    storage: { capacity: 1 },
  });
  const status = statusOf({ plan: "db-basic", desiredInstances: 2 });
  expect(stateInForce(database, { status, live: {}, catalog })).toMatchObject({
    plan: "db-basic",
    instances: 2,
  });
  const paused = projectOf({ instances: 3, paused: true });
  expect(stateInForce(paused, { status: statusOf({ desiredInstances: 0 }), live: {}, catalog })).toEqual({
    ...one,
    instances: 3,
    paused: true,
  });
  expect(
    stateInForce(projectOf({ type: "job", plan: "job-basic" }), { status: {}, live: {}, catalog }),
  ).toBeUndefined();
});

// Shows: docs/billing.md#metering: that the catalog no longer has
test("of a plan that the catalog lacks instances, payment and pauses are recorded, and storage that has grown", () => {
  const retired = { ...one, plan: "retired", billedGb: 4 };
  const found = (spec: object, before: BillableState = retired, volumeGb?: number) => {
    const status = statusOf({
      desiredInstances: 3,
      plan: "retired",
      billing: { changes: [entry(1, before)] },
    });
    return stateInForce(projectOf({ plan: "retired", ...spec }), { status, live: { volumeGb }, catalog });
  };
  expect(found({})).toEqual({ ...retired, instances: 3 });
  const storageOf = (capacity: number) => ({ storage: { persistent: true, capacity } });
  expect(
    [found(storageOf(9)), found(storageOf(2)), found({}, retired, 7)].map((has) => has?.billedGb),
  ).toEqual([9, 4, 7]);
  // Of a free plan, for example.
  expect(found(storageOf(9), { ...retired, billedGb: 0 })?.billedGb).toBe(0);
  expect(found({ type: "postgresql", ...storageOf(9) })?.billedGb).toBe(4);
  expect(found({ paused: true, instances: 2, paymentMode: "monthly" })).toEqual({
    ...retired,
    ...{ paused: true, instances: 2, paymentMode: "monthly" },
  });
  expect(found({ type: "postgresql", instances: 3 })).toEqual(retired);
  expect(found({}, one)).toBeUndefined();
  expect(found({ type: "job", paymentMode: "per_minute" })).toBeUndefined();
});

// Shows: docs/adr/0032-recorded-changes.md#decision: A rejected spec changes nothing but a pause
test("a rejected spec changes nothing but a pause, and what the autoscaler has set", () => {
  const status = statusOf({ billing: { changes: [entry(1)] } });
  const rejected = (spec: object, replicas?: number) =>
    stateOfRejected(projectOf(spec), { status, live: { replicas }, catalog });
  expect(rejected({ plan: "premium", instances: 5 })).toEqual(one);
  expect(rejected({ plan: "premium" }, 4)).toEqual({ ...one, instances: 4 });
  expect(rejected({ plan: "premium", paused: true }, 0)).toEqual({ ...one, paused: true });
  const resumed = statusOf({ billing: { changes: [entry(1, { ...one, paused: true })] } });
  expect(
    stateOfRejected(projectOf({ plan: "premium" }), { status: resumed, live: { replicas: 0 }, catalog })
      ?.paused,
  ).toBe(true);
  expect(stateOfRejected(projectOf({}), { status: {}, live: {}, catalog })).toBeUndefined();
});

// Shows: docs/billing.md#metering: of one that runs, and of which nothing was recorded, the plan of its version
test("a rejected project that runs is billed, though nothing was reported of it", () => {
  const live = { replicas: 3, template: "hash-1", volumeGb: 7 };
  const found = (status: object) =>
    stateOfRejected(projectOf({ plan: "premium", paymentMode: "yearly", instances: 9 }), {
      status: statusOf(status),
      live,
      catalog,
    });
  const expected = { ...one, instances: 3, billedGb: 7 };
  expect(found({ deployments: deployments("premium", "basic") })).toEqual(expected);
  expect(found({ plan: "basic" })).toEqual(expected);
  expect(found({})).toEqual({ ...expected, plan: "premium" });
  expect(stateOfRejected(projectOf({}), { status: {}, live: { ...live, before: one }, catalog })).toEqual({
    ...one,
    instances: 3,
  });
});

test("an entry of a status is a change of the ledger", () => {
  expect(numberedChange(entry(3))).toEqual({ number: 3, at: at(3), state: one });
  expect(numberedChange({ number: 4, at: at(4).toISOString(), deleted: true }).state).toBeUndefined();
});
