import { type PlanCharge, sumDecimals } from "@slipway/crds";
import {
  connectLedger,
  insertOrganization,
  insertTombstone,
  type Ledger,
  migrateToLatest,
  recordBillableChanges,
  recordJobRuns,
  recordPlanCharges,
  recordPrices,
} from "@slipway/ledger";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { jobRun } from "../../../test/kit/ledger/charged-rows.ts";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import { projectCostSchema, usageSchema } from "./view.ts";

/** What was charged, over a real PostgreSQL. The API's clock is at noon of 10 February 2026. */

const ORGANIZATION = "acme";
const NOW = new Date("2026-02-10T12:00:00Z");
const HOUR = 3_600_000;

let postgres: TestPostgres;
let ledger: Ledger;
let harness: FakeHarness;

beforeAll(async () => {
  postgres = await startPostgres();
  ledger = connectLedger({ url: postgres.url, applicationName: "test" });
  await migrateToLatest(ledger);
  harness = await startFakeHarness({ ledger });
  Object.assign(harness.services, { now: () => NOW });
  for (const id of [ORGANIZATION, "other"]) {
    await insertOrganization(ledger, { id, name: id });
  }
  await harness.project(ORGANIZATION, "pshop", { name: "<b>Shop</b>" });
  await harness.project(ORGANIZATION, "pquiet", { name: "Quiet" });
  await harness.project("other", "pforeign");
  await charge();
});
afterAll(async () => {
  await harness?.close();
  await ledger?.destroy();
  await postgres?.stop();
});

/** An application paid by the hour since 9 February, a database paid by the month since 16 January, and a deleted job. */
async function charge(): Promise<void> {
  await recordPrices(ledger, {
    from: Date.now(),
    plans: { "db-basic": { hourly: "3", monthly: "2500.5", yearly: "25920", refund: "none" } },
    gbHour: "0.1",
  });
  const hours = Array.from({ length: 35 }, (_, index): PlanCharge => {
    const from = Date.parse("2026-02-09T00:00:00Z") + index * HOUR;
    const to = from + HOUR;
    const fact = { from, to, finalAt: to, plan: "basic", instance: 0, price: "3.1", amount: "3.1" };
    return { key: `u-shop/instance_hour/${index}/0`, kind: "instance_hour", ...fact };
  });
  const [begin, end] = [Date.parse("2026-01-16T00:00:00Z"), Date.parse("2026-02-16T00:00:00Z")];
  const term: PlanCharge = {
    key: `u-data/term/${begin}/0`,
    kind: "term",
    from: begin,
    to: end,
    finalAt: begin,
    plan: "db-basic",
    instance: 0,
    price: "2160",
    amount: "2160",
  };
  const state = {
    plan: "db-basic",
    paymentMode: "monthly",
    renews: true,
    instances: 1,
    paused: false,
    billedGb: 0,
  } as const;
  const data = { organizationId: ORGANIZATION, projectId: "pdata", projectUid: "u-data" };
  await recordBillableChanges(ledger, [{ ...data, number: 1, at: new Date(begin), state }]);
  await recordPlanCharges(ledger, [
    { ...data, until: NOW, ended: false, arrivals: 9, charges: [term] },
    {
      organizationId: ORGANIZATION,
      projectId: "pshop",
      projectUid: "u-shop",
      until: NOW,
      ended: false,
      arrivals: 9,
      charges: hours,
    },
  ]);
  await recordJobRuns(
    ledger,
    ["2026-01-31T03:00:00Z", "2026-02-04T03:00:00Z", "2026-02-05T03:00:00Z"].map((time) =>
      jobRun({
        organization_id: ORGANIZATION,
        project_id: "pnightly",
        scheduled_at: new Date(time),
        price_per_minute: "0.07",
      }),
    ),
  );
  await insertTombstone(ledger, ORGANIZATION, "pnightly", "Nightly report");
}

const get = (url: string, ...grants: string[]) =>
  harness.app.inject({ url, headers: harness.key(ORGANIZATION, ...grants) });
const read = async (url: string) => {
  const response = await get(url, "project.billing.read on project:*");
  expect(response.statusCode).toBe(200);
  const { data } = response.json();
  expect((url.startsWith("/v1/organization") ? usageSchema : projectCostSchema).parse(data)).toEqual(data);
  return data;
};

