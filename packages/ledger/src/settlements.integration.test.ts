import { billingCycle } from "@slipway/crds";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { jobRun } from "../../../test/kit/ledger/charged-rows.ts";
import { startJobLedger, type TestJobLedger } from "../../../test/kit/ledger/job-ledger.ts";
import { listSettlements, maySettle, newestSettleableCycle, recordJobRuns, settleCycle } from "./index.ts";

let test: TestJobLedger;

beforeAll(async () => {
  test = await startJobLedger();
});
afterAll(() => test?.stop());
beforeEach(() => test.empty());

const month = (index: number) => new Date(Date.UTC(2025, 9 + index, 1));

/** Until some transaction waits for a lock of this kind. */
async function waitForLock(kind: string): Promise<void> {
  const waiting = sql`select from pg_locks where locktype = ${kind} and not granted`;
  await expect.poll(async () => (await waiting.execute(test.ledger)).rows.length).toBeGreaterThan(0);
}

describe("a settlement", () => {
  const run = (cycle: number, minute: number, price: string, organization_id = "alpha") =>
    jobRun({
      organization_id,
      scheduled_at: new Date(month(cycle).getTime() + minute * 60_000),
      price_per_minute: price,
    });
  const cents = async (organizationId = "alpha") =>
    (await listSettlements(test.ledger, { organizationId }))
      .reverse()
      .map(({ cycle_start, carry_in, total, charged_cents, carry_out }) => [
        cycle_start.toISOString().slice(0, 7),
        ...[carry_in, total, charged_cents, carry_out],
      ]);

  // Shows: docs/jobs.md#billing: at the end of a cycle whole cents are charged, the fraction is carried
  it("charges whole cents and carries the fraction, also over cycles without charges", async () => {
    await recordJobRuns(test.ledger, [run(0, 0, "10.4"), run(0, 1, "0.35"), run(3, 0, "0.25")]);
    expect(await settleCycle(test.ledger, month(3))).toBe(4);
    expect(await cents()).toEqual([
      ["2025-10", "0", "10.75", 10n, "0.75"],
      ["2025-11", "0.75", "0.75", 0n, "0.75"],
      ["2025-12", "0.75", "0.75", 0n, "0.75"],
      ["2026-01", "0.75", "1", 1n, "0"],
    ]);
  });

  it("takes a run where it started, though it was scheduled and ended in other months", async () => {
    const scheduled_at = new Date(month(1).getTime() - 60_000);
    const started_at = new Date(month(1).getTime());
    const before = jobRun({ organization_id: "alpha", scheduled_at, started_at, price_per_minute: "2" });
    const crossing = jobRun({
      organization_id: "alpha",
      scheduled_at: new Date(month(2).getTime() - 120_000),
      seconds: 3_600,
      price_per_minute: "1",
    });
    await recordJobRuns(test.ledger, [before, crossing]);
    await settleCycle(test.ledger, month(2));
    expect(await cents()).toEqual([
      ["2025-11", "0", "62", 62n, "0"],
      ["2025-12", "0", "0", 0n, "0"],
    ]);
  });

  it("stays as it is; what comes later is in the next open one, once", async () => {
    await recordJobRuns(test.ledger, [run(0, 0, "1.5")]);
    await settleCycle(test.ledger, month(1));
    const late = [run(0, 1, "0.75"), run(1, 0, "3")];
    await recordJobRuns(test.ledger, late);
    await recordJobRuns(test.ledger, late);
    expect(await settleCycle(test.ledger, month(0))).toBe(0);
    expect(await settleCycle(test.ledger, month(1))).toBe(0);
    await settleCycle(test.ledger, month(2));
    expect(await cents()).toEqual([
      ["2025-10", "0", "1.5", 1n, "0.5"],
      ["2025-11", "0.5", "0.5", 0n, "0.5"],
      ["2025-12", "0.5", "4.25", 4n, "0.25"],
    ]);
  });

  it("continues where it was interrupted", async () => {
    await recordJobRuns(test.ledger, [run(0, 0, "1.5"), run(0, 0, "2.5", "beta")]);
    await settleCycle(test.ledger, month(0));
    await test.ledger.transaction().execute(async (transaction) => {
      await sql`set local session_replication_role = replica`.execute(transaction);
      await sql`delete from settlements where organization_id = 'beta'`.execute(transaction);
      await sql`update billing_cycles set settled_at = null`.execute(transaction);
    });
    await recordJobRuns(test.ledger, [run(0, 5, "100", "beta")]);
    expect(await settleCycle(test.ledger, month(0))).toBe(1);
    expect(await cents("beta")).toEqual([["2025-10", "0", "2.5", 2n, "0.5"]]);
  });

  it("is refused for a cycle that has not ended, and for what is none", async () => {
    await recordJobRuns(test.ledger, [run(0, 0, "1.5")]);
    await expect(settleCycle(test.ledger, billingCycle(new Date()).startedAt)).rejects.toThrow(RangeError);
    await expect(settleCycle(test.ledger, new Date(month(0).getTime() + 1))).rejects.toThrow(RangeError);
    const { rows } = await sql`select from billing_cycles`.execute(test.ledger);
    expect(rows).toEqual([]);
  });

  it("cannot be changed or deleted", async () => {
    await recordJobRuns(test.ledger, [run(0, 0, "1.5")]);
    await settleCycle(test.ledger, month(0));
    for (const change of ["update settlements set total = 2", "delete from settlements"]) {
      await expect(sql.raw(change).execute(test.ledger)).rejects.toThrow(/append-only/);
    }
  });

  it("made by two concurrently is made once", async () => {
    const rows = Array.from({ length: 200 }, (_, index) => run(index % 3, index, "0.35", `o${index % 50}`));
    await recordJobRuns(test.ledger, rows);
    const pools = [test.ledger, test.connect(), test.connect()];
    const made = await Promise.all(pools.map((pool) => settleCycle(pool, month(2))));
    const { rows: found } = await sql<{ total: string; settlements: number }>`
      select sum(charged_cents + case when cycle_start = '2025-12-01' then carry_out else 0 end)::text as total,
        count(*)::int as settlements from settlements`.execute(test.ledger);
    expect(found[0]?.total).toBe("70.00");
    expect(made.reduce((sum, count) => sum + count, 0)).toBe(found[0]?.settlements);
  });
});

