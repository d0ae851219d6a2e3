import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { jobRun } from "../../../test/kit/ledger/charged-rows.ts";
import { startJobLedger, type TestJobLedger } from "../../../test/kit/ledger/job-ledger.ts";
import { findJobRun, type JobRunRow, recordJobRuns } from "./index.ts";

let test: TestJobLedger;

beforeAll(async () => {
  test = await startJobLedger();
});
afterAll(() => test?.stop());
beforeEach(() => test.empty());

const organization_id = "acme";
const at = (time: string) => new Date(`2026-01-${time}Z`);
const minutes = (count: number, from = at("15T00:00:00")) =>
  Array.from({ length: count }, (_, index) =>
    jobRun({ organization_id, scheduled_at: new Date(from.getTime() + index * 60_000) }),
  );
const outcomes = async (rows: JobRunRow[]) =>
  (await recordJobRuns(test.ledger, rows)).map(({ outcome, reason }) => reason ?? outcome);

async function charges(): Promise<{ entries: number; amount: string }> {
  const { rows } = await sql<{ entries: number; amount: string }>`
    select count(*)::int as entries, trim_scale(coalesce(sum(amount), 0))::text as amount from charges`.execute(
    test.ledger,
  );
  return rows[0] as { entries: number; amount: string };
}

describe("a run", () => {
  const run = jobRun({
    organization_id,
    scheduled_at: at("31T23:59:58.123"),
    suffix: "a1b2",
    seconds: 3_601.5,
    status: "deadline_exceeded",
    price_per_minute: "0.0350000000000001",
    metrics: { status: "available", samples: 7, averageCores: "0.25" },
  });

  // Shows: docs/jobs.md#billing: minutes are rounded up, 1 to 60; the amount is minutes times the price
  it("is read back as it was given, to the millisecond and the last decimal", async () => {
    const [recorded] = await recordJobRuns(test.ledger, [run]);
    expect(recorded).toEqual({ id: run.id, organization_id, outcome: "recorded", row: run });
    expect(run.amount).toBe("2.100000000000006");
    const key = { organizationId: organization_id, projectId: run.project_id, id: run.id };
    expect(await findJobRun(test.ledger, key)).toEqual(run);
    expect(await charges()).toEqual({ entries: 1, amount: run.amount });
  });

  it("is not found in another organization, project or under what is no id", async () => {
    await recordJobRuns(test.ledger, [run]);
    const key = { organizationId: organization_id, projectId: run.project_id, id: run.id };
    const others = [
      { ...key, organizationId: "other" },
      { ...key, projectId: "other" },
      { ...key, id: `${run.id}x` },
      { ...key, id: `${run.project_id}-` },
      { ...key, id: `${run.project_id}-007` },
      { ...key, id: "x'; drop table job_runs; --" },
      { ...key, id: "" },
    ];
    expect(await Promise.all(others.map((other) => findJobRun(test.ledger, other)))).toEqual(
      others.map(() => undefined),
    );
  });

  // Shows: docs/jobs.md#billing: each run is charged once, whatever fails
  it("is charged once, however often it comes", async () => {
    const rows = minutes(3);
    expect(await outcomes(rows)).toEqual(["recorded", "recorded", "recorded"]);
    expect(await outcomes([...rows, ...minutes(4)])).toEqual([
      ...["already", "already", "already"],
      ...["already", "already", "already", "recorded"],
    ]);
    expect(await charges()).toEqual({ entries: 4, amount: "1.4" });
  });

  it("is charged once when it is twice in a batch", async () => {
    const [run] = minutes(1);
    expect(await outcomes([run, run] as JobRunRow[])).toEqual(["recorded", "already"]);
    expect(await charges()).toEqual({ entries: 1, amount: "0.35" });
  });

  it("is equal when only the writing of a decimal, or the metrics, differ", async () => {
    const [run] = minutes(1) as [JobRunRow];
    await recordJobRuns(test.ledger, [run]);
    const same = { ...run, amount: "0.3500", price_per_minute: "00.350" };
    expect(await outcomes([{ ...same, metrics: { status: "unavailable" } }])).toEqual(["already"]);
  });

  const [first] = minutes(1) as [JobRunRow];
  it.each<[string, Partial<JobRunRow>]>([
    ["project_uid", { project_uid: "another" }],
    ["status", { status: "failed" }],
    ["plan", { plan: "job-premium" }],
    ["price_per_minute, amount", { price_per_minute: "0.36", amount: "0.36" }],
    ["finished_at", { finished_at: new Date(first.finished_at.getTime() + 1) }],
    [
      "billed_minutes, started_at, amount",
      {
        ...jobRun({
          organization_id,
          scheduled_at: first.scheduled_at,
          started_at: new Date(first.started_at.getTime() - 60_000),
          finished_at: first.finished_at,
        }),
      },
    ],
  ])(
    "that is recorded again with another %s is reported, and the first one is kept",
    async (fields, change) => {
      await recordJobRuns(test.ledger, [first]);
      const [answer] = await recordJobRuns(test.ledger, [{ ...first, ...change }]);
      expect(answer).toMatchObject({ outcome: "differs", row: first });
      expect(answer?.reason?.split(", ").sort()).toEqual(fields.split(", ").sort());
      expect(await charges()).toEqual({ entries: 1, amount: "0.35" });
    },
  );

  it.each<[string, Partial<JobRunRow>]>([
    ["job_runs_billed_minutes_check", { billed_minutes: 61, amount: "21.35" }],
    ["amount_of_minutes", { amount: "0.3500000000000000001" }],
    ["minutes_of_times", { billed_minutes: 2, amount: "0.7" }],
    ["times_in_order", { billed_until: new Date(first.finished_at.getTime() + 1) }],
    ["times_in_order", { started_at: new Date(first.billed_until.getTime() + 1) }],
    ["id_of_minute", { id: `${first.id}0` }],
    ["id_of_minute", { id: `${first.id}-abc` }],
    ["id_of_minute", { trigger: "manual" }],
    ["id_of_minute", { trigger: "manual", id: `${first.id}-UPPER` }],
    ["scheduled_minute_of_schedule", { scheduled_at: new Date(first.scheduled_at.getTime() + 1) }],
    ["job_runs_status_check", { status: "running" as "failed" }],
    ["job_runs_price_per_minute_check", { price_per_minute: "NaN", amount: "NaN" }],
    ["job_runs_price_per_minute_check", { price_per_minute: "-1", amount: "-1" }],
  ])("that breaks %s is refused, and nothing else with it", async (rule, change) => {
    const [wrong, ...rest] = minutes(5) as [JobRunRow];
    const batch = [...rest.slice(0, 2), { ...wrong, ...change }, ...rest.slice(2)];
    expect(await outcomes(batch)).toEqual(["recorded", "recorded", rule, "recorded", "recorded"]);
    expect(await charges()).toEqual({ entries: 4, amount: "1.4" });
  });
});

