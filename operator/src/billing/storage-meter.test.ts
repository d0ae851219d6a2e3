import { Store } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import type { RecordedStorageHour, StorageHour } from "@slipway/ledger";
import { silentLogger } from "@slipway/process";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { exampleJob } from "../../../test/kit/operator/projects.ts";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { StorageMeter } from "./storage-meter.ts";

const HOUR = 3_600_000;
const signal = new AbortController().signal;

let clock: FakeClock;
let projects: Store<Project>;
let meter: StorageMeter;
let stop: AbortController;
let running: Promise<void>;
/** What the ledger has, by project uid and hour. */
let ledger: Map<string, StorageHour>;
let calls: { record: number; last: number };
let outcomes: string[];
let away: boolean;
let wrong: string | undefined;
/** So many hours of the wrong one, from its first, are refused. */
let wrongHours: number;
let price: string;

beforeEach(() => {
  clock = new FakeClock("2026-01-31T00:00:00Z");
  projects = new Store<Project>({ clock });
  ledger = new Map();
  calls = { record: 0, last: 0 };
  [outcomes, away, wrong, price] = [[], false, undefined, "0.05"];
  wrongHours = Number.POSITIVE_INFINITY;
});
afterEach(async () => {
  stop?.abort();
  await running;
});

/** A new operator: it knows nothing but the cluster and the ledger. */
function start(): void {
  stop = new AbortController();
  meter = new StorageMeter({
    ledger: {
      async record(rows) {
        calls.record += 1;
        if (away) {
          throw new Error("away");
        }
        if (rows.some((row) => row.project_id === wrong && row.hour_index < wrongHours)) {
          throw Object.assign(new Error("violates check constraint"), { code: "23514" });
        }
        return rows.map((row): RecordedStorageHour => {
          const { project_uid, hour_index } = row;
          const key = `${project_uid}/${hour_index}`;
          const there = ledger.get(key);
          if (!there) {
            ledger.set(key, row);
          }
          const outcome = !there ? "recorded" : there.amount === row.amount ? "already" : "differs";
          return { project_uid, hour_index, outcome };
        });
      },
      async last({ projectUid }) {
        calls.last += 1;
        if (away) {
          throw new Error("away");
        }
        const hours = [...ledger.values()].filter(({ project_uid }) => project_uid === projectUid);
        return hours.length === 0 ? undefined : Math.max(...hours.map(({ hour_index }) => hour_index));
      },
    },
    projects,
    owns: (namespace) => namespace !== "slipway-org-foreign",
    catalog: () => ({
      storagePlans: [
        { storage: "ephemeral", persistent: false, prices: { hourly: "9", monthly: "9", yearly: "9" } },
        { storage: "ssd", persistent: true, prices: { hourly: price, monthly: "36", yearly: "432" } },
      ],
    }),
    clock,
    log: silentLogger,
    onRecorded: (outcome, hours) => outcomes.push(`${outcome} ${hours}`),
  });
  running = meter.run(stop.signal);
}

/** A project as the cluster has it, made now and accepted. */
function project(name: string, change: Partial<Project> & { accepted?: boolean; at?: Date } = {}): Project {
  const { accepted = true, at = clock.now(), spec, metadata } = change;
  const ref = { namespace: "slipway-org-alpha", name };
  const made = exampleJob(ref, { storage: { persistent: true, capacity: 10 }, ...spec });
  const own = { ...ref, uid: `uid-${name}`, creationTimestamp: at.toISOString(), ...metadata };
  const status = { type: "Accepted", status: accepted ? "True" : "False", reason: "Accepted" } as const;
  const conditions = [
    { ...status, message: "", lastTransitionTime: at.toISOString(), observedGeneration: 1 },
  ];
  return { ...made, metadata: own, status: { observedGeneration: 1, conditions } } as Project;
}
let version = 0;
const put = (object: Project) => {
  version += 1;
  projects.upsert({ ...object, metadata: { ...object.metadata, resourceVersion: String(version) } });
};
const hours = (name = "p1") =>
  [...ledger.values()].filter(({ project_id }) => project_id === name).map(({ hour_index }) => hour_index);

