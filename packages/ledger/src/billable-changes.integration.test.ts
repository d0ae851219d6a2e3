import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startJobLedger, type TestJobLedger } from "../../../test/kit/ledger/job-ledger.ts";
import {
  type BillableChangeRow,
  billableHistories,
  lastBillableChanges,
  openBillableProjects,
  recordBillableChanges,
} from "./index.ts";

let server: TestJobLedger;

beforeAll(async () => {
  server = await startJobLedger();
});
afterAll(() => server?.stop());
beforeEach(() => server.empty());

const state = {
  plan: "basic",
  paymentMode: "hourly",
  renews: true,
  instances: 1,
  paused: false,
  billedGb: 0,
} as const;

const change = (number: number, facts: Partial<BillableChangeRow> = {}): BillableChangeRow => ({
  organizationId: "acme",
  projectId: "shop",
  projectUid: "u1",
  number,
  at: new Date(Date.UTC(2026, 0, 1, number, 0, 0, 7)),
  state: { ...state, instances: number },
  ...facts,
});
const history = (length: number, facts: Partial<BillableChangeRow> = {}) =>
  Array.from({ length }, (_, index) => change(index + 1, facts));
const outcomes = async (rows: readonly BillableChangeRow[]) =>
  (await recordBillableChanges(server.ledger, rows)).map(({ outcome }) => outcome);
const count = async () =>
  Number(
    (await sql<{ n: string }>`select count(*) n from billable_changes`.execute(server.ledger)).rows[0]?.n,
  );

describe("changes of projects", () => {
  test("are recorded once, however often they come, in any order", async () => {
    expect(await outcomes(history(3))).toEqual(Array(3).fill("recorded"));
    expect(await outcomes(history(4).toReversed())).toEqual(["recorded", ...Array(3).fill("already")]);
    expect(await billableHistories(server.ledger, ["u1", "none"])).toEqual([
      {
        projectUid: "u1",
        changes: history(4).map(({ at, state: has }) => ({ ...has, at: at.getTime() })),
        deletedAt: undefined,
      },
    ]);
  });

  // Shows: docs/adr/0032-recorded-changes.md#decision: a second operator finds it there
  test("are recorded once by several processes", async () => {
    const pools = [server.ledger, server.connect(), server.connect()];
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        recordBillableChanges(
          pools[index % 3] as typeof server.ledger,
          index % 2 ? history(40) : history(40).toReversed(),
        ),
      ),
    );
    expect(answers.flat().filter(({ outcome }) => outcome === "recorded")).toHaveLength(40);
    expect(new Set(answers.flat().map(({ outcome }) => outcome))).toEqual(new Set(["recorded", "already"]));
    expect(await count()).toBe(40);
  });

  test("of which the ledger has others are reported, and the first ones stay", async () => {
    await recordBillableChanges(server.ledger, history(2));
    const other = change(2, { state: { ...state, plan: "premium" } });
    expect(await outcomes([other])).toEqual(["differs"]);
    const last = await lastBillableChanges(server.ledger, ["u1", "none"]);
    expect([...last.values()]).toEqual([change(2)]);
  });

  test("that lie ahead of the ledger's time are left for later, and keep back no others", async () => {
    const later = change(1, { projectUid: "u2", at: new Date(Date.now() + 300_000) });
    expect(await outcomes([later, change(1)])).toEqual(["ahead", "recorded"]);
    const at = later.at.toISOString();
    const direct = sql`insert into billable_changes (organization_id, project_id, project_uid, number, at, deleted)
      values ('acme', 'shop', 'u2', 1, ${at}, true)`;
    await expect(direct.execute(server.ledger)).rejects.toMatchObject({ constraint: "nothing_ahead" });
  });

  test.each([
    ["earlier than the one before it", [change(3, { at: change(1).at })]],
    ["later than the one after it", [change(1, { at: change(3).at, projectUid: "u3" })]],
    ["after the end", [change(2, { projectUid: "ended" })]],
    ["a second end", [change(2, { projectUid: "ended", state: undefined })]],
  ])("that are %s are refused", async (_what, rows) => {
    await recordBillableChanges(server.ledger, [
      ...history(2),
      change(2, { projectUid: "u3" }),
      change(1, { projectUid: "ended", state: undefined }),
    ]);
    await expect(recordBillableChanges(server.ledger, rows)).rejects.toMatchObject({
      code: "23514",
      constraint: "in_order",
    });
    expect(await count()).toBe(4);
  });

  test("of a long history are recorded as fast as of a short one", async () => {
    const many = (from: number) =>
      Array.from({ length: 500 }, (_, index) => ({ ...change(1), number: from + index }));
    await server.ledger.transaction().execute(async (transaction) => {
      await sql`set local session_replication_role = replica`.execute(transaction);
      await sql`insert into billable_changes (organization_id, project_id, project_uid, number, at, plan, payment_mode, renews,
        instances, paused, billed_gb) select 'acme', 'shop', 'u1', n, ${change(1).at}, 'basic', 'hourly', true, 1, false, 0
        from generate_series(1, 100000) n`.execute(transaction);
    });
    const took = async (rows: readonly BillableChangeRow[]) => {
      const start = performance.now();
      expect(new Set(await outcomes(rows))).toEqual(new Set(["recorded"]));
      return performance.now() - start;
    };
    await took(many(200_001).map((row) => ({ ...row, projectUid: "warm" })));
    const short = await took(many(1).map((row) => ({ ...row, projectUid: "short" })));
    expect(await took(many(100_001))).toBeLessThan(10 * short + 1_000);
  });

  test("at one instant, and after a gap, are recorded", async () => {
    const { at } = change(1);
    expect(await outcomes([change(1), change(2, { at }), change(9, { at })])).toEqual(
      Array(3).fill("recorded"),
    );
  });

  test("of projects that have not ended are listed until they have", async () => {
    await recordBillableChanges(server.ledger, [...history(2), change(1, { projectUid: "u2" })]);
    const of = (projectUid: string) => ({
      ...{ organizationId: "acme", projectId: "shop", projectUid },
      meteredUntil: undefined,
    });
    expect(await openBillableProjects(server.ledger)).toEqual([of("u1"), of("u2")]);
    await recordBillableChanges(server.ledger, [change(3, { state: undefined })]);
    expect(await openBillableProjects(server.ledger)).toEqual([of("u2")]);
    const [ended] = await billableHistories(server.ledger, ["u1"]);
    expect(ended?.deletedAt).toBe(change(3).at.getTime());
  });

  test.each([
    "update billable_changes set instances = 7",
    "delete from billable_changes",
    "truncate billable_changes",
  ])("stay as they are: %s", async (statement) => {
    await recordBillableChanges(server.ledger, history(1));
    await expect(sql.raw(statement).execute(server.ledger)).rejects.toThrow("append-only");
    expect(await count()).toBe(1);
  });

  test("have everything, or nothing where the project was deleted", async () => {
    const half = sql`insert into billable_changes (organization_id, project_id, project_uid, number, at, plan)
      values ('acme', 'shop', 'u1', 1, '2026-01-01', 'basic')`;
    await expect(half.execute(server.ledger)).rejects.toMatchObject({ constraint: "all_or_nothing" });
  });
});
