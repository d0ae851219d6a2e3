import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { jobRun, storageHour } from "../../../test/kit/ledger/charged-rows.ts";
import { startJobLedger, type TestJobLedger } from "../../../test/kit/ledger/job-ledger.ts";
import { withAuditLock } from "./billing-audit/lock.ts";
import {
  auditBilling,
  beginInvoicing,
  completeInvoiceCycle,
  findInvoice,
  findJobRun,
  issueInvoice,
  lastStorageHour,
  listInvoiceLines,
  listSettlements,
  readJobRunLog,
  recordJobRuns,
  recordStorageCharges,
  retireJobRuns,
  settleCycle,
  storeJobRunLog,
} from "./index.ts";

let test: TestJobLedger;

beforeAll(async () => {
  test = await startJobLedger();
});
afterAll(() => test?.stop());
beforeEach(() => test.empty());

const organization_id = "acme";
const run = (time: string, facts = {}) =>
  jobRun({ organization_id, scheduled_at: new Date(`${time}Z`), ...facts });
/** 90 days after 2026-01-20, 12:00. */
const now = new Date("2026-04-20T12:00:00Z");
const times = ["2025-12-05T00:00:00", "2026-01-20T11:59:00", "2026-01-20T12:00:00", "2026-03-01T00:00:00"];

async function kept(table: string, time: string): Promise<string[]> {
  const { rows } = await sql<{ at: Date }>`
    select ${sql.ref(time)} as at from ${sql.table(table)} order by 1`.execute(test.ledger);
  return rows.map(({ at }) => at.toISOString().slice(0, 19));
}

