import { billingCycle, formatDecimal, jobRunName, parseDecimal } from "@slipway/crds";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { jobRun } from "../../../test/kit/ledger/charged-rows.ts";
import { startJobLedger, type TestJobLedger } from "../../../test/kit/ledger/job-ledger.ts";
import { type JobRunRow, listJobRuns, type PendingJobRun, recordJobRuns, sumJobRuns } from "./index.ts";

let test: TestJobLedger;

beforeAll(async () => {
  test = await startJobLedger();
});
afterAll(() => test?.stop());
beforeEach(() => test.empty());

const { startedAt: from, nextResetAt: to } = billingCycle(new Date("2026-03-15T00:00:00Z"));
const cycle = { organizationId: "acme", projectId: "nightly", from, to };
const page = { offset: 0, limit: 50 };
/** A minute near the cycle's beginning or end, on either side. */
const minute = fc
  .tuple(fc.constantFrom(from, to), fc.integer({ min: -4, max: 4 }))
  .map(([edge, offset]) => new Date(edge.getTime() + offset * 60_000));
const status = fc.constantFrom<JobRunRow["status"]>("succeeded", "failed", "cancelled", "deadline_exceeded");

/** Newest scheduled first. */
function newestFirst(a: { id: string; scheduled_at: Date }, b: { id: string; scheduled_at: Date }): number {
  return b.scheduled_at.getTime() - a.scheduled_at.getTime() || (a.id < b.id ? 1 : -1);
}

describe("a list of runs", () => {
  const run = fc
    .record({
      organization_id: fc.constantFrom("acme", "acme", "other"),
      project_id: fc.constantFrom("nightly", "nightly", "other"),
      scheduled_at: minute,
      status,
      delay: fc.constantFrom(0, 1_000, 70_000),
      suffix: fc.option(fc.constantFrom("a", "b2"), { nil: undefined }),
    })
    .map(({ delay, suffix, ...facts }) =>
      jobRun({
        ...facts,
        started_at: new Date(facts.scheduled_at.getTime() + delay),
        ...(suffix === undefined ? {} : { suffix }),
      }),
    );
  const pending = fc
    .record({
      scheduled_at: minute.filter((at) => at >= from && at < to),
      status: fc.oneof(status, fc.constant("running" as const)),
      suffix: fc.option(fc.constantFrom("a", "b2"), { nil: undefined }),
    })
    .map(
      ({ scheduled_at, status, suffix }): PendingJobRun => ({
        id: jobRunName("nightly", scheduled_at, suffix),
        scheduled_at,
        status,
      }),
    );
  const unique = {
    selector: (row: { id: string; organization_id?: string }) => `${row.organization_id} ${row.id}`,
  };

  it("is what a reading of all rows would give, on every page, with every status", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(run, { ...unique, maxLength: 25 }),
        fc.uniqueArray(pending, { ...unique, maxLength: 5 }),
        fc.option(fc.oneof(status, fc.constant("running" as const)), { nil: undefined }),
        fc.integer({ min: 1, max: 4 }),
        async (rows, waiting, wanted, limit) => {
          await test.empty();
          await recordJobRuns(test.ledger, rows);
          const mine = rows.filter((row) => row.organization_id === "acme" && row.project_id === "nightly");
          const inCycle = mine.filter(({ started_at }) => started_at >= from && started_at < to);
          const expected = [...inCycle, ...waiting.filter(({ id }) => !mine.some((row) => row.id === id))]
            .filter((entry) => wanted === undefined || entry.status === wanted)
            .sort(newestFirst)
            .map((entry) => ("amount" in entry ? entry : { id: entry.id, pending: true as const }));
          const seen: unknown[] = [];
          for (let offset = 0; offset <= expected.length; offset += limit) {
            const list = await listJobRuns(test.ledger, {
              ...cycle,
              ...(wanted === undefined ? {} : { status: wanted }),
              pending: waiting,
              offset,
              limit,
            });
            expect(list.total).toBe(expected.length);
            seen.push(...list.items);
          }
          expect(seen).toEqual(expected);
          const digits = inCycle.reduce((sum, { amount }) => sum + BigInt(Number(amount) * 100), 0n);
          expect(await sumJobRuns(test.ledger, cycle)).toEqual({
            total_amount: formatDecimal({ units: digits, scale: 2 }),
            executed_runs: inCycle.length,
            billed_minutes: inCycle.reduce((sum, { billed_minutes }) => sum + billed_minutes, 0),
          });
        },
      ),
      { numRuns: 60 },
    );
  }, 240_000);

  it("counts all runs on a page after the last", async () => {
    await recordJobRuns(test.ledger, [jobRun({ organization_id: "acme", scheduled_at: from })]);
    expect(await listJobRuns(test.ledger, { ...cycle, offset: 50, limit: 50 })).toEqual({
      total: 1,
      items: [],
    });
    const nothing = { ...cycle, organizationId: "nobody" };
    expect(await listJobRuns(test.ledger, { ...nothing, ...page })).toEqual({ total: 0, items: [] });
    expect(await sumJobRuns(test.ledger, nothing)).toEqual({
      total_amount: "0",
      executed_runs: 0,
      billed_minutes: 0,
    });
  });

  it("sums exactly what floating point would not", async () => {
    const rows = Array.from({ length: 10 }, (_, index) =>
      jobRun({
        organization_id: "acme",
        scheduled_at: new Date(from.getTime() + index * 60_000),
        price_per_minute: "0.1000000000000001",
      }),
    );
    await recordJobRuns(test.ledger, rows);
    const { total_amount } = await sumJobRuns(test.ledger, cycle);
    expect(parseDecimal(total_amount)).toEqual({ units: 1_000000000000001n, scale: 15 });
  });

  it("is refused for what is no billing cycle", async () => {
    const wrong = { ...cycle, to: new Date(to.getTime() - 1) };
    await expect(listJobRuns(test.ledger, { ...wrong, ...page })).rejects.toThrow(RangeError);
    await expect(sumJobRuns(test.ledger, wrong)).rejects.toThrow(RangeError);
  });
});
