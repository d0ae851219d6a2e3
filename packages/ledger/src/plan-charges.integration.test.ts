import type { PlanCharge, PriceList } from "@slipway/crds";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { instanceHour } from "../../../test/kit/ledger/charged-rows.ts";
import { startJobLedger, type TestJobLedger } from "../../../test/kit/ledger/job-ledger.ts";
import {
  listPrices,
  type MeteredWindow,
  meteredHistories,
  projectsToMeter,
  recordBillableChanges,
  recordedPlanCharges,
  recordPlanAdjustments,
  recordPlanCharges,
  recordPrices,
} from "./index.ts";

let server: TestJobLedger;

beforeAll(async () => {
  server = await startJobLedger();
});
afterAll(() => server?.stop());
beforeEach(() => server.empty());

const HOUR = 3_600_000;
const BEGIN = Date.UTC(2026, 0, 31, 22);
const project = { organizationId: "acme", projectId: "shop", projectUid: "u1" };

const hour = (index: number, facts?: Partial<PlanCharge>): PlanCharge => instanceHour(BEGIN, index, facts);
const window = (charges: readonly PlanCharge[], facts: Partial<MeteredWindow> = {}): MeteredWindow => ({
  ...project,
  until: new Date(BEGIN + charges.length * HOUR),
  ended: false,
  arrivals: 1,
  charges,
  ...facts,
});
const hours = (count: number) => Array.from({ length: count }, (_, index) => hour(index));

async function sums(): Promise<string[]> {
  const { rows } = await sql<{ text: string }>`
    select concat_ws(' ', cycle_start, count(*), trim_scale(sum(amount))) as text
    from plan_charges group by cycle_start order by cycle_start`.execute(server.ledger);
  return rows.map(({ text }) => text);
}

describe("charges of plans", () => {
  test("are recorded once, in the cycle in which they begin, by several processes", async () => {
    const pools = [server.ledger, server.connect(), server.connect()];
    const answers = await Promise.all(
      Array.from({ length: 9 }, (_, index) =>
        recordPlanCharges(pools[index % 3] as typeof server.ledger, [window(hours(5))]),
      ),
    );
    expect(answers.reduce((sum, { recorded }) => sum + recorded, 0)).toBe(5);
    expect(answers.flatMap(({ differing }) => differing)).toEqual([]);
    expect(await sums()).toEqual(["2026-01-01 2 6", "2026-02-01 3 9"]);
  });

  test("that are recorded with another amount are reported, and the first ones stay", async () => {
    await recordPlanCharges(server.ledger, [window(hours(2))]);
    const other = hour(1, { price: "4", amount: "4" });
    expect(await recordPlanCharges(server.ledger, [window([other])])).toEqual({
      recorded: 0,
      differing: [other.key],
      stale: [],
    });
    expect(await sums()).toEqual(["2026-01-01 2 6"]);
  });

  test("and up to when they are known are recorded together, or not at all", async () => {
    const at = new Date(BEGIN);
    await recordBillableChanges(server.ledger, [{ ...project, number: 1, at, state: undefined }]);
    expect(await projectsToMeter(server.ledger)).toEqual([
      { ...project, until: undefined, arrivals: 1, late: undefined },
    ]);
    const broken = window([hour(0), hour(1, { amount: "2" })]);
    await expect(recordPlanCharges(server.ledger, [broken])).rejects.toMatchObject({
      constraint: "amount_of_price",
    });
    expect(await projectsToMeter(server.ledger)).toEqual([
      { ...project, until: undefined, arrivals: 1, late: undefined },
    ]);
    await recordPlanCharges(server.ledger, [window(hours(2))]);
    const until = new Date(BEGIN + 2 * HOUR);
    expect(await projectsToMeter(server.ledger)).toEqual([
      { ...project, until, arrivals: 1, late: undefined },
    ]);
    // One that is behind takes nothing back.
    await recordPlanCharges(server.ledger, [window(hours(1))]);
    expect(await projectsToMeter(server.ledger)).toEqual([
      { ...project, until, arrivals: 1, late: undefined },
    ]);
    await recordPlanCharges(server.ledger, [window([], { until, ended: true })]);
    expect(await projectsToMeter(server.ledger)).toEqual([]);
  });

  test.each([
    ["of another project", { key: "u2/instance_hour/0/0" }, "key_of_fact"],
    ["that are more than the price", { amount: "30" }, "amount_of_price"],
    ["that end before they begin", { to: BEGIN }, "times_in_order"],
    ["that are not final yet", { finalAt: Date.now() + HOUR, to: Date.now() + HOUR }, "nothing_ahead"],
  ])("%s are refused", async (_what, facts, constraint) => {
    const refused = recordPlanCharges(server.ledger, [window([hour(0, facts)])]);
    await expect(refused).rejects.toMatchObject({ code: "23514", constraint });
  });

  test.each([
    "update plan_charges set amount = 1",
    "delete from plan_charges",
    "truncate plan_charges",
    "update price_lists set gb_hour = '0'",
    "delete from price_lists",
  ])("and prices stay as they are: %s", async (statement) => {
    await recordPlanCharges(server.ledger, [window(hours(1))]);
    await recordPrices(server.ledger, list(Date.now()));
    await expect(sql.raw(statement).execute(server.ledger)).rejects.toThrow("append-only");
  });
});