describe("a job with persistent storage", () => {
  test("owes every started hour from its creation, exactly, each in the cycle that it begins in", async () => {
    start();
    put(project("p1"));
    await clock.advance(1);
    expect([...ledger.values()]).toEqual([
      {
        organization_id: "alpha",
        project_id: "p1",
        project_uid: "uid-p1",
        hour_index: 0,
        from: new Date("2026-01-31T00:00:00Z"),
        gb: 10,
        price_per_gb_hour: "0.05",
        amount: "0.5",
      },
    ]);
    await clock.advance(HOUR - 2);
    expect(hours()).toEqual([0]);
    await clock.advance(1);
    expect(hours()).toEqual([0, 1]);
    await clock.advance(23 * HOUR);
    expect(ledger.get("uid-p1/24")?.from).toEqual(new Date("2026-02-01T00:00:00Z"));
  });

  test("of another shard is charged by that one", async () => {
    start();
    put(project("p1", { metadata: { namespace: "slipway-org-foreign" } as Project["metadata"] }));
    put(project("p2"));
    await clock.advance(3 * HOUR);
    expect([hours("p1"), hours("p2")]).toEqual([[], [0, 1, 2, 3]]);
    expect(calls.last).toBe(1);
  });

  test("queries the ledger once, and then only for each hour that is due", async () => {
    start();
    put(project("p1"));
    await clock.advance(HOUR / 2);
    put(project("p2"));
    await clock.advance(10 * HOUR);
    expect(calls.last).toBe(2);
    expect(calls.record).toBe(hours("p1").length + hours("p2").length);
    expect(outcomes.every((outcome) => outcome === "recorded 1")).toBe(true);
  });

  // Shows: docs/jobs.md#billing: persistent storage costs GB-hours while the project exists, paused or
  test("pays the price of the hour, and for the size of the hour; what is paused pays, too", async () => {
    start();
    put(project("p1"));
    await clock.advance(1);
    price = "0.1";
    const at = new Date("2026-01-31T00:00:00Z");
    const storage = { persistent: true, capacity: 20 };
    put(project("p1", { at, spec: { storage, paused: true } as Project["spec"] }));
    await clock.advance(HOUR);
    expect([...ledger.values()].map(({ amount }) => amount)).toEqual(["0.5", "2"]);
  });

  test("owes what an outage delayed, in batches, and nothing twice after a restart", async () => {
    const at = new Date(clock.now().getTime() - 1_700 * HOUR);
    start();
    put(project("p1", { at }));
    await clock.advance(1);
    expect(hours()).toEqual(Array.from({ length: 1_701 }, (_, index) => index));
    expect(calls.record).toBe(4);
    stop.abort();
    await running;
    const before = new Map(ledger);
    price = "7";
    start();
    await clock.advance(1);
    expect(ledger).toEqual(before);
    expect(outcomes.filter((outcome) => !outcome.startsWith("recorded"))).toEqual([]);
  });

  test("is charged late when the ledger was unavailable", async () => {
    start();
    put(project("p1"));
    await clock.advance(1);
    away = true;
    await clock.advance(5 * HOUR);
    expect(hours()).toEqual([0]);
    // Some calls a minute, not a storm.
    expect(calls.record).toBeLessThan(5 * 60 * 5);
    away = false;
    await clock.advance(20_000);
    expect(hours()).toEqual([0, 1, 2, 3, 4, 5]);
  });

  test("is not blocked by another one's row that the ledger refuses", async () => {
    wrong = "bad";
    start();
    put(project("bad"));
    put(project("p1"));
    await clock.advance(2 * HOUR);
    expect(hours()).toEqual([0, 1, 2]);
    expect(calls.record).toBeLessThan(4 * 60 * 2 * 3);
  });

  test.each(["before", "after"])(
    "is not held up by many such rows of one %s it, and none of those is passed over",
    async (where) => {
      [wrong, wrongHours] = ["bad", 1];
      start();
      const at = new Date(clock.now().getTime() - 1_200 * HOUR);
      if (where === "before") {
        put(project("bad", { at }));
      }
      put(project("p1"));
      if (where === "after") {
        put(project("bad", { at }));
      }
      await clock.advance(2 * HOUR);
      expect(hours()).toEqual([0, 1, 2]);
      expect(hours("bad")).toEqual([]);
      expect(outcomes).toContain("refused 500");
      wrong = undefined;
      await clock.advance(60_000);
      expect(hours("bad")).toHaveLength(1_203);
    },
  );

  test("owes nothing while it is not accepted, and all from its creation once it is", async () => {
    start();
    const at = clock.now();
    put(project("p1", { accepted: false }));
    await clock.advance(2 * HOUR);
    expect([hours(), calls.last]).toEqual([[], 1]);
    put(project("p1", { at }));
    await clock.advance(1);
    expect(hours()).toEqual([0, 1, 2]);
    // Taken on once, it pays on.
    put(project("p1", { at, accepted: false }));
    await clock.advance(HOUR);
    expect(hours()).toEqual([0, 1, 2, 3]);
  });
});

test("other projects, and jobs that keep nothing, owe nothing", async () => {
  start();
  put(project("ephemeral", { spec: { storage: { persistent: false, capacity: 10 } } as Project["spec"] }));
  put(project("http", { spec: { type: "http" } as Project["spec"] }));
  put(project("elsewhere", { metadata: { namespace: "default" } as Project["metadata"] }));
  await clock.advance(3 * HOUR);
  expect([ledger.size, calls]).toEqual([0, { record: 0, last: 0 }]);
});

describe("deletion", () => {
  const deleted = (at: Date, minutes: number): Project =>
    project("p1", {
      at,
      metadata: {
        deletionTimestamp: new Date(at.getTime() + minutes * 60_000).toISOString(),
      } as Project["metadata"],
    });

  test("ends the metering with the hour that had begun by then, however late it is closed", async () => {
    const at = clock.now();
    start();
    put(project("p1"));
    await clock.advance(1);
    const gone = deleted(at, 130);
    put(gone);
    away = true;
    await clock.advance(6 * HOUR);
    expect(await meter.close(gone, signal)).toBe(false);
    away = false;
    expect(await meter.close(gone, signal)).toBe(true);
    expect(hours()).toEqual([0, 1, 2]);
    await clock.advance(2 * HOUR);
    expect(hours()).toEqual([0, 1, 2]);
    const asked = calls.record;
    expect(await meter.close(gone, signal)).toBe(true);
    expect(calls.record).toBe(asked);
  });

  test("by an operator that has just started charges what is missing", async () => {
    const at = new Date(clock.now().getTime() - 5 * HOUR);
    start();
    expect(await meter.close(deleted(at, 61), signal)).toBe(true);
    expect(hours()).toEqual([0, 1]);
  });

  test("of a project that was never accepted, or keeps nothing, waits for nothing", async () => {
    start();
    const gone = { metadata: { deletionTimestamp: clock.now().toISOString() } as Project["metadata"] };
    expect(await meter.close(project("p1", { ...gone, accepted: false }), signal)).toBe(true);
    const spec = { storage: { persistent: false, capacity: 1 } } as Project["spec"];
    expect(await meter.close(project("p2", { ...gone, spec }), signal)).toBe(true);
    expect(ledger.size).toBe(0);
  });
});
