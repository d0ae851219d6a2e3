import { Store } from "@slipway/controller-runtime";
import type { PriceList, Project } from "@slipway/crds";
import type { AdjustedProject, MeteredHistory, MeteredProject, MeteredWindow } from "@slipway/ledger";
import { type Clock, silentLogger } from "@slipway/process";
import { beforeEach, expect, test } from "vitest";
import type { PlanChargeLedger } from "./plan-charge-ledger.ts";
import { METER_LAG_MS, PlanMeter } from "./plan-meter.ts";

const HOUR = 3_600_000;
const state = { plan: "basic", paymentMode: "hourly", renews: true, paused: false, billedGb: 0 } as const;
const lists: PriceList[] = [
  {
    from: 0,
    gbHour: "0",
    plans: { basic: { hourly: "3", monthly: "2160", yearly: "25920", refund: "none" } },
  },
];
const slow = () => Promise.reject(Object.assign(new Error("canceling statement"), { code: "57014" }));

let now: number;
let monotonic: number;
let outcomes: string[];
let recorded: MeteredWindow[];
let adjusted: AdjustedProject[];

beforeEach(() => {
  [now, monotonic] = [10 * HOUR + METER_LAG_MS, 0];
  [outcomes, recorded, adjusted] = [[], [], []];
});

/** Pauses are none. */
const clock: Clock = {
  now: () => new Date(now),
  monotonic: () => monotonic,
  setTimeout: (callback) => {
    queueMicrotask(callback);
    return { cancel: () => {} };
  },
};
const metered = (projectUid: string, facts: Partial<MeteredProject> = {}): MeteredProject => ({
  organizationId: "alpha",
  projectId: projectUid,
  projectUid,
  until: new Date(8 * HOUR),
  arrivals: 1,
  late: undefined,
  ...facts,
});
const late = { from: new Date(HOUR), arrival: 1, pass: 0 };
const changes = [{ ...state, at: 0, instances: 1 }];
const deletedAt = 20 * HOUR;

function meterOf(projects: readonly MeteredProject[], ledger: Partial<PlanChargeLedger> = {}): PlanMeter {
  return new PlanMeter({
    ledger: {
      toMeter: async () => projects,
      histories: async (uids) => uids.map((projectUid) => ({ projectUid, changes, deletedAt })),
      recent: async (uids) => uids.map((projectUid) => ({ projectUid, changes, deletedAt })),
      prices: async () => lists,
      recordPrices: async () => false,
      record: async (windows) => {
        recorded.push(...windows);
        return { recorded: windows.length, differing: [], stale: [] };
      },
      recorded: async () => [],
      adjust: async (project) => adjusted.push(project),
      ...ledger,
    },
    projects: new Store<Project>({ clock }),
    recorder: { hasPending: () => false },
    owns: () => true,
    clock,
    log: silentLogger,
    onOutcome: (outcome, count) => outcomes.push(`${outcome} ${count}`),
  });
}
const { signal } = new AbortController();
const uidsOf = (some: readonly { projectUid: string }[]) => some.map(({ projectUid }) => projectUid);

test("a project whose history the ledger is too slow for keeps back no other, and is left out for a minute", async () => {
  let calls = 0;
  const meter = meterOf(
    ["a", "b", "c"].map((uid) => metered(uid)),
    {
      recent: async (uids) => {
        calls += 1;
        return uids.includes("b") ? slow() : uids.map((projectUid) => ({ projectUid, changes, deletedAt }));
      },
    },
  );
  await meter.meter(signal);
  expect([uidsOf(recorded), outcomes]).toEqual([["a", "c"], ["recorded 2"]]);
  for (const counted of [["recorded 2"], ["recorded 2", "refused 1"]]) {
    calls = 0;
    await meter.meter(signal);
    expect(calls).toBe(0);
    monotonic += 60_000;
    await meter.meter(signal);
    expect([calls, outcomes]).toEqual([1, counted]);
  }
});

test("a window that the ledger is too slow for is shorter the next time, down to an hour", async () => {
  const lengths: number[] = [];
  const record = (windows: readonly MeteredWindow[]) => {
    lengths.push((windows[0]?.until.getTime() ?? 0) / HOUR);
    return slow();
  };
  const meter = meterOf([metered("a", { until: new Date(0) })], { record });
  for (let round = 0; round < 6; round += 1) {
    await meter.meter(signal);
    monotonic += 60_000;
  }
  expect(lengths).toEqual([10, 5, 2.5, 1.25, 1, 1]);
  expect(outcomes).toEqual(["refused 1", "refused 1"]);
});