describe("a change that comes after charges of its time", () => {
  const change = (number: number, hours: number) => ({
    ...project,
    number,
    at: new Date(BEGIN + hours * HOUR),
    state: {
      plan: "basic",
      paymentMode: "hourly",
      renews: true,
      instances: 1,
      paused: false,
      billedGb: 0,
    } as const,
  });
  const outcomes = async (...changes: ReturnType<typeof change>[]) =>
    (await recordBillableChanges(server.ledger, changes)).map(({ outcome }) => outcome);

  test("is marked as late, and its project is found until it is adjusted", async () => {
    expect(await outcomes(change(1, 0))).toEqual(["recorded"]);
    await recordPlanCharges(server.ledger, [window(hours(2), { arrivals: 1 })]);
    expect(await outcomes(change(3, 2), change(2, 1.5))).toEqual(["recorded", "late"]);
    expect(await outcomes(change(2, 1.5))).toEqual(["already"]);
    const [found] = await projectsToMeter(server.ledger);
    expect(found).toMatchObject({ arrivals: 3, late: { from: change(2, 1.5).at, arrival: 2, pass: 0 } });
    const { rows } = await sql`select number from billable_changes where late`.execute(server.ledger);
    expect(rows).toEqual([{ number: 2 }]);
  });

  test("has windows that were computed without it left out, and no others", async () => {
    await outcomes(change(1, 0));
    const before = window(hours(2), { arrivals: 1 });
    await outcomes(change(2, 1.5));
    expect(await recordPlanCharges(server.ledger, [before])).toEqual({
      recorded: 0,
      differing: [],
      stale: ["u1"],
    });
    expect((await projectsToMeter(server.ledger))[0]?.until).toBeUndefined();
    const after = { ...before, until: new Date(BEGIN + 1.5 * HOUR), charges: hours(1) };
    expect(await recordPlanCharges(server.ledger, [after])).toEqual({
      recorded: 1,
      differing: [],
      stale: [],
    });
  });

  test("is adjusted once, by differences of the cycle in which they are recorded", async () => {
    await outcomes(change(1, 0));
    const until = new Date(BEGIN + 2 * HOUR);
    await recordPlanCharges(server.ledger, [window(hours(2), { arrivals: 1, until })]);
    await outcomes(change(2, 1.5));
    const [found] = await projectsToMeter(server.ledger);
    const late = found?.late as NonNullable<typeof found>["late"] & object;
    expect(await recordedPlanCharges(server.ledger, "u1", late.from)).toEqual([hour(1)]);
    const fact = { adjusts: hour(1).key, kind: "credit" as const, key: "u1/credit/late/0/instance_hour/1/0" };
    const charges = [{ ...hour(1, { amount: "1" }), ...fact }];
    const adjusted = { ...project, until, arrivals: 2, late, ended: false, charges };
    // Computed before another one came, or before others were charged.
    for (const other of [{ late: { ...late, arrival: 1 } }, { until: new Date(BEGIN) }]) {
      expect(await recordPlanAdjustments(server.ledger, { ...adjusted, ...other })).toBeUndefined();
    }
    const pools = [server.ledger, server.connect()];
    const answers = await Promise.all(pools.map((pool) => recordPlanAdjustments(pool, adjusted)));
    expect(answers.sort()).toEqual([1, undefined]);
    expect(await recordedPlanCharges(server.ledger, "u1", late.from)).toEqual([hour(1), ...charges]);
    const cycle = new Date().toISOString().slice(0, 8);
    expect((await sums()).at(-1)).toBe(`${cycle}01 1 1`);
    expect((await projectsToMeter(server.ledger))[0]?.late).toBeUndefined();
  });

  test("of a history that has ended leaves nothing to meter once it is adjusted", async () => {
    await outcomes(change(1, 0));
    const until = new Date(BEGIN + 2 * HOUR);
    await recordPlanCharges(server.ledger, [window(hours(2), { arrivals: 1, until })]);
    const at = new Date(BEGIN + 1.5 * HOUR);
    await recordBillableChanges(server.ledger, [{ ...project, number: 2, at, state: undefined }]);
    const late = (await projectsToMeter(server.ledger))[0]?.late;
    if (!late) {
      throw new Error("no late change");
    }
    const adjusted = { ...project, until, arrivals: 2, late, ended: true, charges: [] };
    expect(await recordPlanAdjustments(server.ledger, adjusted)).toBe(0);
    expect(await projectsToMeter(server.ledger)).toEqual([]);
  });

  /** Until so many statements wait for a lock. */
  const waiting = (count: number) =>
    vi.waitFor(
      async () => {
        const { rows } = await sql`
          select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(
          server.ledger,
        );
        expect(rows).toHaveLength(count);
      },
      { timeout: 10_000 },
    );
  const insertSecond = sql`
    insert into billable_changes (organization_id, project_id, project_uid, number, at, plan, payment_mode, renews, instances, paused, billed_gb)
    values ('acme', 'shop', 'u1', 2, ${change(2, 1.5).at}, 'basic', 'hourly', true, 1, false, 0)`;

  test("and that is still being recorded has a window of its project left out, and others' windows recorded", async () => {
    await outcomes(change(1, 0));
    const other = window([hour(0, { key: "u2/instance_hour/0/0" })], { projectUid: "u2" });
    const recorded = await server
      .connect()
      .transaction()
      .execute(async (transaction) => {
        await insertSecond.execute(transaction);
        return recordPlanCharges(server.ledger, [window(hours(2), { arrivals: 1 }), other]);
      });
    expect(recorded).toEqual({ recorded: 1, differing: [], stale: ["u1"] });
    expect((await projectsToMeter(server.ledger))[0]).toMatchObject({ arrivals: 2, late: undefined });
  });

  test("while a window of its time is being recorded is late", async () => {
    await outcomes(change(1, 0));
    const begun = await server
      .connect()
      .transaction()
      .execute(async (transaction) => {
        await sql`lock table plan_charges in exclusive mode`.execute(transaction);
        const recorded = recordPlanCharges(server.connect(), [window(hours(2), { arrivals: 1 })]);
        await waiting(1);
        const late = recordBillableChanges(server.connect(), [change(2, 1.5)]);
        await waiting(2);
        return { recorded, late };
      });
    expect(await begun.recorded).toMatchObject({ recorded: 2, stale: [] });
    expect(await begun.late).toMatchObject([{ outcome: "late" }]);
    expect((await projectsToMeter(server.ledger))[0]?.late).toEqual({
      from: change(2, 1.5).at,
      arrival: 2,
      pass: 0,
    });
  });

  test("counts once where two processes record it", async () => {
    await outcomes(change(1, 0));
    const second = await server
      .connect()
      .transaction()
      .execute(async (transaction) => {
        await insertSecond.execute(transaction);
        const answer = recordBillableChanges(server.connect(), [change(2, 1.5)]);
        await waiting(1);
        return { answer };
      });
    expect(await second.answer).toMatchObject([{ outcome: "already" }]);
    expect((await projectsToMeter(server.ledger))[0]?.arrivals).toBe(2);
  });

  test.each([
    ["was adjusted before", sql`adjustments = 1`, 1],
    ["waits for its first adjustment", sql`late_from = metered_until, late_arrival = 1`, 0],
  ])("may have moved a fact of a project that %s: it is compared once more", async (_what, state, pass) => {
    await outcomes(change(1, 0));
    await recordPlanCharges(server.ledger, [window(hours(2), { arrivals: 1 })]);
    await sql`update plan_meters set ${state}`.execute(server.ledger);
    const again = window([hour(1, { price: "4", amount: "4" })], { arrivals: 1 });
    expect((await recordPlanCharges(server.ledger, [again])).differing).toEqual([]);
    const [found] = await projectsToMeter(server.ledger);
    expect(found?.late).toMatchObject({ from: new Date(BEGIN + HOUR), pass });
  });

  test("has nothing compared that is there as it should be, unless that was adjusted", async () => {
    await outcomes(change(1, 0));
    const until = new Date(BEGIN + 2 * HOUR);
    const two = window(hours(2), { arrivals: 1, until });
    await recordPlanCharges(server.ledger, [two]);
    await outcomes(change(2, 1.5));
    const lateOf = async () => (await projectsToMeter(server.ledger))[0]?.late;
    const late = (await lateOf()) as NonNullable<Awaited<ReturnType<typeof lateOf>>>;
    const fact = { adjusts: hour(1).key, kind: "credit" as const, key: "u1/credit/late/0/instance_hour/1/0" };
    const checkpoint = { origin: BEGIN, at: BEGIN + HOUR, state: change(1, 0).state, contracts: [] };
    const charges = [{ ...hour(1), ...fact }];
    const adjusted = { ...project, until, arrivals: 2, late, ended: false, charges, checkpoint };
    expect(await recordPlanAdjustments(server.ledger, adjusted)).toBe(1);
    const [history] = await meteredHistories(server.ledger, ["u1"], 10);
    expect(history).toMatchObject({ checkpoint, changes: [{ at: change(2, 1.5).at.getTime() }] });
    await recordPlanCharges(server.ledger, [window([hour(0)], { arrivals: 2 })]);
    expect(await lateOf()).toBeUndefined();
    const again = window([hour(0), hour(1)], { arrivals: 2 });
    expect((await recordPlanCharges(server.ledger, [again])).differing).toEqual([]);
    expect(await lateOf()).toEqual({ from: new Date(BEGIN + HOUR), arrival: 2, pass: 1 });
  });
});

const list = (from: number, hourly = "3"): PriceList => ({
  from,
  gbHour: "0.1",
  plans: { basic: { hourly, monthly: "2160", yearly: "25920", refund: "none" } },
});

describe("prices", () => {
  test("are a list by date, which gets an entry where they are others", async () => {
    const now = Date.now();
    expect(await recordPrices(server.ledger, list(now))).toBe(true);
    expect(await recordPrices(server.ledger, list(now + 10))).toBe(false);
    expect(await recordPrices(server.ledger, list(now + 20, "4"))).toBe(true);
    expect(await recordPrices(server.ledger, list(now + 30))).toBe(true);
    expect(await listPrices(server.ledger)).toEqual([list(now), list(now + 20, "4"), list(now + 30)]);
  });

  test.each([
    ["an hour ago", -HOUR],
    ["before the last ones", -1_000],
    ["in an hour", HOUR],
  ])("from %s are refused", async (_what, ms) => {
    const now = Date.now();
    await recordPrices(server.ledger, list(now));
    await expect(recordPrices(server.ledger, list(now + ms, "4"))).rejects.toMatchObject({ code: "23514" });
    expect(await listPrices(server.ledger)).toHaveLength(1);
  });
});
