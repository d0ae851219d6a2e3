import { priceListOf } from "@slipway/crds";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { startJobLedger, type TestJobLedger } from "../../../test/kit/ledger/job-ledger.ts";
import {
  type BuildRow,
  beginInvoicing,
  chargeBuilds,
  connectLedger,
  findInvoice,
  issueInvoice,
  type Ledger,
  listInvoiceLines,
  listPrices,
  organizationCost,
  recordBuild,
  recordedPlanCharges,
  recordPrices,
  retireBuilds,
  settleCycle,
} from "./index.ts";
import { retireEndedBuilds } from "./resource-charges.ts";

let server: TestJobLedger;

beforeAll(async () => {
  server = await startJobLedger();
});
afterAll(() => server?.stop());
beforeEach(async () => {
  await server.empty();
  await sql`delete from builds`.execute(server.ledger);
});

const MINUTE = 60_000;
/** The middle of a month that is over. */
const BEGIN = Date.UTC(2026, 0, 15, 12);

/** Prices from an instant of the past on, which the ledger refuses but from a test. */
async function pricesFrom(from: number, resources: object): Promise<void> {
  await server.ledger.transaction().execute(async (transaction) => {
    await sql`set local session_replication_role = replica`.execute(transaction);
    await sql`
      insert into price_lists (from_at, plans, gb_hour, resources)
      values (${new Date(from)}, '{}', '0', ${JSON.stringify(resources)}::jsonb)`.execute(transaction);
  });
}

/** Records builds whose ends were noted an hour ago, or so long ago: what is noted now is not charged yet. */
async function recordEnded(builds: readonly BuildRow[], age = "1 hour"): Promise<void> {
  for (const one of builds) {
    await recordBuild(server.ledger, one);
    await sql`
      update ended_builds set noted_at = now() - ${age}::interval where build_id = ${one.id}`.execute(
      server.ledger,
    );
  }
}

const build = (id: string, facts: Partial<BuildRow> = {}): BuildRow => ({
  organization_id: "acme",
  project_id: "shop",
  project_uid: "u1",
  id,
  triggered_by: "manual",
  branch: null,
  tag: null,
  commit_sha: null,
  commit_message: null,
  status: "success",
  digest: null,
  error_code: null,
  error_message: null,
  created_at: new Date(BEGIN - MINUTE),
  started_at: new Date(BEGIN - 30 * MINUTE),
  // By an operator's clock, which may be wrong: it decides nothing.
  finished_at: new Date(BEGIN + 3 * MINUTE),
  ran_from: new Date(BEGIN),
  ran_until: new Date(BEGIN + 2 * MINUTE + 1),
  ...facts,
});

async function charged(): Promise<string[]> {
  const { rows } = await sql<{ text: string }>`
    select concat_ws(' ', key, cycle_start, trim_scale(quantity), trim_scale(price), trim_scale(amount)) as text
    from plan_charges order by key`.execute(server.ledger);
  return rows.map(({ text }) => text);
}

const waiting = async () => (await sql`select from ended_builds`.execute(server.ledger)).rows.length;

/** All that was due, without a difference or a refusal. */
const dealtWith = (recorded: number) => ({ recorded, differing: [], refused: [], isMore: false });

// Shows: docs/billing.md#build-minutes: Each begun minute in which a build's containers ran is charged
test("builds are charged once by several processes, also those that the history has forgotten", async () => {
  await pricesFrom(BEGIN - MINUTE, { buildMinute: "0.05" });
  await recordBuild(server.ledger, build("b1", { status: "building", finished_at: null }));
  expect(await waiting()).toBe(0);
  await recordEnded([
    build("b1"),
    build("b1"),
    build("b2", { status: "failed", error_code: "BUILD_FAILED" }),
    build("b3", { status: "superseded" }),
    build("b4", { status: "failed", error_code: "BUILD_ENGINE_FAILED" }),
    build("b5", { status: "superseded", ran_from: null, ran_until: null }),
  ]);
  await retireBuilds(server.ledger, new Date(Date.now() + 31 * 86_400_000));
  expect((await sql`select from builds`.execute(server.ledger)).rows).toEqual([]);
  const pools = [server.ledger, server.connect(), server.connect()];
  const answers = await Promise.all(pools.map((pool) => chargeBuilds(pool, 2)));
  answers.push(await chargeBuilds(server.ledger));
  expect(answers.reduce((sum, { recorded }) => sum + recorded, 0)).toBe(3);
  const all = [
    "u1/build_minute/b1 2026-01-01 3 0.05 0.15",
    "u1/build_minute/b2 2026-01-01 3 0.05 0.15",
    "u1/build_minute/b3 2026-01-01 3 0.05 0.15",
  ];
  expect(await charged()).toEqual(all);
  expect(await waiting()).toBe(0);
  // A process that ends a forgotten build again changes nothing, also where it has it otherwise.
  await recordEnded([build("b1"), build("b2", { ran_until: new Date(BEGIN + 10 * MINUTE) })]);
  expect(await chargeBuilds(server.ledger)).toEqual({
    recorded: 0,
    differing: ["u1/build_minute/b2"],
    refused: [],
    isMore: false,
  });
  expect(await charged()).toEqual(all);
  expect(await waiting()).toBe(0);
});

