import { eventTypes } from "@slipway/crds";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { insertCharge } from "../../../test/kit/ledger/charge.ts";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import {
  type BudgetSettings,
  connectLedger,
  createWebhook,
  deleteBudget,
  findBudget,
  isBudgetExhausted,
  type Ledger,
  listBudgets,
  listExhaustedBudgets,
  listUnrecordedBudgets,
  listWebhookDeliveries,
  MAX_CROSSINGS,
  migrateToLatest,
  recordBudgetCrossings,
  setBudget,
} from "./index.ts";

/** Budgets in a real PostgreSQL: what is compared with them, and what is recorded of it. */

let postgres: TestPostgres;
let ledger: Ledger;
let other: Ledger;
beforeAll(async () => {
  postgres = await startPostgres();
  ledger = connectLedger({ url: postgres.url, applicationName: "test" });
  other = connectLedger({ url: postgres.url, applicationName: "other" });
  await migrateToLatest(ledger);
});
afterAll(async () => {
  await Promise.all([ledger?.destroy(), other?.destroy()]);
  await postgres?.stop();
});
beforeEach(async () => {
  await ledger.transaction().execute(async (transaction) => {
    await sql`set local session_replication_role = replica`.execute(transaction);
    await sql`truncate webhooks, webhook_deliveries, webhook_skipped_events, budgets, budget_crossings, plan_charges, usage_by_project, usage_by_day`.execute(
      transaction,
    );
  });
  const url = { url: "https://hooks.example.com/", host: "hooks.example.com:443" };
  const all = { description: null, event_types: [...eventTypes], project_ids: null };
  await createWebhook(ledger, { id: "w1", organization_id: "acme", ...url, ...all }, 20);
});

const DAY_MS = 86_400_000;
/** In the middle of the cycle that is now; events of longer ago than two days are not sent, so crossings are recorded with the real time. */
const start = new Date(new Date().toISOString().slice(0, 7));
const now = new Date(start.getTime() + 10 * DAY_MS);
const next = new Date(new Date(start.getTime() + 32 * DAY_MS).toISOString().slice(0, 7));

const budget = (settings: Partial<BudgetSettings> = {}, organization = "acme") =>
  setBudget(
    ledger,
    organization,
    { amount: "100", notices: [50, 80, 100], hardCap: false, ...settings },
    now,
  );
const charge = (amount: string, at = now, organizationId = "acme") =>
  insertCharge(ledger, { organizationId, amount, at });
const record = (at = now, organization = "acme") => recordBudgetCrossings(ledger, at, organization);
async function events(): Promise<{ threshold: number; spent: string }[]> {
  const query = { organizationId: "acme", webhookId: "w1", limit: 200, offset: 0 };
  const { deliveries } = await listWebhookDeliveries(ledger, query);
  return deliveries.toReversed().map(({ payload }) => JSON.parse(payload).data);
}

// Shows: docs/budgets.md#what-is-promised: each threshold is recorded once in a cycle, in one transaction with its event
// Shows: docs/webhooks.md#events: `budget.reached`
it("records each threshold once, with its event", async () => {
  await budget();
  await charge("49.999999999");
  expect(await record()).toBe(0);
  await charge("0.000000001");
  expect(await record()).toBe(1);
  await charge("60");
  expect(await Promise.all([record(), recordBudgetCrossings(other, now, "acme"), record()])).toHaveLength(3);
  expect(await record()).toBe(0);
  const cycle = { cycle_started_at: start.toISOString(), organization_id: "acme", hard_cap: false };
  expect(await events()).toEqual([
    { ...cycle, threshold: 50, amount: "100", spent: "50" },
    { ...cycle, threshold: 80, amount: "100", spent: "110" },
    { ...cycle, threshold: 100, amount: "100", spent: "110" },
  ]);
  expect((await findBudget(ledger, "acme", now))?.reached.map(({ threshold }) => threshold)).toEqual([
    50, 80, 100,
  ]);
});

it("records neither a threshold nor its event where the other one cannot be recorded", async () => {
  await budget();
  await charge("60");
  await sql`alter table webhook_deliveries add constraint refused check (event_type <> 'budget.reached')`.execute(
    ledger,
  );
  await expect(record()).rejects.toThrow("refused");
  await sql`alter table webhook_deliveries drop constraint refused`.execute(ledger);
  expect((await findBudget(ledger, "acme", now))?.reached).toEqual([]);
  expect(await record()).toBe(1);
  expect(await events()).toHaveLength(1);
});

