import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { auditForged as auditForgedOf } from "../../../../test/kit/ledger/audit-forged.ts";
import { recordBilledMonths } from "../../../../test/kit/ledger/billed-months.ts";
import { forge } from "../../../../test/kit/ledger/forge.ts";
import { startJobLedger, type TestJobLedger } from "../../../../test/kit/ledger/job-ledger.ts";
import { prepareMutations } from "../../../../test/kit/ledger/mutations.ts";
import { plantedErrors } from "../../../../test/kit/ledger/planted-errors.ts";
import { sealAll } from "../../../../test/kit/ledger/seal-all.ts";
import { isLong } from "../../../../test/kit/long.ts";
import { sealBilling, sealNext } from "../billing-seals.ts";
import { connectLedger, type Ledger } from "../connect.ts";
import { columnsOf, type SealScheme, sealScheme, tablesOf } from "../sealed-tables.ts";
import { auditBilling, auditSnapshot, type BillingAuditOptions } from "./audit.ts";
import { BillingFindings } from "./findings.ts";
import { AUDIT_APPLICATION, AuditRunningError, endAudits, withAuditLock } from "./lock.ts";
import { auditPart } from "./parts.ts";
import { auditSeals } from "./seals.ts";

/** The audit of billing, over two months of three organizations. */

let server: TestJobLedger;

beforeAll(async () => {
  server = await startJobLedger();
  await recordBilledMonths(server.ledger);
  await sealAll(server.ledger);
  // The server does so itself once it has the time.
  await server.ledger.transaction().execute(async (transaction) => {
    await sql`set local statement_timeout = '120s'`.execute(transaction);
    await sql`analyze`.execute(transaction);
  });
});
afterAll(() => server?.stop());

const auditForged = (statements: readonly string[], options?: BillingAuditOptions) =>
  auditForgedOf(server.ledger, statements, options);

test("nothing is found in what the platform records", async () => {
  const { findings, ...counts } = await auditForged([]);
  expect(findings.kept).toEqual([]);
  expect(findings.total).toBe(0);
  expect(counts).toMatchObject({ organizations: 3, invoices: 5 });
  expect(counts.planCharges).toBeGreaterThan(300);
});

test("many findings of one kind are counted, and hide none of another", async () => {
  const { findings } = await auditForged([
    "update plan_charges set project_id = 'other' where project_id = 'api'",
    "update invoice_charges set amount = amount + 1",
    "delete from invoice_charges where charge_key = 'u-shop/instance_hour/5/0'",
  ]);
  const { rows } = await sql<{ count: number }>`select count(*)::int as count from invoice_charges`.execute(
    server.ledger,
  );
  const differing = (rows[0]?.count ?? 0) - 1;
  expect(differing).toBeGreaterThan(100);
  expect(findings.counts.get("INVOICE_CHARGE_DIFFERS")).toBe(differing);
  const kept = Map.groupBy(findings.kept, ({ code }) => code);
  expect(kept.get("INVOICE_CHARGE_DIFFERS")).toHaveLength(100);
  expect(kept.get("INVOICE_CHARGE_MISSING")).toHaveLength(1);
});

test("an organization, and a range of months, are audited alone", async () => {
  const wrong = "update plan_charges set amount = 7, price = 7 where key = 'u-shop/instance_hour/20/0'";
  const found = async (options: BillingAuditOptions) =>
    (await auditForged([wrong], options)).findings.counts.has("CHARGE_DIFFERS");
  const day = (text: string) => new Date(`${text}T00:00:00Z`);
  expect(await found({ organizationId: "acme", from: day("2026-01-15"), to: day("2026-01-20") })).toBe(true);
  expect(await found({ organizationId: "beta" })).toBe(false);
  expect(await found({ organizationId: "acme", from: day("2026-02-01") })).toBe(false);
});

// Shows: docs/billing-audit.md#what-is-compared: each of 20 kinds of planted errors
describe("an error that is planted is found:", () => {
  test.each(plantedErrors)("$what", async ({ code, statements }) => {
    const { findings } = await auditForged(statements);
    expect([...findings.counts.keys()]).toContain(code);
  });
});