test("windows that PostgreSQL ends for another transaction are computed again, and not counted as refused", async () => {
  const record = async (windows: readonly MeteredWindow[]) => {
    recorded.push(...windows);
    if (recorded.length === 2) {
      throw Object.assign(new Error("deadlock detected"), { code: "40P01" });
    }
    return { recorded: windows.length, differing: [], stale: [] };
  };
  const meter = meterOf([metered("a"), metered("b")], { record });
  await meter.meter(signal);
  await meter.meter(signal);
  expect([uidsOf(recorded), outcomes]).toEqual([
    ["a", "b", "a", "b"],
    ["recorded 0", "recorded 2"],
  ]);
});

// Shows: docs/billing.md#what-is-not-yet-so: What is read and computed of them is bounded
test("a whole history is read of one project alone, and one with more changes than are read is reported", async () => {
  const reads: [number, number][] = [];
  const recent = async (uids: readonly string[], most: number): Promise<MeteredHistory[]> => {
    reads.push([uids.length, most]);
    return uids.map((projectUid) => ({ projectUid, changes, readUntil: 5 * HOUR }));
  };
  await meterOf([metered("a"), metered("b"), metered("c", { late })], { recent }).meter(signal);
  expect(reads).toEqual([[3, 500], ...Array(3).fill([1, 100_000])]);
  // One that is late has its checkpoint with its adjustment.
  expect(outcomes).toEqual(["refused 1", "refused 1", "adjusted 1"]);
  expect([recorded, adjusted.map(({ checkpoint }) => checkpoint?.at)]).toEqual([[], [7 * HOUR]]);
});

test.each([
  ["that goes on", undefined],
  ["that ends later", 8 * HOUR],
])("an adjustment leaves a checkpoint of a history %s", async (_what, end) => {
  const histories = async () => [{ projectUid: "a", changes, deletedAt: end }];
  await meterOf([metered("a", { late })], { histories }).meter(signal);
  expect(adjusted[0]).toMatchObject({
    ended: false,
    checkpoint: { origin: 0, at: 7 * HOUR, state: { ...state, instances: 1 } },
  });
});

test("an adjustment of a history that has ended is the last of it", async () => {
  const histories = async () => [{ projectUid: "a", changes, deletedAt: 8 * HOUR - 1 }];
  await meterOf([metered("a", { late })], { histories }).meter(signal);
  expect(adjusted.map(({ ended, checkpoint }) => [ended, checkpoint])).toEqual([[true, undefined]]);
});

// Shows: docs/billing.md#late-changes: organizations take turns
test("windows come before late changes, whose organizations take turns, some in each round", async () => {
  const many = Array.from({ length: 25 }, (_, index) => metered(`a${index}`, { late }));
  const other = metered("b", { organizationId: "beta", late });
  expect(await meterOf([...many, other]).meter(signal)).toBe(true);
  expect(recorded).toHaveLength(26);
  expect(uidsOf(adjusted).slice(0, 3)).toEqual(["a0", "b", "a1"]);
  expect(adjusted).toHaveLength(20);
});

// Shows: docs/billing.md#late-changes: One that fails keeps back no other
test("an adjustment that fails keeps back no other, and is left out for a minute", async () => {
  const projects = ["a", "b"].map((uid) => metered(uid, { late }));
  const tried: string[] = [];
  const adjust = async (project: AdjustedProject) => {
    tried.push(project.projectUid);
    return project.projectUid === "a" ? slow() : 1;
  };
  const meter = meterOf(projects, { adjust });
  await meter.meter(signal);
  expect([uidsOf(recorded), outcomes]).toEqual([
    ["a", "b"],
    ["recorded 2", "adjusted 1"],
  ]);
  await meter.meter(signal);
  expect(tried).toEqual(["a", "b", "b"]);
  const away = meterOf(projects, { adjust: () => Promise.reject(new Error("away")) });
  await expect(away.meter(signal)).rejects.toThrow("away");
});