async function partitions(table: string): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select inhrelid::regclass::text as name from pg_inherits where inhparent = ${table}::regclass order by 1`.execute(
    test.ledger,
  );
  return rows.map(({ name }) => name);
}

describe("after 90 days", () => {
  // Shows: docs/jobs.md#billing: runs stay in the ledger for 90 days
  it("runs and settled charges are deleted, to the minute, and their months with them", async () => {
    await recordJobRuns(
      test.ledger,
      times.map((time) => run(time)),
    );
    await settleCycle(test.ledger, new Date("2026-03-01T00:00:00Z"));
    const retired = await retireJobRuns(test.ledger, now);
    expect(retired).toMatchObject({ runs: 1, charges: 1 });
    expect(retired.partitions).toEqual(expect.arrayContaining(["job_runs_2025_12", "charges_2025_12"]));
    expect(await kept("job_runs", "scheduled_minute")).toEqual(times.slice(2));
    expect(await kept("charges", "due_at")).toEqual(times.slice(2));
    expect(await partitions("job_runs")).not.toContain("job_runs_2025_12");
    expect(await retireJobRuns(test.ledger, now)).toMatchObject({ partitions: [], runs: 0, charges: 0 });
  });

  // Shows: docs/ledger.md#retention: those of runs and charges stay until the next day while an audit of billing runs
  it("months stay while an audit runs, which is one at a time", { timeout: 30_000 }, async () => {
    await recordJobRuns(
      test.ledger,
      times.map((time) => run(time)),
    );
    await settleCycle(test.ledger, new Date("2026-03-01T00:00:00Z"));
    await withAuditLock(test.connect(), async () => {
      const retired = await retireJobRuns(test.ledger, now);
      expect(retired).toMatchObject({ runs: 1, charges: 1 });
      expect(retired.partitions.filter((name) => !name.startsWith("job_run_logs"))).toEqual([]);
      await expect(auditBilling(test.connect())).rejects.toThrow("an audit of billing runs");
    });
    const { partitions: dropped } = await retireJobRuns(test.ledger, now);
    expect(dropped).toEqual(expect.arrayContaining(["job_runs_2025_12", "charges_2025_12"]));
    expect((await auditBilling(test.connect())).organizations).toBe(1);
  });

  // Shows: docs/ledger.md#retention: where invoices are issued, those that are on none stay, too
  it("charges of a cycle whose invoices are not issued stay, and those of cycles before do not", async () => {
    await beginInvoicing(test.ledger, new Date("2026-01-01T00:00:00Z"));
    await recordJobRuns(
      test.ledger,
      times.map((time) => run(time)),
    );
    const other = { organization_id: "other" };
    await recordJobRuns(test.ledger, [run("2026-01-06T00:00:00", other)]);
    const hours = ["2026-01-06T00:00:00", "2026-01-07T00:00:00"].map((time) =>
      storageHour({ ...other, from: new Date(`${time}Z`) }),
    );
    await recordStorageCharges(test.ledger, hours);
    await settleCycle(test.ledger, new Date("2026-03-01T00:00:00Z"));
    const terms = { issuer: "", dueDays: 14, taxes: { default: [], countries: {} } };
    await issueInvoice(test.ledger, { organizationId: "other", cycle: "2026-01-01" }, terms);
    // Another organization's invoice keeps neither what is on one, nor hours of storage.
    expect(await retireJobRuns(test.ledger, now)).toMatchObject({ charges: 3, storageHours: 1 });
    expect(await kept("charges", "due_at")).toEqual(times.slice(1));
    const number = await issueInvoice(
      test.ledger,
      { organizationId: organization_id, cycle: "2026-01-01" },
      terms,
    );
    await completeInvoiceCycle(test.ledger, "2026-01-01");
    await retireJobRuns(test.ledger, now);
    expect(await kept("charges", "due_at")).toEqual(times.slice(2));
    // The run of the charge that came too late for its price is known by its amount alone.
    const invoice = await findInvoice(test.ledger, number ?? "");
    const lines = invoice && (await listInvoiceLines(test.ledger, invoice, { after: 0, limit: 9 }));
    expect(lines?.map(({ plan, quantity, amount }) => [plan, quantity, amount])).toEqual([
      [undefined, "1", "0.35"],
      ["job-basic", "1", "0.35"],
    ]);
  });

  it("settlements stay, and what was charged with them", async () => {
    await recordJobRuns(
      test.ledger,
      times.map((time) => run(time)),
    );
    await settleCycle(test.ledger, new Date("2026-03-01T00:00:00Z"));
    const before = await listSettlements(test.ledger, { organizationId: organization_id });
    await retireJobRuns(test.ledger, new Date("2030-01-01T00:00:00Z"));
    expect(await listSettlements(test.ledger, { organizationId: organization_id })).toEqual(before);
    expect(before).toHaveLength(4);
  });

  it("charges stay that no settlement has yet", async () => {
    await recordJobRuns(
      test.ledger,
      times.map((time) => run(time)),
    );
    await settleCycle(test.ledger, new Date("2025-12-01T00:00:00Z"));
    await recordJobRuns(test.ledger, [run("2025-12-06T00:00:00")]);
    await retireJobRuns(test.ledger, now);
    expect(await kept("charges", "due_at")).toEqual(["2025-12-06T00:00:00", ...times.slice(1)]);
    await settleCycle(test.ledger, new Date("2026-03-01T00:00:00Z"));
    await retireJobRuns(test.ledger, now);
    expect(await kept("charges", "due_at")).toEqual(times.slice(2));
    const settled = await listSettlements(test.ledger, { organizationId: organization_id });
    // Five runs at 0.35.
    expect(settled.reduce((sum, { charged_cents }) => sum + charged_cents, 0n)).toBe(1n);
    expect(settled[0]?.carry_out).toBe("0.75");
  });

  it("a run that comes again is not charged again", async () => {
    const rows = times.map((time) => run(time));
    await recordJobRuns(test.ledger, rows);
    await settleCycle(test.ledger, new Date("2026-03-01T00:00:00Z"));
    await retireJobRuns(test.ledger, now);
    const answers = await recordJobRuns(test.ledger, rows);
    expect(answers.map(({ outcome }) => outcome)).toEqual(["refused", "refused", "already", "already"]);
    expect(await kept("charges", "due_at")).toEqual(times.slice(2));
  });

  it("hours of storage are deleted, but the last of each project", async () => {
    const hours = times
      .slice(0, 3)
      .map((time) => storageHour({ organization_id, from: new Date(`${time}Z`) }));
    const other = storageHour({
      organization_id,
      project_uid: "old",
      from: new Date("2025-11-01T00:00:00Z"),
    });
    await recordStorageCharges(test.ledger, [...hours, other]);
    await settleCycle(test.ledger, new Date("2026-03-01T00:00:00Z"));
    expect(await retireJobRuns(test.ledger, now)).toMatchObject({ storageHours: 2 });
    expect(await kept("storage_hours", "hour_started_at")).toEqual(["2025-11-01T00:00:00", times[2]]);
    expect(await lastStorageHour(test.ledger, { organizationId: organization_id, projectUid: "old" })).toBe(
      other.hour_index,
    );
    const again = await recordStorageCharges(test.ledger, hours);
    expect(again.map(({ outcome }) => outcome)).toEqual(["refused", "refused", "already"]);
  });

  it("rows older than that are the only ones that go even by hand", async () => {
    await recordJobRuns(test.ledger, [run(times[2] as string)]);
    const byHand = test.ledger.transaction().execute(async (transaction) => {
      await sql`select set_config('slipway.retire_before', '2026-01-20T12:00:00Z', true)`.execute(
        transaction,
      );
      await sql`delete from job_runs`.execute(transaction);
    });
    await expect(byHand).rejects.toThrow(/append-only/);
  });
});

describe("logs", () => {
  const log = async (row: { project_id: string; id: string }) =>
    readJobRunLog(test.ledger, { organizationId: organization_id, projectId: row.project_id, id: row.id });

  it("are kept until a day after the cycle in which their run started", async () => {
    const early = run("2026-01-10T00:00:00");
    const last = run("2026-01-31T23:59:00");
    // Scheduled in January, started in February.
    const crossing = run("2026-01-31T23:58:00", { started_at: new Date("2026-02-01T00:00:00Z") });
    const unknown = run("2026-01-31T23:57:00");
    const next = run("2026-02-01T00:00:00");
    const all = [early, last, crossing, unknown, next];
    for (const row of all) {
      await storeJobRunLog(test.ledger, row, `log of ${row.id}`);
    }
    await recordJobRuns(
      test.ledger,
      all.filter((row) => row !== unknown),
    );
    const left = async (time: string) => {
      await retireJobRuns(test.ledger, new Date(time));
      const logs = await Promise.all(all.map(log));
      return all.filter((row, index) => logs[index] === `log of ${row.id}`);
    };
    expect(await left("2026-02-01T23:59:59.999Z")).toEqual(all);
    expect(await left("2026-02-02T00:00:00Z")).toEqual([crossing, next]);
    expect(await left("2026-03-01T23:59:59Z")).toEqual([crossing, next]);
    expect(await left("2026-03-02T00:00:00Z")).toEqual([]);
    const key = { organizationId: organization_id, projectId: next.project_id, id: next.id };
    expect(await findJobRun(test.ledger, key)).toEqual(next);
  });

  it("keep what was stored last, without what PostgreSQL cannot hold", async () => {
    const row = run("2026-01-10T00:00:00");
    await storeJobRunLog(test.ledger, row, "first");
    await storeJobRunLog(test.ledger, row, "a\0b \ud800 €");
    expect(await log(row)).toBe("ab � €");
    expect(await log({ ...row, id: `${row.id}-x` })).toBeUndefined();
    await expect(storeJobRunLog(test.ledger, { ...row, id: "other-1" }, "")).rejects.toThrow(RangeError);
  });
});

describe("the command", () => {
  it("retires, makes the next partitions, and says what it did", async () => {
    await recordJobRuns(
      test.ledger,
      times.map((time) => run(time)),
    );
    const command = fileURLToPath(new URL("./retire.ts", import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [command], {
      env: { ...process.env, SLIPWAY_LEDGER_URL: test.postgres.url },
    });
    expect(stdout).toMatch(/^ledger: retired \{"partitions":\[.*job_runs_2025_12/);
    const month = new Date().toISOString().slice(0, 7).replace("-", "_");
    expect(await partitions("job_runs")).toContain(`job_runs_${month}`);
  });
});
