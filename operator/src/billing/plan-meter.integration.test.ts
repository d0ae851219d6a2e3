import { Store } from "@slipway/controller-runtime";
import { type BillableHistory, type PriceList, type Project, planCharges } from "@slipway/crds";
import {
  auditBilling,
  type BillableChangeRow,
  billableHistories,
  connectLedger,
  type Ledger,
  listPrices,
  migrateToLatest,
  recordBillableChanges,
  recordPrices,
} from "@slipway/ledger";
import { type Clock, silentLogger, systemClock } from "@slipway/process";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import { ledgerMetering } from "./metering.ts";
import { METER_LAG_MS, PlanMeter } from "./plan-meter.ts";

const HOUR = 3_600_000;
const BEGIN = Date.parse("2026-01-31T22:10:00.123Z");
const prices: PriceList = {
  from: Date.now(),
  gbHour: "0.1",
  plans: {
    basic: { hourly: "3", monthly: "2160", yearly: "25920", refund: "none" },
    premium: { hourly: "8", monthly: "5760", yearly: "69120", refund: "prorated" },
    free: { hourly: "0", monthly: "0", yearly: "0", refund: "none" },
  },
};

let postgres: TestPostgres;
let ledger: Ledger;

beforeAll(async () => {
  postgres = await startPostgres();
  ledger = connectLedger({ url: postgres.url, applicationName: "test", maxConnections: 4 });
  await migrateToLatest(ledger);
  await recordPrices(ledger, prices);
});
afterAll(async () => {
  await ledger?.destroy();
  await postgres?.stop();
});

function change(
  projectUid: string,
  number: number,
  hours: number,
  state: object | undefined,
): BillableChangeRow {
  const usual = {
    plan: "basic",
    paymentMode: "hourly",
    renews: true,
    instances: 1,
    paused: false,
    billedGb: 0,
  } as const;
  return {
    organizationId: "alpha",
    projectId: projectUid,
    projectUid,
    number,
    at: new Date(BEGIN + Math.round(hours * HOUR)),
    state: state && { ...usual, ...state },
  };
}

const few: readonly (readonly BillableChangeRow[])[] = [
  [
    change("hourly", 1, 0, { billedGb: 5 }),
    change("hourly", 2, 2.5, { instances: 3, billedGb: 5 }),
    change("hourly", 3, 4.2, { plan: "premium", instances: 2, billedGb: 7 }),
    change("hourly", 4, 6, { plan: "premium", instances: 2, paused: true, billedGb: 7 }),
    change("hourly", 5, 9.9, { plan: "premium", instances: 1, billedGb: 7 }),
    change("hourly", 6, 14.4, undefined),
  ],
  [
    change("contract", 1, 1, { plan: "premium", paymentMode: "monthly" }),
    change("contract", 2, 300, { paymentMode: "monthly" }),
    change("contract", 3, 340, { plan: "premium", paymentMode: "yearly", instances: 2 }),
    change("contract", 4, 900, undefined),
  ],
  [change("free", 1, 0, { plan: "free" })],
  [change("open", 1, 5, { billedGb: 1 })],
  [
    change("late", 1, 0, { billedGb: 5 }),
    change("late", 2, 2.5, { plan: "premium", paymentMode: "monthly", instances: 2 }),
    change("late", 3, 5.2, { plan: "basic", paymentMode: "monthly", instances: 1 }),
    change("late", 4, 10.7, undefined),
  ],
];

/** Of more changes than are read together, some of them within one hour. */
const many: readonly BillableChangeRow[] = Array.from({ length: 1_300 }, (_, index) =>
  change("many", index + 1, index < 600 ? index / 1_000 : index / 100, {
    plan: index % 7 === 0 ? "premium" : "basic",
    paymentMode: index % 400 > 300 ? "monthly" : "hourly",
    instances: index % 5,
    billedGb: index % 3,
  }),
);

/** After how many hours a change is in the ledger that comes late. */
const lateness = new Map([
  ["late/2", 6],
  ["late/4", 300],
]);
const histories = [...few, many];
const arrivalOf = ({ projectUid, number, at }: BillableChangeRow): number =>
  at.getTime() + (lateness.get(`${projectUid}/${number}`) ?? 0) * HOUR;

/** What the cluster has of a project at an instant. */
function projectAt(changes: readonly BillableChangeRow[], now: number): Project | undefined {
  const last = changes.findLast((one) => arrivalOf(one) <= now);
  if (last?.state === undefined) {
    return undefined;
  }
  const ref = { namespace: "slipway-org-alpha", name: last.projectId };
  const listed = { number: last.number, at: last.at.toISOString(), ...last.state };
  return {
    ...exampleProject(ref),
    metadata: { ...ref, uid: last.projectUid, resourceVersion: String(now) },
    status: { billing: { changes: [listed] } },
  } as Project;
}

interface Stored {
  key: string;
  amount: string;
}

async function stored(uid: string): Promise<Stored[]> {
  const { rows } = await sql<Stored>`
    select key, trim_scale(amount)::text as amount from plan_charges where project_uid = ${uid} order by key`.execute(
    ledger,
  );
  return rows;
}