// Shows: docs/budgets.md#what-is-promised: with another amount, after it was removed, or in the next cycle
it("can be reached again with another amount, and in the next cycle", async () => {
  await budget();
  await charge("60");
  expect(await record()).toBe(1);
  await budget({ notices: [50, 60], hardCap: true });
  expect(await record()).toBe(1);
  await budget({ amount: "110.0" });
  expect(await record()).toBe(1);
  await budget({ amount: "110", notices: [50] });
  expect(await record()).toBe(0);
  expect(await deleteBudget(ledger, "acme")).toBe(true);
  expect(await deleteBudget(ledger, "acme")).toBe(false);
  await budget({ amount: "110" });
  expect(await record()).toBe(1);
  expect(await record(next)).toBe(0);
  await charge("60", next);
  expect(await record(next)).toBe(1);
});

// Shows: docs/budgets.md#what-is-promised: the last hours of a cycle, which are charged in the next one
it("compares the last hours of a cycle in the next one, with what was set by then", async () => {
  await budget();
  await charge("60", new Date(next.getTime() - 1));
  expect(await record(new Date(next.getTime() + 2 * DAY_MS))).toBe(0);
  await sql`update budgets set revised_at = ${next}`.execute(ledger);
  expect(await record(next)).toBe(0);
  await sql`update budgets set revised_at = ${new Date(next.getTime() - 1)}`.execute(ledger);
  expect(await record(next)).toBe(1);
  expect(await events()).toMatchObject([{ threshold: 50, cycle_started_at: start.toISOString() }]);
});

// Shows: docs/budgets.md#what-is-promised: about 100 in a cycle are recorded
it("records so many of an organization in a cycle, and those of others", async () => {
  await charge("1000000");
  await charge("60", now, "other");
  await budget({}, "other");
  const notices = Array.from({ length: 10 }, (_, index) => index + 1);
  for (let amount = 1; amount <= 12; amount += 1) {
    await budget({ amount: `${amount}`, notices });
    await record();
  }
  await record(now, "other");
  const { rows } = await sql`
    select organization_id as id, count(*)::int from budget_crossings group by 1 order by 1`.execute(ledger);
  expect(rows).toEqual([
    { id: "acme", count: MAX_CROSSINGS },
    { id: "other", count: 1 },
  ]);
});

it("lists a page of budgets after the other, and what is due of some", async () => {
  const ids = ["a", "b", "c"];
  for (const id of ids) {
    await budget({ hardCap: true }, id);
    await charge(id === "b" ? "99" : "100", now, id);
  }
  await budget({}, "d");
  await charge("49", now, "d");
  expect(await listBudgets(ledger, { after: "", limit: 3 })).toEqual(ids);
  expect(await listBudgets(ledger, { after: "c", limit: 3 })).toEqual(["d"]);
  expect(await listBudgets(ledger, { after: "b", limit: 3 }, { hardCap: true })).toEqual(["c"]);
  const some = [...ids, "d", "unknown"];
  expect(await listExhaustedBudgets(ledger, now, some)).toEqual(["a", "c"]);
  expect(await listExhaustedBudgets(ledger, now, ["b", "c"])).toEqual(["c"]);
  expect(await listUnrecordedBudgets(ledger, now, some)).toEqual(ids);
  expect(await record(now, "b")).toBe(2);
  expect(await listUnrecordedBudgets(ledger, now, some)).toEqual(["a", "c"]);
});

it("is exhausted by charges of the cycle alone, and only where it has a hard cap", async () => {
  const isExhausted = (at = now) => isBudgetExhausted(ledger, "acme", at);
  await charge("500", new Date(start.getTime() - 1));
  await charge("100");
  expect(await isExhausted()).toBe(false);
  await budget();
  expect(await isExhausted()).toBe(false);
  await budget({ hardCap: true });
  expect([await isExhausted(), await isExhausted(next)]).toEqual([true, false]);
  await budget({ hardCap: true, amount: "100.000000001" });
  expect(await isExhausted()).toBe(false);
});

// Shows: docs/ledger.md#tables: `budget_crossings`
it("alters and removes no crossing", async () => {
  await budget();
  await charge("60");
  await record();
  await expect(sql`update budget_crossings set spent = 0`.execute(ledger)).rejects.toThrow();
  await expect(sql`delete from budget_crossings`.execute(ledger)).rejects.toThrow();
  await expect(sql`truncate budget_crossings`.execute(ledger)).rejects.toThrow();
});

it("is written only when it changes", async () => {
  const version = async () =>
    (await sql<{ xmin: string; revision: string }>`select xmin::text, revision from budgets`.execute(ledger))
      .rows[0];
  await budget({ notices: [80, 50, 100] });
  const first = await version();
  expect((await findBudget(ledger, "acme", now))?.notices).toEqual([50, 80, 100]);
  expect(await budget()).toEqual(await findBudget(ledger, "acme", now));
  await budget({ amount: "100.00" });
  expect(await version()).toEqual(first);
  await budget({ hardCap: true });
  expect((await version())?.revision).toBe(first?.revision);
  await budget({ amount: "101", hardCap: true });
  expect((await version())?.revision).not.toBe(first?.revision);
});