// Shows: docs/billing-audit.md#what-is-compared: What was recorded since the last invoices is for the next ones
test("what is charged while invoices are issued for hours is for the next ones", async () => {
  const slow = "update invoice_cycles set issued_at = issued_at + interval '5 hours'";
  const recorded = (when: string) => [
    slow,
    "delete from invoice_charges where charge_key = 'u-site/instance_hour/20/0'",
    `update plan_charges set recorded_at = (select max(issued_at) from invoices) + interval '${when}' where key = 'u-site/instance_hour/20/0'`,
  ];
  const isMissing = async (statements: readonly string[]) =>
    (await auditForged(statements)).findings.counts.has("INVOICE_CHARGE_MISSING");
  expect(await isMissing([slow])).toBe(false);
  expect(await isMissing(recorded("1 hour"))).toBe(false);
  expect(await isMissing(recorded("-2 hours"))).toBe(true);
  // Of an organization without an invoice of the month.
  const none = ["invoices", "invoice_lines", "invoice_charges"].map(
    (table) => `delete from ${table} where organization_id = 'beta' and cycle_start = '2026-02-01'`,
  );
  expect(await isMissing([slow, ...none])).toBe(true);
});

test("a project may wait for its adjustment for a day, also without a late change", async () => {
  const waits = server.ledger.transaction().execute(async (transaction) => {
    const since = async (change: string) => {
      const { rows } = await sql<{ late_since: Date | null; now: Date }>`
        update plan_meters set ${sql.raw(change)} where project_uid = 'u-blog' returning late_since, now()`.execute(
        transaction,
      );
      return rows[0];
    };
    await forge(
      transaction,
      "update plan_meters set late_from = now(), late_since = '2026-02-01Z' where project_uid = 'u-blog'",
    );
    expect((await since("late_from = '2026-01-01Z'"))?.late_since).toEqual(new Date("2026-02-01Z"));
    expect((await since("late_from = null"))?.late_since).toBeNull();
    const begun = await since("late_from = '2026-02-28Z'");
    expect(begun?.late_since).toEqual(begun?.now);
    expect((await auditSnapshot(transaction)).findings.kept).toEqual([]);
    throw new Error("taken back");
  });
  await expect(waits).rejects.toThrow("taken back");
});

// Shows: docs/billing-audit.md#what-is-compared: Where nothing was metered for a day
test("a project waits for its adjustment for as long as nothing is metered", async () => {
  const { findings, pendingAdjustments } = await auditForged([
    "update plan_meters set late_from = metered_until, late_since = now() - interval '25 hours', late_arrival = arrivals where project_uid = 'u-late'",
  ]);
  expect(findings.kept).toEqual([]);
  expect(pendingAdjustments).toBe(1);
});

// Shows: docs/billing-audit.md#what-is-compared: an audit goes on after a part that fails
test.each([
  ["a first month", "plan_charges", "cycle_start = '0001-01-01'"],
  ["no first month", "usage_by_project", "cycle_start = '-infinity'"],
  ["a later month", "usage_by_day", "day = '9999-01-01'"],
  ["no date", "invoices", "cycle_start = 'infinity'"],
  ["a settlement of then", "charges", "settle_cycle = '9999-01-01'"],
])("an audit goes on after %s that is none", { timeout: 30_000 }, async (_, table, forged) => {
  const one = `(select ctid from ${table} where organization_id = 'beta' limit 1)`;
  const { findings, organizations } = await auditForged([
    `alter table ${table} disable trigger all`,
    ...(await checksOf(table)).map((name) => `alter table ${table} drop constraint ${name} cascade`),
    `update ${table} set ${forged} where ctid = ${table === "charges" ? one.replace("beta", "gamma") : one}`,
    "update plan_charges set amount = 7, price = 7 where key = 'u-shop/instance_hour/20/0'",
    "update billable_changes set instances = 2147483647 where project_uid = 'u-site' and not deleted",
  ]);
  expect(organizations).toBe(3);
  const counts = [...findings.counts.keys()];
  expect(counts).toEqual(expect.arrayContaining(["DATE_OUT_OF_RANGE", "CHARGE_DIFFERS", "HISTORY_INVALID"]));
});