describe("charges while cycles are settled", () => {
  it("that are being written when a cycle is closed are waited for", async () => {
    const row = jobRun({ organization_id: "alpha", scheduled_at: month(0), price_per_minute: "5" });
    await recordJobRuns(test.ledger, [{ ...row, organization_id: "beta" }]);
    let recording: Promise<unknown> = Promise.resolve();
    let settled = false;
    let settling: Promise<unknown> = Promise.resolve();
    // A transaction with the same run holds up the recording in the middle of its own.
    const held = test.ledger.transaction().execute(async (transaction) => {
      await sql`
        insert into job_runs select (json_populate_record(r, '{"organization_id": "alpha"}')).* from job_runs r`.execute(
        transaction,
      );
      recording = recordJobRuns(test.connect(), [row]);
      await waitForLock("transactionid");
      settling = settleCycle(test.connect(), month(0)).then(() => {
        settled = true;
      });
      await waitForLock("advisory");
      expect(settled).toBe(false);
      throw new Error("rolled back");
    });
    await expect(held).rejects.toThrow("rolled back");
    await Promise.all([recording, settling]);
    expect((await listSettlements(test.ledger, { organizationId: "alpha" }))[0]?.charged_cents).toBe(5n);
  });
});

describe("a cycle may be settled", () => {
  it.each([
    ["2026-02-01T01:59:59.999Z", false, "2025-12"],
    ["2026-02-01T02:00:00Z", true, "2026-01"],
    ["2026-02-28T23:59:59Z", true, "2026-01"],
    ["2026-03-01T01:00:00Z", true, "2026-01"],
    ["2026-03-01T02:00:00Z", true, "2026-02"],
  ])("at %s: January %s, the newest is %s", (now, january, newest) => {
    expect(maySettle(new Date("2026-01-01T00:00:00Z"), new Date(now))).toBe(january);
    expect(newestSettleableCycle(new Date(now)).toISOString().slice(0, 7)).toBe(newest);
  });
});
