import type { PlanCharge, PriceList } from "@slipway/crds";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startJobLedger, type TestJobLedger } from "../../../test/kit/ledger/job-ledger.ts";
import {
  listPrices,
  type MeteredWindow,
  projectsToMeter,
  recordBillableChanges,
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

const hour = (index: number, facts: Partial<PlanCharge> = {}): PlanCharge => ({
  key: `u1/instance_hour/${index}/0`,
  kind: "instance_hour",
  from: BEGIN + index * HOUR,
  to: BEGIN + (index + 1) * HOUR,
  finalAt: BEGIN + (index + 1) * HOUR,
  plan: "basic",
  instance: 0,
  price: "3",
  amount: "3",
  ...facts,
});
const window = (charges: readonly PlanCharge[], facts: Partial<MeteredWindow> = {}): MeteredWindow => ({
  ...project,
  until: new Date(BEGIN + charges.length * HOUR),
  ended: false,
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
    });
    expect(await sums()).toEqual(["2026-01-01 2 6"]);
  });

  test("and up to when they are known are recorded together, or not at all", async () => {
    const at = new Date(BEGIN);
    await recordBillableChanges(server.ledger, [{ ...project, number: 1, at, state: undefined }]);
    expect(await projectsToMeter(server.ledger)).toEqual([{ ...project, until: undefined }]);
    const broken = window([hour(0), hour(1, { amount: "2" })]);
    await expect(recordPlanCharges(server.ledger, [broken])).rejects.toMatchObject({
      constraint: "amount_of_price",
    });
    expect(await projectsToMeter(server.ledger)).toEqual([{ ...project, until: undefined }]);
    await recordPlanCharges(server.ledger, [window(hours(2))]);
    const until = new Date(BEGIN + 2 * HOUR);
    expect(await projectsToMeter(server.ledger)).toEqual([{ ...project, until }]);
    // One that is behind takes nothing back.
    await recordPlanCharges(server.ledger, [window(hours(1))]);
    expect(await projectsToMeter(server.ledger)).toEqual([{ ...project, until }]);
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