test("an audit goes on without a table that it finds organizations in", async () => {
  const { findings } = await auditForged(
    [
      "alter table settlements rename to other",
      "update plan_charges set amount = 7, price = 7 where key = 'u-shop/instance_hour/20/0'",
    ],
    { from: new Date("2026-01-01T00:00:00Z") },
  );
  expect(findings.kept).toContainEqual(
    expect.objectContaining({ code: "AUDIT_INCOMPLETE", key: "settlements" }),
  );
  expect(findings.counts.has("CHARGE_DIFFERS")).toBe(true);
});

test("an organization is given up after the second part that the ledger takes too long for", async () => {
  const findings = new BillingFindings();
  const timeouts = { count: 0 };
  await server.ledger.transaction().execute(async (transaction) => {
    for (const key of ["first", "second", "third"]) {
      await auditPart(transaction, { organizationId: "acme", key, timeouts }, findings.report, async () => {
        await sql`set local statement_timeout = 50`.execute(transaction);
        await sql`select pg_sleep(60)`.execute(transaction);
      });
    }
  });
  const found = "canceling statement due to statement timeout";
  expect(findings.kept).toMatchObject([
    { code: "AUDIT_INCOMPLETE", key: "first", found },
    {
      code: "AUDIT_INCOMPLETE",
      key: "second",
      found: `${found}: what follows of the organization is left out`,
    },
  ]);
});

