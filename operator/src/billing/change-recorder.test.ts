import { type ObjectRef, Store, WaitingError } from "@slipway/controller-runtime";
import type { BillableState, BillableStatusChange, Project, ProjectStatus } from "@slipway/crds";
import type { BillableChangeRow, NumberedChange, RecordedBillableChange } from "@slipway/ledger";
import { silentLogger } from "@slipway/process";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { ChangeRecorder } from "./change-recorder.ts";

const one: BillableState = {
  plan: "basic",
  paymentMode: "hourly",
  renews: true,
  instances: 1,
  paused: false,
  billedGb: 0,
};
const START = "2026-03-02T10:00:00Z";

let clock: FakeClock;
let projects: Store<Project>;
let recorder: ChangeRecorder;
let stop: AbortController;
let running: Promise<void>;
/** What the ledger has, by uid and number. */
let ledger: Map<string, BillableChangeRow>;
/** The uids of each transaction, with when it was, in milliseconds from the start. */
let transactions: { at: number; uids: string[] }[];
let outcomes: string[];
let woken: string[];
let away: boolean;
let wrong: string | undefined;
let wrongCode: string;
let distrusted: boolean;

beforeEach(() => {
  clock = new FakeClock(START);
  projects = new Store<Project>({ clock });
  [ledger, transactions, outcomes, woken] = [new Map(), [], [], []];
  [away, wrong, wrongCode, distrusted] = [false, undefined, "23514", false];
});
afterEach(async () => {
  stop?.abort();
  await running;
});

/** A new operator: it knows nothing but the cluster and the ledger. */
function start({ endsOnly = false } = {}): void {
  stop = new AbortController();
  recorder = new ChangeRecorder({
    ledger: {
      async record(rows) {
        const uids = [...new Set(rows.map(({ projectUid }) => projectUid))];
        transactions.push({ at: clock.monotonic(), uids });
        if (away) {
          throw new Error("away");
        }
        if (rows.some(({ projectUid }) => projectUid === wrong)) {
          throw Object.assign(new Error("violates check constraint"), { code: wrongCode });
        }
        const ends = [...ledger.values()].filter(({ state }) => state === undefined);
        const isAfterEnd = (row: BillableChangeRow) =>
          ends.some(({ projectUid, number }) => projectUid === row.projectUid && number < row.number);
        if (rows.some(isAfterEnd)) {
          throw Object.assign(new Error("is not in order"), { code: "23514" });
        }
        return rows.map((row): RecordedBillableChange => {
          const { projectUid, number } = row;
          if (row.at.getTime() > clock.now().getTime() + 60_000) {
            return { projectUid, number, outcome: "ahead" };
          }
          const key = `${projectUid}/${number}`;
          const there = ledger.get(key);
          ledger.set(key, there ?? row);
          if (there && (there.state === undefined) !== (row.state === undefined)) {
            return { projectUid, number, outcome: "differs" };
          }
          const isSame = there?.state?.instances === row.state?.instances;
          return { projectUid, number, outcome: !there ? "recorded" : isSame ? "already" : "differs" };
        });
      },
      async last(uids) {
        const rows = [...ledger.values()].filter(({ projectUid }) => uids.includes(projectUid));
        return new Map<string, NumberedChange>(rows.map((row) => [row.projectUid, row]));
      },
    },
    projects,
    endsOnly,
    owns: (namespace) => namespace !== "slipway-org-foreign",
    clock: {
      ...clock,
      monotonic: () => clock.monotonic(),
      setTimeout: (callback, ms) => clock.setTimeout(callback, ms),
      now: () => {
        if (distrusted) {
          throw new WaitingError("ClockSkew", "ahead", { requeueAfterMs: 5_000 });
        }
        return clock.now();
      },
    },
    log: silentLogger,
    onOutcome: (outcome, count) => outcomes.push(`${outcome} ${count}`),
  });
  recorder.onRecorded(({ name }: ObjectRef) => woken.push(name));
  running = recorder.run(stop.signal);
}