test("a build has the price of its start, and none where nothing costs or it has just ended", async () => {
  await recordBuild(server.ledger, build("before"));
  expect(await waiting()).toBe(0);
  await pricesFrom(BEGIN, { buildMinute: "2" });
  await pricesFrom(BEGIN + 1, {});
  await recordEnded([build("b1"), build("b2", { ran_from: new Date(BEGIN + 1) })]);
  await recordBuild(server.ledger, build("b3"));
  expect(await chargeBuilds(server.ledger)).toEqual(dealtWith(1));
  expect(await charged()).toEqual(["u1/build_minute/b1 2026-01-01 3 2 6"]);
  expect(await waiting()).toBe(1);
});

// Shows: docs/billing.md#build-minutes: charged once it is turned on again, for 90 days
test("a build that ended 90 days ago is charged no more, and its note is dropped unless it was refused", async () => {
  await pricesFrom(0, { buildMinute: "1" });
  await recordEnded([build("older")], "90 days 1 hour");
  await recordEnded([build("newer")], "89 days 23 hours");
  await recordEnded([build("refused")], "100 days");
  await sql`update ended_builds set refused_at = now() where build_id = 'refused'`.execute(server.ledger);
  expect(await chargeBuilds(server.ledger)).toEqual(dealtWith(1));
  expect(await charged()).toMatchObject([expect.stringContaining("u1/build_minute/newer")]);
  expect(await waiting()).toBe(2);
  expect(await retireEndedBuilds(server.ledger, new Date())).toBe(1);
  await sql`update ended_builds set refused_at = refused_at - interval '25 hours'`.execute(server.ledger);
  expect(await chargeBuilds(server.ledger)).toEqual(dealtWith(1));
  expect(await waiting()).toBe(0);
});

test("a charge that the ledger refuses holds up no other one, and is tried again after a day", async () => {
  await pricesFrom(BEGIN - MINUTE, { buildMinute: "1" });
  const tomorrow = new Date(Date.now() + 86_400_000);
  // The last one was run by a node whose clock was ahead.
  const ahead = build("b3", { ran_from: tomorrow, ran_until: tomorrow });
  await recordEnded([build("b1"), build("b2"), build("b4"), ahead]);
  const refused = [{ organizationId: "acme", projectId: "shop", buildId: "b3", reason: "nothing_ahead" }];
  expect(await chargeBuilds(server.ledger)).toEqual({ recorded: 3, differing: [], refused, isMore: false });
  expect(await charged()).toHaveLength(3);
  expect(await chargeBuilds(server.ledger)).toEqual(dealtWith(0));
  expect(await waiting()).toBe(1);
  await sql`update ended_builds set refused_at = refused_at - interval '25 hours'`.execute(server.ledger);
  expect(await chargeBuilds(server.ledger)).toEqual({ recorded: 0, differing: [], refused, isMore: false });
  // Its instant is reached by then.
  await sql`
    update ended_builds set refused_at = refused_at - interval '25 hours', ran_from = ${new Date(BEGIN)}`.execute(
    server.ledger,
  );
  expect(await chargeBuilds(server.ledger)).toEqual(dealtWith(1));
  expect(await waiting()).toBe(0);
});

