import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import {
  connectLedger,
  findSlotVersion,
  type Ledger,
  listSlots,
  migrateToLatest,
  releaseSlot,
  retakeSlot,
  type SlotRequest,
  setPlanCapacity,
  takeSlot,
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

const free = (projectId: string, slots = 1, organizationId = "acme"): SlotRequest => ({
  organizationId,
  projectId,
  plan: "free",
  limit: { scope: "free-instances", max: 2 },
  slots,
});
const basic = (projectId: string, organizationId = "acme"): SlotRequest => ({
  organizationId,
  projectId,
  plan: "basic",
  slots: 1,
});
const take = (request: SlotRequest) => takeSlot(pools[0], request);
const TAKEN = { taken: true, version: expect.stringMatching(/^\d+$/) };

/** The same number of calls over both pools at once. */
function rush(times: number, request: (index: number) => SlotRequest) {
  return Promise.all(
    Array.from({ length: times }, (_, index) => takeSlot(pools[(index % 2) as 0 | 1], request(index))),
  );
}
const winners = (answers: { taken: boolean }[]) => answers.filter(({ taken }) => taken).length;

describe("a limit of an organization", () => {
  it("gives its last slot to exactly one of 50 at once", async () => {
    await take(free("first"));
    const answers = await rush(50, (index) => free(`p${index}`));
    expect(winners(answers)).toBe(1);
    expect(answers.find(({ taken }) => !taken)).toEqual({ taken: false, reason: "limit", used: 2, max: 2 });
    expect(await listSlots(pools[1])).toHaveLength(2);
  });

  it("gives all its slots, and no more, to 50 at once of unlike size", async () => {
    const answers = await rush(50, (index) => free(`p${index}`, 1 + (index % 2)));
    expect(winners(answers)).toBeGreaterThan(0);
    const rows = await listSlots(pools[0]);
    expect(rows.reduce((sum, { slots }) => sum + slots, 0)).toBeLessThanOrEqual(2);
  });

  it("counts each organization for itself, and only plans of its scope", async () => {
    expect(await take(free("a", 2))).toEqual(TAKEN);
    expect(await take(basic("b"))).toEqual(TAKEN);
    expect(await take(free("a", 2, "other"))).toEqual(TAKEN);
    expect(await take(free("c"))).toEqual({ taken: false, reason: "limit", used: 2, max: 2 });
  });

  it("does not count the project's own row, whether it asks for the same, for more or for less", async () => {
    expect(await take(free("a", 1))).toEqual(TAKEN);
    expect(await take(free("a", 2))).toEqual(TAKEN);
    expect(await take(free("a", 2))).toEqual(TAKEN);
    expect(await take(free("a", 3))).toEqual({ taken: false, reason: "limit", used: 0, max: 2 });
    expect((await listSlots(pools[0]))[0]).toMatchObject({ project_id: "a", slots: 2 });
    expect(await take(free("a", 1))).toEqual(TAKEN);
    expect(await take(free("b", 1))).toEqual(TAKEN);
  });

  it("counts once a project that 50 ask for at once", async () => {
    expect(winners(await rush(50, () => free("same")))).toBe(50);
    expect(await listSlots(pools[0])).toHaveLength(1);
  });

  it("frees a slot by release and by a change of plan, and keeps the old one when the change is refused", async () => {
    await take(free("a"));
    await take(free("b"));
    await take(basic("c"));
    expect(await take(free("c"))).toMatchObject({ taken: false, reason: "limit" });
    expect((await listSlots(pools[0])).find((row) => row.project_id === "c")).toMatchObject({
      plan: "basic",
    });
    expect(await take(basic("a"))).toEqual(TAKEN);
    expect(await take(free("c"))).toEqual(TAKEN);
    expect(await take(free("d"))).toMatchObject({ taken: false });
    expect(await releaseSlot(pools[0], "b", "other")).toBe(false);
    expect(await releaseSlot(pools[0], "b", "acme")).toBe(true);
    expect(await releaseSlot(pools[0], "b", "acme")).toBe(false);
    expect(await take(free("d"))).toEqual(TAKEN);
  });

  it("leaves what is held already when the limit was lowered since", async () => {
    await take(free("a", 2));
    const lowered = (slots: number) => ({ ...free("a", slots), limit: { scope: "free-instances", max: 1 } });
    expect(await take(lowered(2))).toEqual(TAKEN);
    expect(await take(lowered(3))).toEqual({ taken: false, reason: "limit", used: 0, max: 1 });
  });
});

describe("a plan's capacity", () => {
  // Shows: docs/applications.md#errors-project-creation: 409 | `INSUFFICIENT_PLAN_CAPACITY`
  it("counts projects over all organizations, and exactly as many of 50 at once", async () => {
    await setPlanCapacity(pools[0], "basic", 7);
    const answers = await rush(50, (index) => basic(`p${index}`, `org${index % 5}`));
    expect(winners(answers)).toBe(7);
    expect(answers.find(({ taken }) => !taken)).toEqual({ taken: false, reason: "capacity", limit: 7 });
    await setPlanCapacity(pools[0], "basic", null);
    expect(winners(await rush(50, (index) => basic(`p${index}`, `org${index % 5}`)))).toBe(50);
  });

  it("can be none at all, and leaves the active projects alone", async () => {
    await take(basic("a"));
    await setPlanCapacity(pools[0], "basic", 0);
    expect(await take(basic("a"))).toEqual(TAKEN);
    expect(await take(basic("b"))).toEqual({ taken: false, reason: "capacity", limit: 0 });
  });

  it("holds together with a limit when 50 change plans at once", async () => {
    await setPlanCapacity(pools[0], "free", 3);
    await rush(50, (index) => basic(`p${index}`, `org${index % 4}`));
    const answers = await rush(50, (index) => free(`p${index}`, 1, `org${index % 4}`));
    expect(winners(answers)).toBe(3);
    expect((await listSlots(pools[0])).filter(({ plan }) => plan === "free")).toHaveLength(3);
  });
});

describe("a release", () => {
  it("of what was known leaves alone what was taken since, also by another replica", async () => {
    await take(free("a"));
    const known = await findSlotVersion(pools[0], "a", "acme");
    expect(await takeSlot(pools[1], free("a"))).toEqual(TAKEN);
    expect(await releaseSlot(pools[0], "a", "acme", { version: known })).toBe(false);
    const later = await findSlotVersion(pools[0], "a", "acme");
    expect(BigInt(later ?? 0)).toBeGreaterThan(BigInt(known ?? 0));
    expect(await releaseSlot(pools[0], "a", "acme", { version: later })).toBe(true);
    expect(await findSlotVersion(pools[0], "a", "acme")).toBeUndefined();
    // A row made anew is no earlier one.
    await take(free("a"));
    expect(await releaseSlot(pools[0], "a", "acme", { version: later })).toBe(false);
  });
});

describe("a reaper", () => {
  it("sees and frees only slots that were not asked for lately", async () => {
    await take(basic("old"));
    await take(basic("asked"));
    await sql`update project_slots set taken_at = now() - interval '3 minutes'`.execute(pools[0]);
    await take(basic("new"));
    const idle = (await listSlots(pools[0])).filter((row) => row.idle_seconds >= 120);
    expect(idle.map((row) => row.project_id)).toEqual(["asked", "old"]);
    await take(basic("asked"));
    expect(await releaseSlot(pools[0], "asked", "acme", { idleSeconds: 120 })).toBe(false);
    expect(await releaseSlot(pools[0], "old", "acme", { idleSeconds: 120 })).toBe(true);
    expect((await listSlots(pools[0])).map((row) => row.project_id).sort()).toEqual(["asked", "new"]);
  });
});

describe("a slot that was taken in vain", () => {
  it("becomes another, unless it was taken again since", async () => {
    const inVain = await take(basic("a"));
    if (!inVain.taken) {
      throw new Error("not taken");
    }
    expect(await retakeSlot(pools[1], free("a"), inVain.version)).toEqual(TAKEN);
    expect(await retakeSlot(pools[1], basic("a"), inVain.version)).toBeUndefined();
    expect(await retakeSlot(pools[1], basic("b"), inVain.version)).toBeUndefined();
    expect(await listSlots(pools[0])).toMatchObject([{ project_id: "a", plan: "free" }]);
  });
});

describe("locks of a client that falls silent", () => {
  // Shows: docs/applications.md#conventions: without a ledger reads answer, writes are 503, and it
  it("refuse the others within seconds, and are free a little later", async () => {
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
    const attempts = await Promise.allSettled([free("a"), basic("b")].map((one) => takeSlot(pools[1], one)));
    // Not available: lock_timeout.
    for (const attempt of attempts) {
      expect(attempt).toMatchObject({ reason: { code: "55P03" } });
    }
    expect(performance.now() - started).toBeLessThan(4_500);
    for (const one of [free("a"), basic("b")]) {
      expect(await takeSlot(pools[1], one)).toEqual(TAKEN);
    }
    expect(performance.now() - started).toBeLessThan(8_000);
    over.resolve();
    await expect(silent).rejects.toThrow();
  }, 20_000);

  it("are waited for by migrations, and the server looks after the connection", async () => {
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