async function checksOf(table: string): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select conname as name from pg_constraint where conrelid = ${table}::regclass and contype in ('c', 'f')`.execute(
    server.ledger,
  );
  return rows.map(({ name }) => name);
}

test("an audit that takes longer than it may ends, and another one can begin", async () => {
  const audit = (options: BillingAuditOptions = {}) =>
    auditBilling(server.connect(), { organizationId: "gamma", ...options });
  await server
    .connect()
    .transaction()
    .execute(async (transaction) => {
      await sql`set local idle_in_transaction_session_timeout = 0`.execute(transaction);
      await sql`lock table charges in access exclusive mode`.execute(transaction);
      await expect(audit({ timeoutMs: 1 })).rejects.toThrow("the audit takes longer than 0.001 s");
      await expect(audit()).rejects.toThrow(AuditRunningError);
    });
  expect((await audit({ timeoutMs: 60_000 })).findings.kept).toEqual([]);
});

// Shows: docs/billing-audit.md#the-command: An upgrade whose migrations
test("a migration ends an audit that runs, and waits for none of its locks", async () => {
  const audits = connectLedger({
    url: server.postgres.url,
    applicationName: AUDIT_APPLICATION,
    statementTimeoutMs: 120_000,
  });
  const begun = Promise.withResolvers<void>();
  const audit = withAuditLock(audits, (connection) =>
    connection.transaction().execute(async (transaction) => {
      await sql`lock table charges in access share mode`.execute(transaction);
      begun.resolve();
      await sql`select pg_sleep(100)`.execute(transaction);
    }),
  );
  const ended = expect(audit).rejects.toThrow(/terminat/);
  await begun.promise;
  await server.ledger.transaction().execute(async (transaction) => {
    await endAudits(transaction);
    await sql`lock table charges in access exclusive mode`.execute(transaction);
    // Another one waits for the migration.
    await expect(withAuditLock(audits, async () => undefined)).rejects.toThrow(AuditRunningError);
  });
  await ended;
  await audits.destroy();
});

// Shows: docs/billing-audit.md#the-command: An upgrade whose migrations
test("a migration ends an audit that began after its transaction", async () => {
  const audits = connectLedger({
    url: server.postgres.url,
    applicationName: AUDIT_APPLICATION,
    statementTimeoutMs: 120_000,
  });
  await server.ledger.transaction().execute(async (transaction) => {
    // From here on the transaction sees the connections that there are now.
    await sql`select from pg_stat_activity`.execute(transaction);
    const begun = Promise.withResolvers<void>();
    const audit = withAuditLock(audits, async (connection) => {
      begun.resolve();
      await sql`select pg_sleep(100)`.execute(connection);
    });
    const ended = expect(audit).rejects.toThrow(/terminat/);
    await begun.promise;
    await endAudits(transaction);
    await ended;
  });
  await audits.destroy();
});

test("an organization is audited of which there is nothing but a run, an hour of storage, or a sum of a day", async () => {
  const { organizations, findings } = await auditForged([
    'insert into job_runs select r.* from job_runs o, json_populate_record(o, \'{"organization_id": "only-runs"}\') r limit 1',
    'insert into storage_hours select r.* from storage_hours o, json_populate_record(o, \'{"organization_id": "only-hours"}\') r limit 1',
    "insert into usage_by_day values ('only-sums', '2026-01-01', 'term', 1, 1)",
  ]);
  expect(organizations).toBe(6);
  const found = new Map(findings.kept.map(({ organizationId, code }) => [organizationId, code]));
  expect([found.get("only-runs"), found.get("only-hours"), found.get("only-sums")]).toEqual([
    "RUN_CHARGE_MISSING",
    "STORAGE_CHARGE_MISSING",
    "SUM_DIFFERS",
  ]);
});

test("nothing of them is left", async () => {
  const { rows } = await sql<{ shops: number }>`
    select count(*)::int as shops from plan_charges where key = 'u-shop/instance_hour/5/0'`.execute(
    server.ledger,
  );
  expect(rows).toEqual([{ shops: 1 }]);
  expect((await auditForged([])).findings.kept).toEqual([]);
});

describe("seals", () => {
  test("have every column of what they seal", async () => {
    for (const table of tablesOf(sealScheme, sealScheme.format)) {
      const { name } = table;
      const { rows } = await sql<{ column_name: string }>`
        select column_name from information_schema.columns where table_name = ${name} order by ordinal_position`.execute(
        server.ledger,
      );
      expect([name, rows.map(({ column_name }) => column_name).sort()]).toEqual([
        name,
        columnsOf(table, sealScheme.format).sort(),
      ]);
    }
  });

  // Shows: docs/billing-audit.md#seals: a column that a later release adds
  test("of an earlier format have the columns of then, and later ones what was added", async () => {
    const later: SealScheme = {
      format: 2,
      tables: [
        ...sealScheme.tables.map((table) =>
          table.name === "billable_changes" ? { ...table, added: { 2: ["reason"] } } : table,
        ),
        { name: "reasons", since: 2, columns: ["organization_id", "recorded_at"], recordedAt: "recorded_at" },
      ],
    };
    const found = async (transaction: Ledger, scheme: SealScheme) => {
      const findings = new BillingFindings();
      await auditSeals(transaction, { scheme }, findings.report);
      return [...findings.counts];
    };
    const altered = server.ledger.transaction().execute(async (transaction) => {
      await forge(
        transaction,
        "alter table billable_changes add column reason text not null default 'none'",
        "create table reasons (organization_id text, recorded_at timestamptz)",
        "insert into reasons values ('beta', '2026-01-02Z'), ('beta', now())",
        `insert into billable_changes select organization_id, project_id, 'u-reason', number, at, deleted, plan, payment_mode, renews,
          instances, paused, billed_gb, now(), late, arrival, 'more' from billable_changes where project_uid = 'u-blog'`,
      );
      expect(await found(transaction, later)).toEqual([]);
      expect(await found(transaction, sealScheme)).toEqual([]);
      expect(await sealNext(transaction, { lagMs: 0, scheme: later })).toMatchObject({ seal: { rows: 2 } });
      expect(await found(transaction, later)).toEqual([]);
      expect(await found(transaction, sealScheme)).toEqual([["SEAL_FORMAT_UNKNOWN", 1]]);
      await forge(transaction, "update billable_changes set reason = 'other' where project_uid = 'u-reason'");
      expect(await found(transaction, later)).toEqual([["SEAL_ROWS_DIFFER", 1]]);
      await forge(transaction, "update billing_seals set format = 1 where format = 2");
      expect((await found(transaction, later)).map(([code]) => code)).toContain("SEAL_DIFFERS");
      throw new Error("taken back");
    });
    await expect(altered).rejects.toThrow("taken back");
  });

  // Shows: docs/billing-audit.md#seals: without new rows there is no new seal
  test("are made once, and none without rows", async () => {
    const { rows } = await sql<{ seals: number; rows: string }>`
      select count(*)::int as seals, sum(rows) as rows from billing_seals`.execute(server.ledger);
    expect(rows[0]?.seals).toBeGreaterThan(10);
    const { seals } = await auditForged([]);
    expect(seals).toMatchObject({ seals: rows[0]?.seals, rows: Number(rows[0]?.rows), retired: 0 });
    expect(await sealAll(server.ledger)).toEqual([]);
  });

  test("are of as much time as is wanted", async () => {
    const shorter = server.ledger.transaction().execute(async (transaction) => {
      await forge(transaction, "delete from billing_seal_leaves", "delete from billing_seals");
      const { seal } = await sealNext(transaction, { lagMs: 0, longestMs: 7_200_000, scheme: sealScheme });
      const { rows } = await sql<{ first: Date }>`select min(recorded_at) as first from price_lists`.execute(
        transaction,
      );
      expect(seal?.to.getTime()).toBe((rows[0]?.first.getTime() ?? 0) + 7_200_000);
      throw new Error("taken back");
    });
    await expect(shorter).rejects.toThrow("taken back");
  });

  test("cannot be changed, removed, or made beside the chain", async () => {
    for (const statement of [
      "update billing_seals set rows = rows + 1",
      "delete from billing_seals",
      "truncate billing_seals cascade",
      "update billing_seal_leaves set rows = rows + 1",
      "delete from billing_seal_leaves",
      "insert into billing_seal_leaves select number, relation, 'other', part, rows, hash from billing_seal_leaves",
      "insert into billing_seals select number + 1, format, sealed_from, sealed_to, rows, sealed_at, previous, hash from billing_seals order by number desc limit 1",
    ]) {
      await expect(sql.raw(statement).execute(server.ledger)).rejects.toThrow(/append-only|added|follow/);
    }
  });

  test.each([
    ["a seal", "update billing_seals set rows = rows + 1 where number = 3", "SEAL_DIFFERS"],
    [
      "a time",
      "update billing_seals set sealed_at = sealed_at - interval '1 day' where number = 3",
      "SEAL_DIFFERS",
    ],
    [
      "an end that was removed",
      `with other as (delete from billing_seal_leaves where number > 3),
        older as (update billing_seals set sealed_at = sealed_at - interval '2 hours' where number <= 3)
        delete from billing_seals where number > 3`,
      "SEAL_MISSING",
    ],
    ["a removed seal", "delete from billing_seals where number = 3", "SEAL_DIFFERS"],
    ["a removed leaf", "delete from billing_seal_leaves where number = 3", "SEAL_DIFFERS"],
    [
      "rows that are sealed again",
      "with other as (update billing_seal_leaves set hash = sha256('') where number = 3) update billing_seals set hash = sha256('') where number = 3",
      "SEAL_DIFFERS",
    ],
  ])("are found with %s that was changed", async (_, statement, code) => {
    const { findings } = await auditForged([statement]);
    expect([...findings.counts.keys()]).toContain(code);
  });

  // Shows: docs/billing-audit.md#seals: With `--from`
  test("are compared with the one before from the first one of the range on", async () => {
    const { rows } = await sql<{ last: number }>`
      select max(number)::int as last from billing_seals where sealed_to <= '2026-02-01Z'`.execute(
      server.ledger,
    );
    const last = rows[0]?.last ?? 0;
    expect(last).toBeGreaterThan(5);
    const from = new Date("2026-02-20T00:00:00Z");
    const found = async (number: number, options: BillingAuditOptions) => {
      const forged = `update billing_seals set rows = rows + 1 where number = ${number}`;
      const { findings, seals } = await auditForged([forged], options);
      return [findings.counts.has("SEAL_DIFFERS"), seals.chainFrom];
    };
    expect(await found(last, {})).toEqual([true, 1]);
    expect(await found(last, { from })).toEqual([false, last + 1]);
    expect(await found(last + 1, { from })).toEqual([true, last + 1]);
  });

  // Shows: docs/billing-audit.md#seals: rows that are older than a day and in no seal are
  test("are missed where there are none", async () => {
    const removed = ["delete from billing_seal_leaves", "delete from billing_seals"];
    const { findings, seals } = await auditForged(removed);
    expect(findings.kept.map(({ code, key }) => [code, key])).toEqual(
      ["billable_changes", "charges", "plan_charges", "price_lists"].map((name) => ["SEAL_MISSING", name]),
    );
    expect(seals).toMatchObject({ seals: 0, until: undefined, firstAt: undefined, lastAt: undefined });
    const { seals: known } = await auditForged([]);
    const { rows } = await sql<{ first: Date; last: Date; until: Date }>`
      select min(sealed_at) as first, max(sealed_at) as last, max(sealed_to) as until from billing_seals`.execute(
      server.ledger,
    );
    const second = (at: Date | undefined) => at?.toISOString().replace(/\.\d+/, "");
    expect(known).toMatchObject({
      until: second(rows[0]?.until),
      firstAt: second(rows[0]?.first),
      lastAt: second(rows[0]?.last),
    });
  });

  // Shows: docs/billing-audit.md#seals: While seals are made
  test("are not missed while they are being made", async () => {
    const { findings, seals } = await auditForged([
      "delete from billing_seal_leaves where number > 3",
      "delete from billing_seals where number > 3",
    ]);
    expect(findings.kept).toEqual([]);
    expect(seals.isCatchingUp).toBe(true);
    expect((await auditForged([])).seals.isCatchingUp).toBe(false);
  });

  // Shows: docs/billing-audit.md#seals: `--head` says whether it is still in the chain
  test("are found without their end by a hash that was kept", async () => {
    const { seals } = await auditForged([]);
    const head = seals.head ?? "";
    const last = "(select max(number) from billing_seals)";
    const statements = [
      `delete from billing_seal_leaves where number = ${last}`,
      `delete from billing_seals where number = ${last}`,
    ];
    expect((await auditForged(statements)).findings.total).toBe(0);
    expect([...(await auditForged(statements, { head })).findings.counts]).toEqual([
      ["SEAL_HEAD_UNKNOWN", 1],
    ]);
    expect((await auditForged([], { head })).findings.total).toBe(0);
  });

  test("are compared for one organization", async () => {
    const wrong = [
      "update charges set recorded_at = recorded_at + interval '1 microsecond' where organization_id = 'gamma'",
    ];
    const found = async (organizationId: string) =>
      (await auditForged(wrong, { organizationId })).findings.counts.has("SEAL_ROWS_DIFFER");
    expect(await found("gamma")).toBe(true);
    expect(await found("acme")).toBe(false);
  });

  // Shows: docs/billing-audit.md#seals: leave the hash and the count in their seal
  test("keep the hash and the number of rows that were deleted as they aged", async () => {
    const retire = [
      "insert into retirements (due_before) values ('2026-02-01Z')",
      "delete from charges where due_at < '2026-02-01Z'",
      "delete from job_runs where scheduled_minute < '2026-02-01Z'",
      "delete from storage_hours where hour_started_at < '2026-02-01Z'",
    ];
    const { findings, seals } = await auditForged(retire);
    expect(findings.kept).toEqual([]);
    expect(seals.retired).toBeGreaterThan(10);
    const more = "delete from charges where due_at >= '2026-02-03Z' and due_at < '2026-02-04Z'";
    expect((await auditForged([...retire, more])).findings.counts.has("SEAL_ROWS_DIFFER")).toBe(true);
  });

  // Shows: docs/billing-audit.md#seals: of each day and settlement apart
  test("excuse what was deleted as it aged, and nothing beside it", async () => {
    const retire = [
      "insert into retirements (due_before) values ('2026-01-25T12:00Z')",
      "delete from charges where due_at < '2026-01-25T12:00Z'",
      "delete from job_runs where scheduled_minute < '2026-01-25T12:00Z'",
    ];
    const found = async (...statements: string[]) =>
      (await auditForged([...retire, ...statements])).findings.kept.map(({ code, key }) => [
        code,
        key.replace(/^\d+\//, ""),
      ]);
    expect(await found()).toEqual([]);
    // Of the two that were recorded together.
    const other = ["SEAL_ROWS_DIFFER", "charges/2026-01-26/2026-02-01"];
    expect(await found("delete from charges where due_at = '2026-01-26T04:00Z'")).toContainEqual(other);
    const late = ["SEAL_ROWS_DIFFER", "charges/2026-01-16/2026-02-01"];
    expect(
      await found("update billing_cycles set settled_at = null where cycle_start = '2026-02-01'"),
    ).toContainEqual(late);
    expect(
      await found(
        "delete from invoice_cycles where cycle_start = '2026-02-01'",
        "delete from invoices where cycle_start = '2026-02-01'",
      ),
    ).toContainEqual(late);
  });

  test("say of which settlements charges may have been deleted", async () => {
    const retire = [
      "insert into retirements (due_before) values ('2026-01-25Z')",
      "delete from charges where due_at < '2026-01-25Z'",
      "delete from job_runs where scheduled_minute < '2026-01-25Z'",
    ];
    const differs = async (organization: string, amount: string) => {
      const charge = `update charges set amount = amount ${amount} where organization_id = '${organization}' and due_at = '2026-02-03T03:00Z'`;
      return (await auditForged([...retire, charge])).findings.counts.has("SETTLEMENT_DIFFERS");
    };
    // With February's of gamma a run of January is settled, which is deleted.
    expect(await differs("acme", "- 0.1")).toBe(true);
    expect(await differs("gamma", "- 0.1")).toBe(false);
    expect(await differs("gamma", "+ 100")).toBe(true);
  });

  // Shows: docs/billing-audit.md#seals: a seal has the rows of its time for good
  test("wait for a transaction that began before, and have what it records", async () => {
    const before = await auditForged([]);
    await server
      .connect()
      .transaction()
      .execute(async (transaction) => {
        const { rows } = await sql<{ now: Date }>`select now()`.execute(transaction);
        const began = rows[0]?.now.getTime() ?? 0;
        const { until } = await sealBilling(server.ledger, { lagMs: 0 });
        expect(until?.getTime()).toBeLessThanOrEqual(began);
        await sql`
        insert into billable_changes (organization_id, project_id, project_uid, number, at, plan, payment_mode, renews, instances,
          paused, billed_gb) values ('beta', 'new', 'u-new', 1, date_trunc('milliseconds', now()), 'basic', 'hourly', true, 1, false, 0)`.execute(
          transaction,
        );
        expect(await sealAll(server.ledger)).toEqual([]);
      });
    expect(await sealAll(server.ledger)).toMatchObject([{ rows: 1 }]);
    const { findings, seals } = await auditForged([]);
    expect(findings.kept).toEqual([]);
    expect(seals).toMatchObject({ seals: before.seals.seals + 1, rows: before.seals.rows + 1 });
  });

  // Shows: docs/billing-audit.md#seals: seals are a chain, which two operators do not fork
  test("are made by one process at a time", async () => {
    await server
      .connect()
      .transaction()
      .execute(async (transaction) => {
        await sql`select pg_advisory_xact_lock(hashtextextended('billing seals', 0))`.execute(transaction);
        expect(await sealBilling(server.ledger)).toEqual({
          seal: undefined,
          until: undefined,
          isMore: false,
        });
      });
  });

  // Shows: docs/billing-audit.md#seals: any alteration or removal of a sealed row is found
  test("find each of many mutations of sealed rows", { timeout: 300_000 }, async () => {
    const seed = 20261130;
    const missed: string[] = [];
    const mutated = server.ledger.transaction().execute(async (transaction) => {
      const mutations = await prepareMutations(transaction, sealScheme.tables, seed);
      for (let index = 0; index < (isLong ? 1_000 : 100); index += 1) {
        await sql`savepoint mutation`.execute(transaction);
        const what = await mutations.next();
        const findings = new BillingFindings();
        // Whatever a row has, the audit itself does not end by it.
        const isWhole = isLong || index % 5 === 0;
        const { counts } = isWhole ? (await auditSnapshot(transaction)).findings : findings;
        if (!isWhole) {
          await auditSeals(transaction, {}, findings.report);
        }
        if (!counts.has("SEAL_ROWS_DIFFER")) {
          missed.push(`${index}: ${what}`);
        }
        await sql`rollback to savepoint mutation`.execute(transaction);
      }
      const after = new BillingFindings();
      await auditSeals(transaction, {}, after.report);
      expect(after.kept).toEqual([]);
      throw new Error("taken back");
    });
    await expect(mutated).rejects.toThrow("taken back");
    expect(missed).toEqual([]);
  });
});