test("a process that is killed between the charge and its note leaves both as they were", async () => {
  await pricesFrom(BEGIN - MINUTE, { buildMinute: "1" });
  await recordEnded([build("b1")]);
  // They wait for locks as long as it takes.
  const connect = () =>
    connectLedger({ url: server.postgres.url, applicationName: "test", statementTimeoutMs: 0 });
  const [holder, killed] = [connect(), connect()];
  let charging: Promise<unknown> | undefined;
  try {
    await holder.transaction().execute(async (transaction) => {
      // Rows can be locked, and a charge inserted; the deletion of its note waits.
      await sql`lock table ended_builds in share mode`.execute(transaction);
      let isOver = false;
      charging = chargeBuilds(killed)
        .catch((error: unknown) => error)
        .finally(() => {
          isOver = true;
        });
      const pid = await waitingFor(transaction, "ended_builds", () => isOver);
      expect(await chargeBuilds(server.ledger)).toMatchObject({ recorded: 0, isMore: false });
      await sql`select pg_terminate_backend(${pid})`.execute(transaction);
      expect(await charging).toBeInstanceOf(Error);
    });
    expect(await charged()).toEqual([]);
    expect(await waiting()).toBe(1);
    expect(await chargeBuilds(server.ledger)).toMatchObject({ recorded: 1, isMore: false });
    expect(await charged()).toEqual(["u1/build_minute/b1 2026-01-01 3 1 3"]);
    expect(await waiting()).toBe(0);
  } finally {
    await charging;
    await Promise.all([holder.destroy(), killed.destroy()]);
  }
});

/** @returns the process that waits for a lock of a table, once one does */
async function waitingFor(ledger: Ledger, table: string, isOver: () => boolean): Promise<number> {
  while (!isOver()) {
    const { rows } = await sql<{ pid: number }>`
      select pid from pg_locks where relation = ${table}::regclass and not granted`.execute(ledger);
    const [row] = rows;
    if (row) {
      return row.pid;
    }
  }
  throw new Error(`nothing has waited for ${table}`);
}

// Shows: docs/billing.md#build-minutes: The charge is in `plan_charges` as others are
test("builds are in the sums and on the invoice of their cycle, and no late change concerns them", async () => {
  await pricesFrom(BEGIN - MINUTE, { buildMinute: "0.5" });
  await recordEnded([build("b1"), build("b2", { ran_until: new Date(BEGIN + MINUTE) })]);
  expect(await chargeBuilds(server.ledger)).toEqual(dealtWith(2));
  const cycle = new Date("2026-01-01T00:00:00Z");
  const cost = await organizationCost(server.ledger, {
    organizationId: "acme",
    cycle,
    offset: 0,
    limit: 10,
  });
  expect(cost.kinds).toEqual([{ kind: "build_minute", amount: "2", charges: 2 }]);
  expect(await recordedPlanCharges(server.ledger, "u1", cycle)).toEqual([]);

  await beginInvoicing(server.ledger, cycle);
  await settleCycle(server.ledger, cycle);
  const terms = { issuer: "", dueDays: 14, taxes: { default: [], countries: {} } };
  const number = await issueInvoice(server.ledger, { organizationId: "acme", cycle: "2026-01-01" }, terms);
  const invoice = await findInvoice(server.ledger, number ?? "");
  if (!invoice) {
    throw new Error("no invoice");
  }
  const lines = await listInvoiceLines(server.ledger, invoice, { after: 0, limit: 10 });
  expect(lines).toMatchObject([
    { projectId: "shop", kind: "build_minute", quantity: "4", unitPrice: "0.5", amount: "2", chargeCount: 2 },
  ]);
});

test("prices of resources are recorded when they change", async () => {
  const catalog = { httpPlans: [], databasePlans: [], storagePlans: [] } as unknown as Parameters<
    typeof priceListOf
  >[0];
  const priced = { ...catalog, resourcePrices: { buildMinute: "0.5" } };
  const now = Date.now();
  expect(await recordPrices(server.ledger, priceListOf(catalog, now))).toBe(true);
  expect(await recordPrices(server.ledger, priceListOf(catalog, now + 1))).toBe(false);
  expect(await recordPrices(server.ledger, priceListOf(priced, now + 2))).toBe(true);
  expect(await recordPrices(server.ledger, priceListOf(priced, now + 3))).toBe(false);
  expect((await listPrices(server.ledger)).map(({ resources }) => resources)).toEqual([
    undefined,
    { buildMinute: "0.5" },
  ]);
});

test.each([
  ["of a build without a quantity", "build_minute", null, "amount_of_price"],
  ["of a build of another amount", "build_minute", "2", "amount_of_price"],
  ["of a plan with a quantity", "instance_hour", "1", "quantity_of_resources"],
])("a charge %s is refused", async (_, kind, quantity, constraint) => {
  const at = new Date(BEGIN);
  const inserted = sql`
    insert into plan_charges (organization_id, project_id, project_uid, key, kind, starts_at, ends_at, final_at, cycle_start,
      quantity, price, amount)
    values ('acme', 'shop', 'u1', ${`u1/${kind}/b1`}, ${kind}, ${at}, ${new Date(BEGIN + MINUTE)}, ${at},
      billing_cycle(${at}), ${quantity}::numeric, 1, 1)`.execute(server.ledger);
  await expect(inserted).rejects.toMatchObject({ constraint });
});
