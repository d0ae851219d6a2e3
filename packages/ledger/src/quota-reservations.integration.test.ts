import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import {
  connectLedger,
  findQuotaVersion,
  type Ledger,
  listQuotaReservations,
  migrateToLatest,
  type QuotaRequest,
  releaseQuota,
  replaceQuotaReservation,
  reserveQuota,
  setPlanCapacity,
} from "./index.ts";

let postgres: TestPostgres;
/** Two pools, as two replicas have them. */
let pools: [Ledger, Ledger];

beforeAll(async () => {
  postgres = await startPostgres();
  const open = () => connectLedger({ url: postgres.url, applicationName: "test" });
  pools = [open(), open()];
  await migrateToLatest(pools[0]);
});

afterAll(async () => {
  await Promise.all((pools ?? []).map((pool) => pool.destroy()));
  await postgres?.stop();
});

beforeEach(async () => {
  await sql`truncate project_slots, plan_capacities`.execute(pools[0]);
});

const free = (projectId: string, amount = 1, organizationId = "acme"): QuotaRequest => ({
  organizationId,
  projectId,
  plan: "free",
  limit: { scope: "free-instances", max: 2 },
  amount,
});
const basic = (projectId: string, organizationId = "acme"): QuotaRequest => ({
  organizationId,
  projectId,
  plan: "basic",
  amount: 1,
});
const reserve = (request: QuotaRequest) => reserveQuota(pools[0], request);
const RESERVED = { reserved: true, version: expect.stringMatching(/^\d+$/) };

/** So many concurrent calls over both pools. */
function reserveConcurrently(times: number, request: (index: number) => QuotaRequest) {
  return Promise.all(
    Array.from({ length: times }, (_, index) => reserveQuota(pools[(index % 2) as 0 | 1], request(index))),
  );
}
const winners = (answers: { reserved: boolean }[]) => answers.filter(({ reserved }) => reserved).length;

describe("a limit of an organization", () => {
  it("admits exactly one of 50 concurrent requests for the last of it", async () => {
    await reserve(free("first"));
    const answers = await reserveConcurrently(50, (index) => free(`p${index}`));
    expect(winners(answers)).toBe(1);
    expect(answers.find(({ reserved }) => !reserved)).toEqual({
      reserved: false,
      reason: "limit",
      used: 2,
      max: 2,
    });
    expect(await listQuotaReservations(pools[1])).toHaveLength(2);
  });

  it("is used up and not exceeded by 50 concurrent requests of different amounts", async () => {
    const answers = await reserveConcurrently(50, (index) => free(`p${index}`, 1 + (index % 2)));
    expect(winners(answers)).toBeGreaterThan(0);
    const rows = await listQuotaReservations(pools[0]);
    expect(rows.reduce((sum, { slots }) => sum + slots, 0)).toBeLessThanOrEqual(2);
  });

  it("counts each organization for itself, and only plans of its scope", async () => {
    expect(await reserve(free("a", 2))).toEqual(RESERVED);
    expect(await reserve(basic("b"))).toEqual(RESERVED);
    expect(await reserve(free("a", 2, "other"))).toEqual(RESERVED);
    expect(await reserve(free("c"))).toEqual({ reserved: false, reason: "limit", used: 2, max: 2 });
  });

  it("does not count the project's own row, whether it requests the same, more or less", async () => {
    expect(await reserve(free("a", 1))).toEqual(RESERVED);
    expect(await reserve(free("a", 2))).toEqual(RESERVED);
    expect(await reserve(free("a", 2))).toEqual(RESERVED);
    expect(await reserve(free("a", 3))).toEqual({ reserved: false, reason: "limit", used: 0, max: 2 });
    expect((await listQuotaReservations(pools[0]))[0]).toMatchObject({ project_id: "a", slots: 2 });
    expect(await reserve(free("a", 1))).toEqual(RESERVED);
    expect(await reserve(free("b", 1))).toEqual(RESERVED);
  });

  it("counts once a project that 50 request concurrently", async () => {
    expect(winners(await reserveConcurrently(50, () => free("same")))).toBe(50);
    expect(await listQuotaReservations(pools[0])).toHaveLength(1);
  });

  it("is freed by a release and by a change of plan; a rejected change keeps the old reservation", async () => {
    await reserve(free("a"));
    await reserve(free("b"));
    await reserve(basic("c"));
    expect(await reserve(free("c"))).toMatchObject({ reserved: false, reason: "limit" });
    expect((await listQuotaReservations(pools[0])).find((row) => row.project_id === "c")).toMatchObject({
      plan: "basic",
    });
    expect(await reserve(basic("a"))).toEqual(RESERVED);
    expect(await reserve(free("c"))).toEqual(RESERVED);
    expect(await reserve(free("d"))).toMatchObject({ reserved: false });
    expect(await releaseQuota(pools[0], "b", "other")).toBe(false);
    expect(await releaseQuota(pools[0], "b", "acme")).toBe(true);
    expect(await releaseQuota(pools[0], "b", "acme")).toBe(false);
    expect(await reserve(free("d"))).toEqual(RESERVED);
  });

  it("keeps what was reserved before it was lowered", async () => {
    await reserve(free("a", 2));
    const lowered = (amount: number) => ({
      ...free("a", amount),
      limit: { scope: "free-instances", max: 1 },
    });
    expect(await reserve(lowered(2))).toEqual(RESERVED);
    expect(await reserve(lowered(3))).toEqual({ reserved: false, reason: "limit", used: 0, max: 1 });
  });
});