let version = 0;
function put(
  name: string,
  changes: BillableStatusChange[],
  { organization = "alpha", deleted = false } = {},
): Project {
  version += 1;
  const ref = { namespace: `slipway-org-${organization}`, name };
  const metadata = {
    ...ref,
    uid: `uid-${name}`,
    resourceVersion: String(version),
    ...(deleted ? { deletionTimestamp: START } : {}),
  };
  const project = { ...exampleProject(ref), metadata, status: { billing: { changes } } } as Project;
  projects.upsert(project);
  return project;
}
const entry = (number: number, instances = 1, at = START): BillableStatusChange => ({
  ...{ number, at },
  ...one,
  instances,
});
const end = (number: number): BillableStatusChange => ({ number, at: START, deleted: true });

describe("changes that statuses list", () => {
  test("are recorded once, and sent again by an operator that starts, and by no other", async () => {
    start();
    put("p1", [entry(1), entry(2, 2)]);
    await clock.advance(10_000);
    expect([ledger.size, outcomes]).toEqual([2, ["recorded 2"]]);
    put("p1", [entry(1), entry(2, 2), entry(3)]);
    await clock.advance(10_000);
    expect(outcomes).toEqual(["recorded 2", "recorded 1"]);
    await clock.advance(3_600_000);
    expect(transactions).toHaveLength(2);
    stop.abort();
    await running;
    start();
    await clock.advance(10_000);
    expect(outcomes.slice(2)).toEqual(["already 3"]);
  });

  // Shows: docs/adr/0032-recorded-changes.md#decision: Batches of 500, at most one transaction in a second
  test("of 10,000 projects are recorded with at most one transaction in a second", async () => {
    for (let index = 0; index < 10_000; index += 1) {
      put(`p${index}`, [entry(1)]);
    }
    start();
    await clock.advance(30_000);
    expect(ledger.size).toBe(10_000);
    expect(transactions).toHaveLength(20);
    const times = transactions.map(({ at }) => at);
    expect(Math.min(...times.slice(1).map((at, index) => at - (times[index] ?? 0)))).toBeGreaterThanOrEqual(
      1_000,
    );
    await clock.advance(7_200_000);
    expect(transactions).toHaveLength(20);
  });

  // Shows: docs/adr/0032-recorded-changes.md#decision: of organizations with many changes one project in turn
  test("of an organization with many keep no other waiting, and ends come first", async () => {
    for (let index = 0; index < 600; index += 1) {
      put(`a${index}`, [entry(1), entry(2), entry(3)]);
    }
    put("b1", [entry(1)], { organization: "beta" });
    put("gone1", [end(2)], { deleted: true });
    put("gone2", [end(2)], { deleted: true });
    start();
    await clock.advance(1);
    const first = transactions[0]?.uids ?? [];
    expect(first.slice(0, 2).toSorted()).toEqual(["uid-gone1", "uid-gone2"]);
    expect(first.slice(2, 8).filter((uid) => uid === "uid-b1")).toHaveLength(1);
    expect(woken).toEqual(["gone1", "gone2"]);
  });

  test("of another shard, and outside of organizations, are not recorded", async () => {
    start();
    put("p1", [entry(1)], { organization: "foreign" });
    await clock.advance(60_000);
    expect(transactions).toEqual([]);
  });

  test("are recorded once the ledger is there again, and not by a storm", async () => {
    away = true;
    start();
    put("p1", [entry(1)]);
    await clock.advance(600_000);
    expect(transactions.length).toBeLessThanOrEqual(121);
    away = false;
    await clock.advance(10_000);
    expect(outcomes).toEqual(["recorded 1"]);
  });

  test.each([
    ["refuses", "23514"],
    ["takes too long for", "57014"],
    ["does not take for a lock", "55P03"],
  ])("that the ledger %s keep back no other project's, and are tried again", async (_, code) => {
    [wrong, wrongCode] = ["uid-p7", code];
    for (let index = 0; index < 20; index += 1) {
      put(`p${index}`, [entry(1)]);
    }
    start();
    await clock.advance(30_000);
    expect(ledger.size).toBe(19);
    // What takes too long may do so because of another process, unless it repeats.
    expect(outcomes.includes("refused 1")).toBe(code === "23514");
    const before = transactions.length;
    await clock.advance(600_000);
    expect(transactions.length - before).toBeLessThanOrEqual(10);
    expect(outcomes).toContain("refused 1");
    wrong = undefined;
    await clock.advance(120_000);
    expect(ledger.size).toBe(20);
  });

  test("that are ahead of the ledger's time are recorded when it has come", async () => {
    start();
    put("p1", [entry(1), entry(2, 2, "2026-03-02T10:05:00Z")]);
    await clock.advance(120_000);
    expect(ledger.size).toBe(1);
    await clock.advance(300_000);
    expect(ledger.size).toBe(2);
  });
});