/** What is recorded of each fact in all; facts of which nothing is left are not among them. */
async function nets(uid: string): Promise<Stored[]> {
  const { rows } = await sql<Stored>`
    select coalesce(adjusts, key) as key, trim_scale(sum(case kind when 'credit' then -amount else amount end))::text as amount
    from plan_charges where project_uid = ${uid} group by 1
    having sum(case kind when 'credit' then -amount else amount end) <> 0 order by 1`.execute(ledger);
  return rows;
}

async function computed(uid: string, until: number): Promise<Stored[]> {
  const [history] = await billableHistories(ledger, [uid]);
  return planCharges(history as BillableHistory, await listPrices(ledger), { until })
    .filter(({ finalAt }) => finalAt < until)
    .map(({ key, amount }) => ({ key, amount }))
    .sort((a, b) => (a.key < b.key ? -1 : 1));
}

// Shows: docs/billing.md#metering: each charge is recorded once, ten minutes after it is final
// Shows: docs/billing.md#late-changes: each is recorded once, in the transaction
test("what two meters record, of which one is killed and both are away for days, is what histories cost", async () => {
  let now = BEGIN;
  const clock: Clock = {
    now: () => new Date(now),
    monotonic: () => now,
    // Pauses are none.
    setTimeout: (callback) => systemClock.setTimeout(callback, 0),
  };
  const projects = new Store<Project>({ clock });
  const outcomes = new Map<string, number>();
  let calls = 0;
  const meterOf = (isMortal: boolean) => {
    const own = ledgerMetering(ledger).charges;
    const mortally = async <T>(write: () => Promise<T>): Promise<T> => {
      calls += 1;
      if (isMortal && calls % 5 === 0) {
        throw new Error("killed before");
      }
      const result = await write();
      if (isMortal && calls % 7 === 0) {
        throw new Error("killed after");
      }
      return result;
    };
    return new PlanMeter({
      ledger: {
        ...own,
        record: (windows) => mortally(() => own.record(windows)),
        adjust: (project) => mortally(() => own.adjust(project)),
      },
      projects,
      recorder: { hasPending: () => false },
      owns: () => true,
      clock,
      log: silentLogger,
      onOutcome: (outcome, count) => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + count),
    });
  };
  const { signal } = new AbortController();
  const meters = [meterOf(true), meterOf(false)];
  let recordedUntil = BEGIN - 1;
  const hourly = Array.from({ length: 16 }, (_, hour) => hour + 0.3);
  for (const hours of [...hourly, 200, 350, 351, 890, 1_100, 1_100.5]) {
    now = BEGIN + Math.round(hours * HOUR);
    const isNew = (one: BillableChangeRow) => arrivalOf(one) <= now && arrivalOf(one) > recordedUntil;
    await recordBillableChanges(ledger, histories.flat().filter(isNew));
    recordedUntil = now;
    for (const changes of histories) {
      const project = projectAt(changes, now);
      const before = projects.get("slipway-org-alpha", changes[0]?.projectId ?? "");
      if (project) {
        projects.upsert(project);
      } else if (before) {
        projects.remove({ ...before, metadata: { ...before.metadata, resourceVersion: String(now) } });
      }
    }
    let isMore = true;
    for (let round = 0; isMore && round < 40; round += 1) {
      const ends = await Promise.all(
        meters.map((meter, index) =>
          meter.meter(signal).catch(() => {
            meters[index] = meterOf(true);
            return true;
          }),
        ),
      );
      isMore = ends.some(Boolean);
    }
    expect(isMore).toBe(false);
    for (const uid of ["hourly", "contract", "open"]) {
      const [final, known] = [await computed(uid, now - METER_LAG_MS).catch(() => []), await stored(uid)];
      // None too early.
      expect(known.filter(({ key }) => !final.some((one) => one.key === key))).toEqual([]);
    }
  }
  for (const uid of ["hourly", "contract", "many"]) {
    expect(await stored(uid)).toEqual(await computed(uid, now - METER_LAG_MS));
  }
  expect((await stored("hourly")).length).toBeGreaterThan(20);
  const kinds = (await stored("contract")).map(({ key }) => key.split("/")[1]);
  expect([...new Set(kinds)].sort()).toEqual(["credit", "term"]);
  expect(await stored("free")).toEqual([]);
  expect((await stored("open")).length).toBeGreaterThan(2_100);
  const late = (await computed("late", now - METER_LAG_MS)).map(({ key, amount }) => ({
    key,
    amount: key.includes("/credit/") ? `-${amount}` : amount,
  }));
  expect(await nets("late")).toEqual(late);
  expect((await stored("late")).length).toBeGreaterThan(late.length);
  expect([outcomes.get("differs"), outcomes.get("refused")]).toEqual([undefined, undefined]);
  const left = await ledgerMetering(ledger).charges.toMeter();
  expect(left.map(({ projectUid }) => projectUid).sort()).toEqual(["free", "many", "open"]);
  // What is read does not grow with the history.
  const recent = await ledgerMetering(ledger).charges.recent(["many", "open"], 1_000);
  expect(recent.map(({ projectUid, changes }) => [projectUid, changes.length])).toEqual([
    ["many", 0],
    ["open", 0],
  ]);
  // With the rows that late changes adjust.
  const { findings, planCharges: compared } = await auditBilling(ledger);
  expect(findings.kept).toEqual([]);
  expect(compared).toBeGreaterThan(2_100);
}, 120_000);