describe("a plan's capacity", () => {
  // Shows: docs/applications.md#errors-project-creation: 409 | `INSUFFICIENT_PLAN_CAPACITY`
  it("counts projects over all organizations, and admits exactly as many of 50 concurrent requests", async () => {
    await setPlanCapacity(pools[0], "basic", 7);
    const answers = await reserveConcurrently(50, (index) => basic(`p${index}`, `org${index % 5}`));
    expect(winners(answers)).toBe(7);
    expect(answers.find(({ reserved }) => !reserved)).toEqual({
      reserved: false,
      reason: "capacity",
      limit: 7,
    });
    await setPlanCapacity(pools[0], "basic", null);
    expect(winners(await reserveConcurrently(50, (index) => basic(`p${index}`, `org${index % 5}`)))).toBe(50);
  });

  it("can be zero, and keeps the active projects", async () => {
    await reserve(basic("a"));
    await setPlanCapacity(pools[0], "basic", 0);
    expect(await reserve(basic("a"))).toEqual(RESERVED);
    expect(await reserve(basic("b"))).toEqual({ reserved: false, reason: "capacity", limit: 0 });
  });

  it("is exact together with a limit when 50 change plans concurrently", async () => {
    await setPlanCapacity(pools[0], "free", 3);
    await reserveConcurrently(50, (index) => basic(`p${index}`, `org${index % 4}`));
    const answers = await reserveConcurrently(50, (index) => free(`p${index}`, 1, `org${index % 4}`));
    expect(winners(answers)).toBe(3);
    expect((await listQuotaReservations(pools[0])).filter(({ plan }) => plan === "free")).toHaveLength(3);
  });
});

describe("a release", () => {
  it("of a known version keeps a later reservation, also of another replica", async () => {
    await reserve(free("a"));
    const known = await findQuotaVersion(pools[0], "a", "acme");
    expect(await reserveQuota(pools[1], free("a"))).toEqual(RESERVED);
    expect(await releaseQuota(pools[0], "a", "acme", { version: known })).toBe(false);
    const later = await findQuotaVersion(pools[0], "a", "acme");
    expect(BigInt(later ?? 0)).toBeGreaterThan(BigInt(known ?? 0));
    expect(await releaseQuota(pools[0], "a", "acme", { version: later })).toBe(true);
    expect(await findQuotaVersion(pools[0], "a", "acme")).toBeUndefined();
    // A row that was created again is no earlier one.
    await reserve(free("a"));
    expect(await releaseQuota(pools[0], "a", "acme", { version: later })).toBe(false);
  });
});

