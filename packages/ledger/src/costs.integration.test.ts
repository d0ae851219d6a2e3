import type { PlanCharge } from "@slipway/crds";
import { type Kysely, sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { jobRun, storageHour } from "../../../test/kit/ledger/charged-rows.ts";
import { startJobLedger, type TestJobLedger } from "../../../test/kit/ledger/job-ledger.ts";
import {
  insertTombstone,
  organizationCost,
  projectCost,
  ReadTimeout,
  recordBillableChanges,
  recordJobRuns,
  recordPlanCharges,
  recordStorageCharges,
  retireJobRuns,
  settleCycle,
} from "./index.ts";
import { up } from "./migrations/0021-usage-sums.ts";

let test: TestJobLedger;

beforeAll(async () => {
  test = await startJobLedger();
});
afterAll(() => test?.stop());
beforeEach(() => test.empty());

const organizationId = "acme";
const january = new Date("2026-01-01T00:00:00Z");
const february = new Date("2026-02-01T00:00:00Z");
const HOUR = 3_600_000;

const run = (projectId: string, time: string, facts = {}) =>
  jobRun({
    organization_id: organizationId,
    project_id: projectId,
    scheduled_at: new Date(`${time}Z`),
    ...facts,
  });
const planCharge = (
  uid: string,
  fact: string,
  facts: Partial<PlanCharge> & Pick<PlanCharge, "kind" | "from">,
) => {
  const to = facts.from + HOUR;
  const plan = facts.kind === "storage_hour" ? {} : { plan: "basic", instance: 0 };
  const charge = {
    to,
    finalAt: facts.kind.endsWith("hour") ? to : facts.from,
    price: "3",
    amount: "3",
    ...plan,
    ...facts,
  };
  return { key: `${uid}/${facts.kind}/${fact}`, ...charge };
};
const record = (projectId: string, charges: readonly PlanCharge[], until = february) =>
  recordPlanCharges(test.ledger, [
    { organizationId, projectId, projectUid: `u-${projectId}`, until, ended: false, arrivals: 9, charges },
  ]);

/** Charges of every kind, of three projects in two cycles. */
async function charge(): Promise<void> {
  const at = (time: string) => Date.parse(`${time}Z`);
  await recordJobRuns(test.ledger, [
    run("nightly", "2026-01-10T03:00:00", { seconds: 130 }),
    run("nightly", "2026-01-11T03:00:00"),
    // Due in January, started in February.
    run("nightly", "2026-01-31T23:59:00", { started_at: new Date("2026-02-01T00:00:10Z") }),
  ]);
  await recordStorageCharges(
    test.ledger,
    Array.from({ length: 30 }, (_, index) =>
      storageHour({
        organization_id: organizationId,
        project_id: "nightly",
        from: new Date(Date.UTC(2026, 0, 31, index)),
      }),
    ),
  );
  await record("shop", [
    ...[0, 1, 2].map((hour) =>
      planCharge("u-shop", `${hour}/0`, {
        kind: "instance_hour",
        from: at("2026-01-31T22:00:00") + hour * HOUR,
      }),
    ),
    planCharge("u-shop", "0", {
      kind: "storage_hour",
      from: at("2026-01-31T22:00:00"),
      gb: 5,
      price: "0.1",
      amount: "0.5",
    }),
  ]);
  await record("wiki", [
    planCharge("u-wiki", `${at("2026-01-16T00:00:00")}/0`, {
      kind: "term",
      from: at("2026-01-16T00:00:00"),
      to: at("2026-02-16T00:00:00"),
      price: "2160",
      amount: "2160",
    }),
    planCharge("u-wiki", `${at("2026-01-16T00:00:00")}/0`, {
      kind: "credit",
      from: at("2026-01-20T00:00:00"),
      to: at("2026-02-16T00:00:00"),
      price: "2160",
      amount: "1881.290322580",
    }),
  ]);
}

/** What the charges themselves come to. The day is written out here: not that of the function that the sums use. */
async function chargedIn(
  cycle: string,
  column: "kind" | "project_id" | "day",
  projectId: string | null = null,
): Promise<Record<string, string>> {
  const { rows } = await sql<{ name: string; amount: string }>`
    select ${sql.ref(column)}::text as name, trim_scale(sum(amount))::text as amount from (
      select project_id, kind, amount, cycle_start, case
          when date < cycle_start then cycle_start
          when date_trunc('month', date) > cycle_start then (cycle_start + interval '1 month')::date - 1
          else date end as day
      from (
        select project_id, case kind when 'storage' then 'job_storage' else kind end as kind, amount, cycle_start,
          (due_at at time zone 'UTC')::date as date from charges where organization_id = ${organizationId}
        union all
        select project_id, kind, case kind when 'credit' then -amount else amount end, cycle_start,
          (starts_at at time zone 'UTC')::date from plan_charges where organization_id = ${organizationId}
      ) each_charge
    ) charged where cycle_start = ${cycle}::date
      and (${projectId}::text is null or project_id = ${projectId}) group by 1`.execute(test.ledger);
  return Object.fromEntries(rows.map(({ name, amount }) => [name, amount]));
}

const usage = (cycle = january, more = {}) =>
  organizationCost(test.ledger, { organizationId, cycle, offset: 0, limit: 100, ...more });
const byKind = (kinds: readonly { kind: string; amount: string }[]) =>
  Object.fromEntries(kinds.map(({ kind, amount }) => [kind, amount]));

async function expectSumsOfCharges(): Promise<void> {
  for (const cycle of [january, february]) {
    const name = cycle.toISOString().slice(0, 10);
    const found = await usage(cycle);
    expect(byKind(found.kinds)).toEqual(await chargedIn(name, "kind"));
    expect(Object.fromEntries(found.projects.map((each) => [each.projectId, each.amount]))).toEqual(
      await chargedIn(name, "project_id"),
    );
    expect(await byDay(found.days)).toEqual(await chargedIn(name, "day"));
    for (const project of found.projects) {
      const own = await projectCost(test.ledger, { organizationId, projectId: project.projectId, cycle });
      expect(own.kinds).toEqual(project.kinds);
      expect(await byDay(own.days)).toEqual(await chargedIn(name, "day", project.projectId));
      const days = Map.groupBy(own.days, ({ kind }) => kind);
      expect(byKind(own.kinds)).toEqual(
        Object.fromEntries(
          await Promise.all(
            [...days].map(async ([kind, each]) => [kind, await sumOf(each.map(({ amount }) => amount))]),
          ),
        ),
      );
    }
  }
}

async function byDay(days: readonly { day: string; amount: string }[]): Promise<Record<string, string>> {
  const groups = [...Map.groupBy(days, ({ day }) => day)];
  const sums = groups.map(async ([day, each]) => [day, await sumOf(each.map(({ amount }) => amount))]);
  return Object.fromEntries(await Promise.all(sums));
}

async function sumOf(amounts: readonly string[]): Promise<string> {
  const { rows } = await sql<{ sum: string }>`
    select trim_scale(sum(amount::numeric))::text as sum from unnest(${amounts}::text[]) amount`.execute(
    test.ledger,
  );
  return rows[0]?.sum ?? "0";
}

describe("what was charged", () => {
  // Shows: docs/usage.md#over-v1: equal what the ledger's charges come to, always
  it("is the sum of the charges, by kind, project and day, also where they are recorded again", async () => {
    await charge();
    await charge();
    await expectSumsOfCharges();
    const found = await usage(february);
    // Of the first day of the cycle in which the run started.
    expect(found.days).toContainEqual({ day: "2026-02-01", kind: "job_run", amount: expect.any(String) });
    expect((await usage()).kinds).toContainEqual({ kind: "credit", amount: "-1881.29032258", charges: 1 });
  });

  it("is the same where several processes record runs of the same projects and days", async () => {
    const [rounds, projects, days] = [3, 7, 4];
    await Promise.all(
      Array.from({ length: 8 }, async (_, process) => {
        const ledger = test.connect();
        for (let round = 0; round < rounds; round += 1) {
          const rows = Array.from({ length: projects * days }, (_each, index) =>
            run(`job${index % projects}`, `2026-01-${10 + (index % days)}T0${process}:0${round}:00`),
          );
          const recorded = await recordJobRuns(ledger, process % 2 ? rows : rows.reverse());
          expect(new Set(recorded.map(({ outcome }) => outcome))).toEqual(new Set(["recorded"]));
        }
      }),
    );
    await expectSumsOfCharges();
    const charges = 8 * rounds * projects * days;
    expect((await usage()).kinds).toMatchObject([{ kind: "job_run", charges }]);
  });

  describe("that was recorded before the sums were made", () => {
    /** As migrations run: without limits. */
    const migrate = () =>
      test
        .connect()
        .transaction()
        .execute(async (transaction) => {
          await sql`set local lock_timeout = 0`.execute(transaction);
          await sql`set local statement_timeout = 0`.execute(transaction);
          await up(transaction as unknown as Kysely<unknown>);
        });
    const stayOpen = sql`set local idle_in_transaction_session_timeout = 0`;

    beforeEach(async () => {
      await charge();
      await sql`drop table usage_by_project, usage_by_day, deleted_project_names`.execute(test.ledger);
      await sql`drop function add_usage_of_charges, add_usage_of_plan_charges cascade`.execute(test.ledger);
      await sql`drop function usage_day`.execute(test.ledger);
      await sql`drop index plan_charges_terms`.execute(test.ledger);
    });

    it("is included, and what is recorded then", async () => {
      await migrate();
      await expectSumsOfCharges();
      await recordJobRuns(test.ledger, [run("later", "2026-01-12T03:00:00")]);
      await expectSumsOfCharges();
    });

    it("is included while a dump reads all tables", async () => {
      await test.ledger.transaction().execute(async (dump) => {
        await stayOpen.execute(dump);
        await sql`lock table project_tombstones, charges, plan_charges, billable_changes in access share mode`.execute(
          dump,
        );
        await migrate();
      });
      await expectSumsOfCharges();
    });

    it("is included once where its transaction was open, and where it is recorded again", async () => {
      const hour = planCharge("u-blog", "7/0", { kind: "instance_hour", from: january.getTime() });
      let migrated: Promise<void> | undefined;
      await test.ledger.transaction().execute(async (writer) => {
        await stayOpen.execute(writer);
        await sql`
          insert into plan_charges (organization_id, project_id, project_uid, key, kind, starts_at, ends_at, final_at, cycle_start,
            plan, instance, price, amount)
          values (${organizationId}, 'blog', 'u-blog', ${hour.key}, 'instance_hour', ${january}, ${new Date(hour.to)},
            ${new Date(hour.to)}, '2026-01-01', 'basic', 0, 3, 3)`.execute(writer);
        migrated = migrate();
        migrated.catch(() => {});
        await vi.waitFor(async () => {
          const { rows } =
            await sql`select from pg_locks where relation = 'plan_charges'::regclass and not granted`.execute(
              test.ledger,
            );
          expect(rows).toHaveLength(1);
        }, 60_000);
      });
      await migrated;
      await record("blog", [hour]);
      await expectSumsOfCharges();
      expect((await usage()).projects).toContainEqual(
        expect.objectContaining({ projectId: "blog", amount: "3" }),
      );
    });
  });

  it("of nothing is nothing, and of another organization is not read", async () => {
    await charge();
    const of = { organizationId: "other", cycle: january };
    expect(await organizationCost(test.ledger, { ...of, offset: 0, limit: 10 })).toMatchObject({
      kinds: [],
      projects: [],
      total: 0,
    });
    expect(await projectCost(test.ledger, { ...of, projectId: "shop" })).toMatchObject({
      kinds: [],
      days: [],
    });
  });

  it.each(["usage_by_project", "usage_by_day"])("is changed in %s by its charges alone", async (table) => {
    await charge();
    const name = sql.table(table);
    const refusal = /is append-only/;
    await expect(sql`insert into ${name} select * from ${name}`.execute(test.ledger)).rejects.toThrow(
      refusal,
    );
    await expect(sql`update ${name} set amount = 0`.execute(test.ledger)).rejects.toThrow(refusal);
    await expect(sql`delete from ${name}`.execute(test.ledger)).rejects.toThrow(refusal);
    await expect(sql`truncate ${name}`.execute(test.ledger)).rejects.toThrow(refusal);
  });

  it("is refused where it cannot be read in time, of all statements together", async () => {
    const query = { organizationId, cycle: january, offset: 0, limit: 1 };
    await expect(organizationCost(test.ledger, query, 0)).rejects.toThrow(ReadTimeout);
    await test
      .connect()
      .transaction()
      .execute(async (transaction) => {
        await sql`lock table usage_by_day`.execute(transaction);
        await expect(organizationCost(test.ledger, query, 100)).rejects.toThrow(ReadTimeout);
      });
    await expect(organizationCost(test.ledger, query)).resolves.toMatchObject({ total: 0 });
  });

  it("is in pages, the dearest first, and has the names of deleted projects", async () => {
    await charge();
    await insertTombstone(test.ledger, organizationId, "nightly", "Nightly report");
    const page = (offset: number) => usage(january, { offset, limit: 1 });
    const pages = await Promise.all([page(0), page(1), page(2), page(3)]);
    expect(
      pages.map(({ total, projects }) => [
        total,
        ...projects.map((each) => [each.projectId, each.deletedName]),
      ]),
    ).toEqual([[3, ["wiki", undefined]], [3, ["shop", undefined]], [3, ["nightly", "Nightly report"]], [3]]);
  });

  it("stays when its charges are retired, but for the days of a project", async () => {
    await charge();
    await settleCycle(test.ledger, february);
    await retireJobRuns(test.ledger, new Date("2026-06-15T00:00:00Z"));
    expect(await chargedIn("2026-01-01", "kind")).not.toHaveProperty("job_run");
    expect(byKind((await usage()).kinds)).toHaveProperty("job_run");
    const own = await projectCost(test.ledger, { organizationId, projectId: "nightly", cycle: january });
    expect(own).toMatchObject({
      hasDays: false,
      days: [],
      kinds: [{ kind: "job_run" }, { kind: "job_storage" }],
    });
  });
});

describe("terms that end in the rest of a cycle", () => {
  const begin = Date.parse("2026-01-16T00:00:00Z");
  const end = Date.parse("2026-02-16T00:00:00Z");
  const state = {
    plan: "basic",
    paymentMode: "monthly" as const,
    renews: true,
    instances: 1,
    paused: false,
    billedGb: 0,
  };

  async function monthly(
    projectId: string,
    changes: (Partial<typeof state> | undefined)[] = [],
    instance = 0,
  ) {
    const project = { organizationId, projectId, projectUid: `u-${projectId}` };
    await recordBillableChanges(
      test.ledger,
      [{}, ...changes].map((change, index) => ({
        ...project,
        number: index + 1,
        at: new Date(begin + index * HOUR),
        state: change && { ...state, ...change },
      })),
    );
    const term = { kind: "term" as const, from: begin, to: end, price: "2160", amount: "2160", instance };
    await record(projectId, [planCharge(`u-${projectId}`, `${begin}/${instance}`, term)]);
  }
  const renewing = async () => (await usage(february, { now: new Date("2026-02-10T00:00:00Z") })).renewing;

  it("are counted by the plan and mode that follow, while their instances exist and their contracts renew", async () => {
    await monthly("one");
    await monthly("two");
    await monthly("paused", [{ paused: true }]);
    await monthly("fewer", [], 1);
    await monthly("lapsing", [{ renews: false }]);
    await monthly("deleted", [undefined]);
    expect(await renewing()).toEqual([{ plan: "basic", paymentMode: "monthly", count: 2 }]);
    const own = await projectCost(test.ledger, {
      organizationId,
      projectId: "two",
      cycle: february,
      now: new Date("2026-02-10T00:00:00Z"),
    });
    expect(own.renewing).toEqual([{ plan: "basic", paymentMode: "monthly", count: 1 }]);
  });

  it("are not counted once their successors are recorded, or when they were ended by another plan", async () => {
    await monthly("renewed");
    await record("renewed", [], new Date(end + 1));
    await monthly("changed", [{ plan: "premium" }]);
    const credit = { kind: "credit" as const, from: begin + HOUR, to: end, price: "2160", amount: "2157" };
    await record("changed", [planCharge("u-changed", `${begin}/0`, credit)]);
    expect(await renewing()).toEqual([]);
  });

  it("are counted where a late change has taken back what ended them, and not where it has taken back themselves", async () => {
    const credit = { kind: "credit" as const, from: begin + HOUR, to: end, price: "2160", amount: "2157" };
    await monthly("restored", [{ plan: "premium" }, {}]);
    await record("restored", [planCharge("u-restored", `${begin}/0`, credit)]);
    await monthly("ended");
    const adjust = (project: string, kind: "term" | "credit", amount: string) =>
      sql`
      insert into plan_charges (organization_id, project_id, project_uid, key, kind, starts_at, ends_at, final_at, cycle_start, plan,
        instance, price, amount, adjusts, late_at)
      select organization_id, project_id, project_uid, project_uid || '/' || ${kind}::text || '/late/0/' || substr(key, length(project_uid) + 2),
        ${kind}::text, starts_at, ends_at, final_at, billing_cycle(now()), plan, instance, price, ${amount}::numeric, key, now()
      from plan_charges where project_id = ${project} and kind <> ${kind}`.execute(test.ledger);
    await adjust("restored", "term", "2157");
    await adjust("ended", "credit", "2160");
    expect(await renewing()).toEqual([{ plan: "basic", paymentMode: "monthly", count: 1 }]);
  });
});

it("what late changes charged of hours is read apart, for a forecast", async () => {
  const from = Date.parse("2026-01-16T00:00:00Z");
  await record("shop", [planCharge("u-shop", "0/0", { kind: "instance_hour", from })]);
  await sql`
    insert into plan_charges (organization_id, project_id, project_uid, key, kind, starts_at, ends_at, final_at, cycle_start, plan,
      instance, price, amount, adjusts, late_at)
    select organization_id, project_id, project_uid, 'u-shop/instance_hour/late/0/instance_hour/0/0', kind, starts_at, ends_at, final_at,
      '2026-02-01', plan, instance, 8, 5, key, '2026-02-10T00:00:00Z' from plan_charges`.execute(test.ledger);
  const query = { organizationId, cycle: february, now: new Date("2026-02-10T12:00:00Z") };
  const charged = [{ day: "2026-02-01", kind: "instance_hour", amount: "5" }];
  const all = await usage(february, { now: query.now });
  expect([all.days, all.adjustments]).toEqual([charged, charged]);
  expect((await projectCost(test.ledger, { ...query, projectId: "shop" })).adjustments).toEqual(charged);
  expect((await projectCost(test.ledger, { ...query, projectId: "wiki" })).adjustments).toEqual([]);
});

// Shows: docs/usage.md#how-it-is-made: A month of 10,000 projects in one organization
it("a month of 10,000 projects is read from its sums, whatever was charged: see the figures", async () => {
  const terms = { projects: 10_000, state: "'monthly', true, 1, false, 0" };
  const name = sql`'p' || lpad(project::text, 5, '0')`;
  const all = sql`generate_series(1, ${terms.projects}) project`;
  await test.ledger.transaction().execute(async (transaction) => {
    await sql`set local session_replication_role = replica`.execute(transaction);
    // Nothing of the ledger's writes so much in one statement.
    await sql`set local statement_timeout = 0`.execute(transaction);
    await sql`
      insert into usage_by_project select ${organizationId}, '2026-02-01', ${name}, kind, project * 7.2, 720
      from ${all}, unnest(array['instance_hour', 'storage_hour', 'term']) kind`.execute(transaction);
    await sql`
      insert into usage_by_day select ${organizationId}, day::date, kind, 50005000 * 7.2 / 28, 7200000 / 28
      from generate_series(date '2026-01-25', '2026-02-28', '1 day') day,
        unnest(array['instance_hour', 'storage_hour', 'term']) kind`.execute(transaction);
    await sql`
      insert into plan_charges (organization_id, project_id, project_uid, key, kind, starts_at, ends_at, final_at, cycle_start, plan,
        instance, price, amount)
      select ${organizationId}, ${name}, ${name}, ${name} || '/term/1768521600000/0', 'term', '2026-01-16Z', '2026-02-16Z', '2026-01-16Z',
        '2026-01-01', 'basic', 0, 2160, 2160 from ${all}`.execute(transaction);
    await sql`
      insert into billable_changes (organization_id, project_id, project_uid, number, at, plan, payment_mode, renews, instances, paused, billed_gb)
      select ${organizationId}, ${name}, ${name}, number, '2026-01-16Z', 'basic', ${sql.raw(terms.state)}
      from ${all}, generate_series(1, 2) number`.execute(transaction);
    await sql`
      insert into plan_meters select ${organizationId}, ${name}, ${name}, false, '2026-02-10Z' from ${all}`.execute(
      transaction,
    );
  });
  await sql`analyze usage_by_project, usage_by_day, plan_charges, billable_changes, plan_meters`.execute(
    test.ledger,
  );
  const took = async (read: () => Promise<unknown>) => {
    const times: number[] = [];
    for (let index = 0; index < 20; index += 1) {
      const before = performance.now();
      await read();
      times.push(performance.now() - before);
    }
    times.sort((a, b) => a - b);
    return `median ${times[10]?.toFixed(1)} ms, p95 ${times[18]?.toFixed(1)} ms`;
  };
  const now = new Date("2026-02-10T12:00:00Z");
  // However busy the machine is, the figures are printed.
  const read = (more = {}) =>
    organizationCost(
      test.ledger,
      { organizationId, cycle: february, offset: 0, limit: 100, ...more },
      60_000,
    );
  const found = await read({ now });
  expect(found).toMatchObject({ total: 10_000, renewing: [{ count: 10_000 }] });
  expect(found.projects).toHaveLength(100);
  process.stdout.write(
    [
      `an organization's month: ${await took(() => read())}`,
      `with its forecast, every project's term ending: ${await took(() => read({ now }))}`,
      `the last page: ${await took(() => read({ offset: 9_900 }))}`,
      `a project's: ${await took(() => projectCost(test.ledger, { organizationId, projectId: "p00007", cycle: february, now }, 60_000))}\n`,
    ].join("\n"),
  );
});