describe("usage of the organization", () => {
  // Shows: docs/usage.md#over-v1: `GET /v1/organization/usage`
  it("is what was charged in the cycle, by kind, day and project, with a forecast", async () => {
    expect(await read("/v1/organization/usage")).toEqual({
      currency: "brl",
      cycle_started_at: "2026-02-01T00:00:00.000Z",
      next_reset_at: "2026-03-01T00:00:00.000Z",
      plans_metered: true,
      amount: "108.64",
      kinds: [
        { kind: "instance_hour", amount: "108.5", charges: 35 },
        { kind: "job_run", amount: "0.14", charges: 2 },
      ],
      days: [
        { day: "2026-02-04", amount: "0.07", kinds: [{ kind: "job_run", amount: "0.07" }] },
        { day: "2026-02-05", amount: "0.07", kinds: [{ kind: "job_run", amount: "0.07" }] },
        { day: "2026-02-09", amount: "74.4", kinds: [{ kind: "instance_hour", amount: "74.4" }] },
        { day: "2026-02-10", amount: "34.1", kinds: [{ kind: "instance_hour", amount: "34.1" }] },
      ],
      projects: [
        {
          project_id: "pshop",
          name: "<b>Shop</b>",
          deleted: false,
          amount: "108.5",
          kinds: [{ kind: "instance_hour", amount: "108.5", charges: 35 }],
        },
        {
          project_id: "pnightly",
          name: "Nightly report",
          deleted: true,
          amount: "0.14",
          kinds: [{ kind: "job_run", amount: "0.14", charges: 2 }],
        },
      ],
      pagination: { page: 1, limit: 50, total: 2, total_pages: 1 },
      forecast: {
        // 0.14 and 19 days of 0.02; 74.4 for each of 20 days; the term that begins on the 16th, at its price of now.
        amount: sumDecimals(["0.14", "0.38", "1488", "2500.5"]),
        kinds: [
          { kind: "job_run", amount: "0.52" },
          { kind: "instance_hour", amount: "1488" },
          { kind: "term", amount: "2500.5" },
        ],
      },
    });
  });

  it("of a cycle that has ended has no forecast, and a page of no projects has the same sums", async () => {
    const january = await read("/v1/organization/usage?cycle=2026-01&page=3&limit=1");
    expect(january).toMatchObject({
      amount: "2160.07",
      projects: [],
      pagination: { page: 3, limit: 1, total: 2, total_pages: 2 },
      forecast: null,
    });
    const december = await read("/v1/organization/usage?cycle=2025-12");
    expect(december).toMatchObject({ amount: "0", kinds: [], days: [], projects: [], forecast: null });
  });

  // Shows: docs/usage.md#over-v1: `plans_metered` is false
  it("says that plans are not metered, and has of plans what was charged in its forecast then", async () => {
    Object.assign(harness.services, { metersPlans: false });
    const found = await read("/v1/organization/usage");
    Object.assign(harness.services, { metersPlans: true });
    expect(found).toMatchObject({ plans_metered: false, amount: "108.64" });
    expect(found.forecast.kinds).toEqual([
      { kind: "job_run", amount: "0.52" },
      { kind: "instance_hour", amount: "108.5" },
    ]);
  });

  // Shows: docs/usage.md#errors: 503 | `SERVER_BUSY`, with `Retry-After`: reading took longer than three seconds
  it("that cannot be read in time is refused with 503, without a word of the ledger's absence", async () => {
    const response = await ledger.transaction().execute(async (transaction) => {
      await sql`set local idle_in_transaction_session_timeout = 0`.execute(transaction);
      await sql`lock table usage_by_day`.execute(transaction);
      return get("/v1/organization/usage", "project.billing.read on project:*");
    });
    expect([response.statusCode, response.json().code, response.headers["retry-after"]]).toEqual([
      503,
      "SERVER_BUSY",
      "2",
    ]);
  });

  // Shows: docs/usage.md#errors: 400 | `BILLING_CYCLE_NOT_BEGUN`
  it.each([
    ["cycle=2026-03", "BILLING_CYCLE_NOT_BEGUN"],
    ["cycle=2026-13", "VALIDATION_FAILED"],
    ["cycle=2026-2", "VALIDATION_FAILED"],
    ["cycle=0000-01", "VALIDATION_FAILED"],
    ["limit=101", "VALIDATION_FAILED"],
    ["page=0", "VALIDATION_FAILED"],
  ])("with %s is refused with %s", async (query, code) => {
    const response = await get(`/v1/organization/usage?${query}`, "project.billing.read on project:*");
    expect([response.statusCode, response.json().code]).toEqual([400, code]);
  });

  // Shows: docs/usage.md#permissions: usage of the organization | `project.billing.read` on all projects
  it("is refused to a key of some projects, which has the cost of each", async () => {
    const grant = "project.billing.read on project:pshop";
    expect((await get("/v1/organization/usage", grant)).statusCode).toBe(403);
    expect((await get("/v1/project/pshop/cost", grant)).statusCode).toBe(200);
    expect((await get("/v1/project/pquiet/cost", grant)).statusCode).toBe(403);
  });
});

describe("the cost of a project", () => {
  // Shows: docs/usage.md#over-v1: `GET /v1/project/:id/cost`
  it("is what was charged of it", async () => {
    expect(await read("/v1/project/pshop/cost")).toEqual({
      project_id: "pshop",
      name: "<b>Shop</b>",
      currency: "brl",
      cycle_started_at: "2026-02-01T00:00:00.000Z",
      next_reset_at: "2026-03-01T00:00:00.000Z",
      plans_metered: true,
      amount: "108.5",
      kinds: [{ kind: "instance_hour", amount: "108.5", charges: 35 }],
      days: [
        { day: "2026-02-09", amount: "74.4", kinds: [{ kind: "instance_hour", amount: "74.4" }] },
        { day: "2026-02-10", amount: "34.1", kinds: [{ kind: "instance_hour", amount: "34.1" }] },
      ],
      forecast: { amount: "1488", kinds: [{ kind: "instance_hour", amount: "1488" }] },
    });
  });

  it("of one without charges is nothing, and of another organization's there is none", async () => {
    expect(await read("/v1/project/pquiet/cost")).toMatchObject({ amount: "0", kinds: [], days: [] });
    const foreign = await get("/v1/project/pforeign/cost", "project.billing.read on project:*");
    expect([foreign.statusCode, foreign.json().code]).toEqual([404, "PROJECT_NOT_FOUND"]);
  });
});