describe("a reaper", () => {
  it("finds and releases only reservations that were not requested lately", async () => {
    await reserve(basic("old"));
    await reserve(basic("asked"));
    await sql`update project_slots set taken_at = now() - interval '3 minutes'`.execute(pools[0]);
    await reserve(basic("new"));
    const idle = (await listQuotaReservations(pools[0])).filter((row) => row.idle_seconds >= 120);
    expect(idle.map((row) => row.project_id)).toEqual(["asked", "old"]);
    await reserve(basic("asked"));
    expect(await releaseQuota(pools[0], "asked", "acme", { idleSeconds: 120 })).toBe(false);
    expect(await releaseQuota(pools[0], "old", "acme", { idleSeconds: 120 })).toBe(true);
    expect((await listQuotaReservations(pools[0])).map((row) => row.project_id).sort()).toEqual([
      "asked",
      "new",
    ]);
  });
});

describe("the reservation of a change that failed", () => {
  it("is replaced, unless it was reserved again since", async () => {
    const unused = await reserve(basic("a"));
    if (!unused.reserved) {
      throw new Error("not reserved");
    }
    expect(await replaceQuotaReservation(pools[1], free("a"), unused.version)).toEqual(RESERVED);
    expect(await replaceQuotaReservation(pools[1], basic("a"), unused.version)).toBeUndefined();
    expect(await replaceQuotaReservation(pools[1], basic("b"), unused.version)).toBeUndefined();
    expect(await listQuotaReservations(pools[0])).toMatchObject([{ project_id: "a", plan: "free" }]);
  });
});

describe("locks of a client that sends nothing any more", () => {
  // Shows: docs/applications.md#conventions: without a ledger reads answer, writes are 503, and it
  it("reject the others within seconds, and are released a little later", async () => {
    await setPlanCapacity(pools[0], "basic", 5);
    const locked = Promise.withResolvers<void>();
    const over = Promise.withResolvers<void>();
    const silent = pools[0].transaction().execute(async (transaction) => {
      await sql`select pg_advisory_xact_lock(hashtextextended('slots acme free-instances', 0))`.execute(
        transaction,
      );
      await transaction.selectFrom("plan_capacities").selectAll().forUpdate().execute();
      locked.resolve();
      await over.promise;
    });
    silent.catch(() => undefined);
    await locked.promise;
    const started = performance.now();
    const attempts = await Promise.allSettled(
      [free("a"), basic("b")].map((one) => reserveQuota(pools[1], one)),
    );
    // Not available: lock_timeout.
    for (const attempt of attempts) {
      expect(attempt).toMatchObject({ reason: { code: "55P03" } });
    }
    expect(performance.now() - started).toBeLessThan(4_500);
    for (const one of [free("a"), basic("b")]) {
      expect(await reserveQuota(pools[1], one)).toEqual(RESERVED);
    }
    expect(performance.now() - started).toBeLessThan(8_000);
    over.resolve();
    await expect(silent).rejects.toThrow();
  }, 240_000);

  it("are waited for by migrations, and the server checks the connection", async () => {
    const settings = async (statementTimeoutMs?: number) => {
      const one = connectLedger({ url: postgres.url, applicationName: "test", statementTimeoutMs });
      const show = (name: string) =>
        sql<{ value: string }>`select current_setting(${name}) as value`
          .execute(one)
          .then(({ rows }) => rows[0]?.value);
      const names = ["lock_timeout", "idle_in_transaction_session_timeout", "tcp_keepalives_idle"];
      const values = [];
      for (const name of names) {
        values.push(await show(name));
      }
      await one.destroy();
      return values;
    };
    expect(await settings()).toEqual(["3s", "5s", "30"]);
    expect(await settings(0)).toEqual(["0", "1min", "30"]);
  });
});
