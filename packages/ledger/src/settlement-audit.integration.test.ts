import { readFileSync } from "node:fs";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { jobRun, storageHour } from "../../../test/kit/ledger/charged-rows.ts";
import { startJobLedger, type TestJobLedger } from "../../../test/kit/ledger/job-ledger.ts";
import { recordJobRuns, recordStorageCharges, settleCycle } from "./index.ts";

let test: TestJobLedger;

beforeAll(async () => {
  test = await startJobLedger();
});
afterAll(() => test?.stop());
beforeEach(() => test.empty());

const month = (index: number) => new Date(Date.UTC(2025, 9 + index, 1));

describe("what docs/ledger.md gives an auditor", () => {
  const page = readFileSync(new URL("../../../docs/ledger.md", import.meta.url), "utf8");
  const [settlements = "", sums = ""] = [...page.matchAll(/```sql\n([^`]*)```/g)].map(([, block]) => block);
  const [recompute = "", unmatched = ""] = settlements.split(";\n");
  /** What a statement finds, after a forgery that nobody could make: it is taken back. */
  const audit = async (statement: string, forgery = "select"): Promise<Record<string, unknown>[]> => {
    let found: Record<string, unknown>[] = [];
    const forged = test.ledger.transaction().execute(async (transaction) => {
      await sql`set local session_replication_role = replica`.execute(transaction);
      await sql.raw(forgery).execute(transaction);
      found = (await sql.raw<Record<string, unknown>>(statement).execute(transaction)).rows;
      throw new Error("taken back");
    });
    await expect(forged).rejects.toThrow("taken back");
    return found;
  };

  beforeEach(async () => {
    const at = (cycle: number, minute: number) => new Date(month(cycle).getTime() + minute * 60_000);
    const runs = [1, 2, 3].map((cycle) =>
      jobRun({ organization_id: "alpha", scheduled_at: at(cycle, 7), price_per_minute: "2.3" }),
    );
    await recordJobRuns(test.ledger, runs);
    await recordStorageCharges(test.ledger, [storageHour({ organization_id: "beta", from: at(3, 0) })]);
    await settleCycle(test.ledger, month(3));
  });

  it("recomputes a cycle's settlements", async () => {
    expect(await audit(recompute)).toEqual([
      expect.objectContaining({ organization_id: "alpha", carry_is_right: true, total_is_right: true }),
      expect.objectContaining({ organization_id: "beta", carry_is_right: true, total_is_right: true }),
    ]);
    expect(await audit(unmatched)).toEqual([]);
  });

  it.each([
    [
      "a carry that was dropped",
      "update settlements set carry_in = 0, total = total - carry_in, carry_out = carry_out - carry_in where cycle_start = '2026-01-01'",
      "carry_is_right",
    ],
    ["a charge that was lost", "delete from charges where kind = 'job_run'", "total_is_right"],
  ])("finds %s", async (_, forgery, finding) => {
    const rows = await audit(recompute, forgery);
    expect(rows.find((row) => row.organization_id === "alpha")).toMatchObject({ [finding]: false });
  });

  it.each([
    ["a run without its charge", "delete from charges where kind = 'job_run'", 3],
    ["a charge without its run", "delete from job_runs where cycle_start = '2026-01-01'", 1],
    ["a charge that was changed", "update charges set amount = 1", 4],
    ["an hour without its charge", "delete from charges where kind = 'storage'", 1],
  ])("finds %s", async (_, forgery, count) => {
    expect(await audit(unmatched, forgery)).toHaveLength(count);
  });

  it("compares sums of usage with their charges", async () => {
    expect(await audit("select from usage_by_project union all select from usage_by_day")).toHaveLength(8);
    expect(await audit(sums)).toEqual([]);
  });

  it.each([
    ["sums of projects that were changed", "update usage_by_project set amount = amount + 1", 4],
    ["sums of days that were changed", "update usage_by_day set charges = charges + 1", 4],
    ["sums that were deleted", "delete from usage_by_day where organization_id = 'alpha'", 3],
    ["charges that were not summed", "update charges set amount = amount + 1 where kind = 'storage'", 2],
    [
      "nothing in cycles whose charges may be gone",
      "with gone as (delete from charges) insert into retirements (due_before) values ('2026-01-01Z')",
      0,
    ],
  ])("finds %s", async (_, forgery, count) => {
    expect(await audit(sums, forgery)).toHaveLength(count);
  });
});