describe("a reconcile", () => {
  const statusOf = (project: Project) => structuredClone(project.status) as ProjectStatus;

  test("adds a change, and leaves out what was recorded", async () => {
    start();
    const project = put("p1", [entry(1)]);
    await clock.advance(5_000);
    const status = statusOf(project);
    expect(recorder.report(project, status, { ...one, instances: 2 })).toBeUndefined();
    expect(status.billing?.changes).toEqual([entry(2, 2, "2026-03-02T10:00:05.000Z")]);
  });

  test("whose clock may not be trusted adds none, and is repeated", () => {
    start();
    const project = put("p1", [entry(1)]);
    const status = statusOf(project);
    distrusted = true;
    expect(recorder.report(project, status, { ...one, instances: 2 })).toBe(5_000);
    expect(recorder.report(project, status, one)).toBeUndefined();
    expect(status.billing?.changes).toEqual([entry(1)]);
  });

  test("of a deletion waits until its end is recorded, where a history has begun", async () => {
    start();
    const project = put("p1", [entry(1)], { deleted: true });
    const status = statusOf(project);
    recorder.reportDeletion(project, status);
    expect(status.billing?.changes.at(-1)).toEqual({ ...end(2), at: new Date(START).toISOString() });
    expect(recorder.hasEnded(project)).toBe(false);
    away = true;
    const ended = put("p1", status.billing?.changes ?? [], { deleted: true });
    await clock.advance(20_000);
    expect(recorder.hasEnded(ended)).toBe(false);
    away = false;
    await clock.advance(20_000);
    expect([recorder.hasEnded(ended), woken]).toEqual([true, ["p1"]]);
    const unmetered = { ...project, status: {} } as Project;
    recorder.reportDeletion(unmetered, unmetered.status ?? {});
    expect([recorder.hasEnded(unmetered), unmetered.status]).toEqual([true, {}]);
  });

  // Shows: docs/billing.md#metering: the end of a project whose history has begun is recorded all the same
  test("of a deletion is reported and recorded also where metering is turned off, and nothing else is", async () => {
    start({ endsOnly: true });
    const project = put("p1", [entry(1)]);
    const status = statusOf(project);
    expect(recorder.report(project, status, { ...one, instances: 2 })).toBeUndefined();
    expect(status.billing?.changes).toEqual([entry(1)]);
    await clock.advance(60_000);
    expect(transactions).toEqual([]);
    const deleted = put("p1", [entry(1)], { deleted: true });
    recorder.reportDeletion(deleted, status);
    const ended = put("p1", status.billing?.changes ?? [], { deleted: true });
    expect(recorder.hasEnded(ended)).toBe(false);
    await clock.advance(5_000);
    expect(recorder.hasEnded(ended)).toBe(true);
    expect(ledger.get("uid-p1/2")?.state).toBeUndefined();
  });

  test("of a project of which the ledger has another history goes on after that", async () => {
    start();
    put("p1", [entry(1), entry(2), entry(3, 3)]);
    await clock.advance(5_000);
    stop.abort();
    await running;
    const back = put("p1", [entry(1), entry(2, 9)]);
    start();
    await clock.advance(5_000);
    expect([outcomes.at(-1), woken]).toEqual(["differs 1", ["p1"]]);
    const status = statusOf(back);
    recorder.report(back, status, { ...one, instances: 9 });
    expect(status.billing?.changes.map(({ number, instances }) => [number, instances])).toEqual([[4, 9]]);
  });

  // Shows: docs/billing.md#metering: its history goes on after what the ledger has, from when it was observed
  test("of a project whose status lost its list goes on with what was observed since, once", async () => {
    start();
    put("p1", [entry(1), entry(2, 2)]);
    await clock.advance(5_000);
    const lost = put("p1", []);
    const status = statusOf(lost);
    stop.abort();
    await running;
    start();
    await clock.advance(60_000);
    recorder.report(lost, status, { ...one, instances: 3 });
    const observed = status.billing?.changes[0]?.at;
    expect(status.billing?.changes).toEqual([entry(1, 3, "2026-03-02T10:01:05.000Z")]);
    outcomes = [];
    const again = put("p1", status.billing?.changes ?? []);
    await clock.advance(300_000);
    // Killed before the status was written: nothing but what it lists is known.
    stop.abort();
    await running;
    start();
    await clock.advance(5_000);
    expect([outcomes, ledger.size]).toEqual([["renumbered 1", "renumbered 1"], 2]);
    recorder.report(again, status, { ...one, instances: 3 });
    expect(status.billing?.changes).toEqual([entry(3, 3, observed)]);
    const renumbered = put("p1", status.billing?.changes ?? []);
    expect(recorder.hasPending(renumbered)).toBe(true);
    await clock.advance(5_000);
    recorder.report(renumbered, status, { ...one, instances: 4 });
    expect(status.billing?.changes.map(({ number, instances }) => [number, instances])).toEqual([[4, 4]]);
    expect(ledger.get("uid-p1/3")).toMatchObject({ at: new Date(observed ?? ""), state: { instances: 3 } });
    expect(outcomes).toEqual(["renumbered 1", "renumbered 1", "recorded 1"]);
  });

  test("of a status that lost its list, and has more than the ledger has, goes on with all of it", async () => {
    start();
    put("p1", [entry(1)]);
    await clock.advance(5_000);
    stop.abort();
    await running;
    outcomes = [];
    const times = ["10:00:05", "10:00:06", "10:00:07"].map((time) => `2026-03-02T${time}.000Z`);
    const lost = put(
      "p1",
      times.map((at, index) => entry(index + 1, index + 5, at)),
    );
    start();
    await clock.advance(5_000);
    expect([outcomes, ledger.size]).toEqual([["renumbered 3"], 1]);
    const status = statusOf(lost);
    recorder.report(lost, status, { ...one, instances: 7 });
    expect(status.billing?.changes).toEqual(times.map((at, index) => entry(index + 2, index + 5, at)));
  });

  // Shows: docs/operations/alerts.md#slipwaybillablechangesnotrecorded: until it is deleted, which does not wait
  test.each([
    ["in its place", [entry(3), entry(4, 2)]],
    ["before a change", [entry(3), entry(4, 2), entry(5)]],
    ["before the only change", [entry(5)]],
  ])(
    "of a project whose end the ledger has %s is reported, and its deletion does not wait",
    async (_, changes) => {
      start();
      put("p1", [entry(1), entry(2), entry(3), end(4)], { deleted: true });
      await clock.advance(5_000);
      stop.abort();
      await running;
      outcomes = [];
      const back = put("p1", changes);
      start();
      await clock.advance(300_000);
      expect(outcomes.filter((outcome) => outcome !== "differs 1")).toEqual([
        ...(changes.length === 2 ? ["already 1"] : []),
        "ended 1",
      ]);
      expect(recorder.hasPending(back)).toBe(false);
      const deleted = put("p1", changes, { deleted: true });
      recorder.reportDeletion(deleted, statusOf(deleted));
      expect(recorder.hasEnded(deleted)).toBe(true);
    },
  );

  test("of a deletion waits for its own end, where the ledger has another change of that number", async () => {
    start();
    put(
      "p1",
      [1, 2, 3, 4, 5, 6].map((number) => entry(number, number)),
    );
    await clock.advance(5_000);
    stop.abort();
    await running;
    const back = put("p1", [entry(1, 1), end(2)], { deleted: true });
    start();
    await clock.advance(5_000);
    expect(recorder.hasEnded(back)).toBe(false);
    const status = statusOf(back);
    recorder.reportDeletion(back, status);
    expect(status.billing?.changes.map(({ number, deleted }) => [number, deleted])).toEqual([[7, true]]);
    const ended = put("p1", status.billing?.changes ?? [], { deleted: true });
    expect(recorder.hasEnded(ended)).toBe(false);
    await clock.advance(5_000);
    expect(recorder.hasEnded(ended)).toBe(true);
    expect(ledger.get("uid-p1/7")?.state).toBeUndefined();
  });
});