describe("batches", () => {
  it("hold any number of runs", async () => {
    const answers = await recordJobRuns(test.ledger, minutes(2_500));
    expect(answers.map(({ id }) => id)).toEqual(minutes(2_500).map(({ id }) => id));
    expect(new Set(answers.map(({ outcome }) => outcome))).toEqual(new Set(["recorded"]));
    expect(await recordJobRuns(test.ledger, [])).toEqual([]);
  });

  it("with the same runs, from several processes, in any order, charge each once and never lock up", async () => {
    const rows = minutes(300);
    const pools = [test.ledger, test.connect(), test.connect()];
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, index) => {
        const turned = [...rows.slice(index * 12), ...rows.slice(0, index * 12)];
        return recordJobRuns(pools[index % 3] as typeof test.ledger, index % 2 ? turned : turned.reverse());
      }),
    );
    const recorded = answers.flat().filter(({ outcome }) => outcome === "recorded");
    expect(recorded.map(({ id }) => id).sort()).toEqual(rows.map(({ id }) => id).sort());
    expect(answers.flat().filter(({ outcome }) => outcome === "already")).toHaveLength(23 * 300);
    expect(await charges()).toEqual({ entries: 300, amount: "105" });
  });

  // Shows: docs/jobs.md#billing: each run is charged once, whatever fails
  it("whose answer was lost in a crash of the database are sent again, and charged once", async () => {
    const rows = minutes(2_000);
    const other = test.connect();
    const send = (from: number) => recordJobRuns(other, rows.slice(from, from + 100));
    await send(0);
    const broken = Promise.allSettled(Array.from({ length: 20 }, (_, index) => send(index * 100)));
    await test.postgres.crash();
    const failed = (await broken).filter(({ status }) => status === "rejected");
    await test.postgres.restart();
    expect(failed.length).toBeGreaterThan(0);
    for (let from = 0; from < rows.length; from += 100) {
      await send(from);
    }
    expect(await charges()).toEqual({ entries: 2_000, amount: "700" });
  });
});

describe("a run ahead of the ledger's time", () => {
  // Shows: docs/jobs.md#clocks: the ledger accepts nothing that is ahead of its own time
  // Shows: docs/ledger.md#runs-and-their-charges: that a leader whose clock is wrong charges for nothing that
  it("is rejected, and delays no other; one that differing clocks explain is accepted", async () => {
    const now = Date.now();
    const minute = (ms: number) => new Date(Math.floor((now + ms) / 60_000) * 60_000);
    const ended = (ms: number, scheduled: Date) =>
      jobRun({
        organization_id,
        scheduled_at: scheduled,
        started_at: new Date(now + ms - 1_000),
        finished_at: new Date(now + ms),
      });
    const rows = [
      ended(30_000, minute(-120_000)),
      ended(90_000, minute(-180_000)),
      ended(21_600_000, minute(21_600_000)),
      ended(-60_000, minute(-60_000)),
    ];
    expect(await outcomes(rows)).toEqual(["recorded", "nothing_ahead", "nothing_ahead", "recorded"]);
    expect((await charges()).entries).toBe(2);
  });
});

describe("partitions", () => {
  it("of other months are made as they are needed, by several concurrently, too", async () => {
    const times = ["2019-12-31T23:59:00Z", "2020-01-01T00:00:00Z", "2021-07-01T12:00:00Z"];
    const rows = times.map((time) => jobRun({ organization_id, scheduled_at: new Date(time) }));
    const pools = [test.ledger, test.connect(), test.connect()];
    const answers = await Promise.all(pools.map((pool) => recordJobRuns(pool, rows)));
    expect(answers.flat().filter(({ outcome }) => outcome === "recorded")).toHaveLength(3);
    const { rows: found } = await sql<{ name: string }>`
      select distinct tableoid::regclass::text as name from job_runs order by 1`.execute(test.ledger);
    expect(found.map(({ name }) => name)).toEqual([
      "job_runs_2019_12",
      "job_runs_2020_01",
      "job_runs_2021_07",
    ]);
  });
});

describe("runs and charges are append-only", () => {
  it.each([
    "update job_runs set status = 'failed'",
    "update charges set amount = 0",
    "delete from job_runs",
    "delete from charges",
    "truncate job_runs",
    "truncate charges",
  ])("%s is refused", async (statement) => {
    await recordJobRuns(test.ledger, minutes(1));
    await expect(sql.raw(statement).execute(test.ledger)).rejects.toThrow(/append-only/);
    expect(await charges()).toEqual({ entries: 1, amount: "0.35" });
  });
});
