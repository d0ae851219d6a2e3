import type { HeldSlot, ReleaseCondition, SlotAnswer, SlotRequest } from "@slipway/ledger";
import { silentLogger } from "@slipway/process";
import { beforeEach, describe, expect, test } from "vitest";
import { LedgerAway, SlotKeeper, type SlotLedger } from "./reservations.ts";

const LIMIT = { scope: "free", max: 2 };

/** A ledger that counts one limit, and what it is asked. */
class FakeLedger implements SlotLedger {
  rows: HeldSlot[] = [];
  asked: string[] = [];
  away = false;
  /** Answers nothing at all, ever. */
  silent = false;

  async take(request: SlotRequest): Promise<SlotAnswer> {
    await this.#ask(`take ${request.projectId}`);
    const others = this.rows.filter((row) => row.project_id !== request.projectId);
    const used = others.filter((row) => row.scope === LIMIT.scope).reduce((sum, row) => sum + row.slots, 0);
    if (request.limit && used + request.slots > LIMIT.max) {
      return { taken: false, reason: "limit", used, max: LIMIT.max };
    }
    const taken = row(request);
    this.rows = [...others, taken];
    return { taken: true, version: taken.version };
  }

  async release({ projectId }: { projectId: string }, { version }: ReleaseCondition = {}): Promise<boolean> {
    await this.#ask(`release ${projectId}`);
    const before = this.rows.length;
    const isMeant = (each: HeldSlot) =>
      each.project_id === projectId && (version === undefined || Number(each.version) <= Number(version));
    this.rows = this.rows.filter((each) => !isMeant(each));
    return this.rows.length < before;
  }

  async list(): Promise<HeldSlot[]> {
    await this.#ask("list");
    return this.rows;
  }

  async #ask(what: string): Promise<void> {
    if (this.away) {
      throw new Error("connection refused");
    }
    if (this.silent) {
      await new Promise(() => {});
    }
    this.asked.push(what);
  }
}

let takings = 0;
const nextVersion = () => {
  takings += 1;
  return String(takings);
};
const row = (request: SlotRequest, idle = 0): HeldSlot => ({
  organization_id: request.organizationId,
  project_id: request.projectId,
  plan: request.plan,
  scope: request.limit?.scope ?? null,
  slots: request.slots,
  taken_at: new Date(),
  idle_seconds: idle,
  version: nextVersion(),
});
const id = (projectId: string) => ({ organizationId: "alpha", projectId });
const free = (projectId: string, slots = 1): SlotRequest => ({
  ...id(projectId),
  plan: "free",
  slots,
  limit: LIMIT,
});
const basic = (projectId: string): SlotRequest => ({ ...id(projectId), plan: "basic", slots: 1 });

let ledger: FakeLedger;
let keeper: SlotKeeper;
let woken: string[];
let now: number;
beforeEach(() => {
  ledger = new FakeLedger();
  now = 0;
  woken = [];
  keeper = new SlotKeeper(ledger, silentLogger, () => now);
  keeper.onWake(({ projectId }) => woken.push(projectId));
});

describe("holding", () => {
  test("asks the ledger once, and again only when what is needed has changed", async () => {
    for (let times = 0; times < 3; times += 1) {
      await keeper.hold(free("a"));
    }
    expect(ledger.asked).toEqual(["list", "take a"]);
    await keeper.hold(free("a", 2));
    await keeper.hold(basic("a"));
    expect(ledger.asked).toEqual(["list", "take a", "take a", "take a"]);
  });

  test("asks nothing for what the ledger had at the start", async () => {
    ledger.rows = [row(free("a"))];
    await keeper.hold(free("a"));
    expect(ledger.asked).toEqual(["list"]);
  });

  test("asks each time for who found no slot", async () => {
    await keeper.hold(free("a", 2));
    expect(await keeper.hold(free("b"))).toMatchObject({ taken: false, reason: "limit" });
    await keeper.hold(free("b"));
    expect(ledger.asked.filter((what) => what === "take b")).toHaveLength(2);
  });

  test("is unknown while the ledger is away, which is not asked for every project then", async () => {
    ledger.away = true;
    await expect(keeper.hold(free("a"))).rejects.toBeInstanceOf(LedgerAway);
    ledger.away = false;
    await expect(keeper.hold(free("a"))).rejects.toBeInstanceOf(LedgerAway);
    now += 2_000;
    expect(await keeper.hold(free("a"))).toMatchObject({ taken: true });
  });

  test("waits for no answer that does not come, nor for every project in turn", async () => {
    keeper = new SlotKeeper(ledger, silentLogger, () => now, 20);
    ledger.silent = true;
    const asking = ["a", "b", "c"].map((name) => keeper.hold(free(name)));
    expect((await Promise.allSettled(asking)).map(({ status }) => status)).toEqual(
      asking.map(() => "rejected"),
    );
    now += 2_000;
    await expect(keeper.hold(free("a"))).rejects.toBeInstanceOf(LedgerAway);
    await keeper.release(id("a"));
    await keeper.forget(id("a"));
    now += 2_000;
    ledger.silent = false;
    expect(await keeper.hold(free("a"))).toMatchObject({ taken: true });
  });

  test("is unknown after a change without an answer: it may have been done", async () => {
    keeper = new SlotKeeper(ledger, silentLogger, () => now, 20);
    await keeper.hold(free("a"));
    ledger.silent = true;
    await expect(keeper.hold(basic("a"))).rejects.toBeInstanceOf(LedgerAway);
    now += 2_000;
    ledger.silent = false;
    ledger.rows = [row(basic("a"))];
    await keeper.hold(free("a"));
    expect(ledger.rows).toMatchObject([{ plan: "free" }]);
  });
});

describe("whoever found no slot looks again", () => {
  beforeEach(async () => {
    await keeper.hold(free("a"));
    await keeper.hold(free("b"));
    await keeper.hold(free("c"));
    expect(woken).toEqual([]);
  });

  test.each<[string, () => Promise<unknown>]>([
    ["another is paused", () => keeper.release(id("a"))],
    ["another is deleted", () => keeper.forget(id("a"))],
    ["another changes its plan", () => keeper.hold(basic("a"))],
    ["another is found to be gone", () => keeper.reap(id("a"), 120)],
  ])("when %s", async (_, free) => {
    await free();
    expect(woken).toEqual(["c"]);
  });

  test("but not when a paused project is looked at again", async () => {
    await keeper.release(id("a"));
    woken = [];
    const asked = ledger.asked.length;
    await keeper.release(id("a"));
    expect(woken).toEqual([]);
    expect(ledger.asked).toHaveLength(asked);
  });
});

describe("refreshing", () => {
  test("wakes the project whose slot is gone or another, and nobody else", async () => {
    for (const name of ["a", "b", "c"]) {
      await keeper.hold(basic(name));
    }
    ledger.rows = [row(basic("a"), 90), row({ ...basic("b"), plan: "pro" }, 90)];
    await keeper.refresh();
    expect(woken.sort()).toEqual(["b", "c"]);
  });

  test("leaves alone what was asked for a moment ago: a change that is not yet written", async () => {
    await keeper.hold(basic("a"));
    ledger.rows = [row({ ...basic("a"), plan: "pro" }, 5)];
    await keeper.refresh();
    expect(woken).toEqual([]);
    await keeper.hold(basic("a"));
    expect(ledger.rows[0]).toMatchObject({ plan: "pro" });
  });

  test("wakes who went on without an answer, once", async () => {
    ledger.away = true;
    await expect(keeper.hold(basic("a"))).rejects.toBeInstanceOf(LedgerAway);
    keeper.lookAgain(id("a"));
    ledger.away = false;
    now += 2_000;
    await keeper.refresh();
    await keeper.refresh();
    expect(woken).toEqual(["a"]);
  });

  test("does not forget what was taken while the rows were read", async () => {
    await keeper.hold(basic("a"));
    const reading = keeper.refresh();
    await keeper.hold(basic("b"));
    await reading;
    expect(woken).toEqual([]);
  });
});

describe("a paused project", () => {
  test("does not give back what was taken since, and asks when it is resumed", async () => {
    await keeper.hold(free("a"));
    ledger.rows = [row(free("a"))];
    await keeper.release(id("a"));
    expect(ledger.rows).toHaveLength(1);
    await keeper.hold(free("a"));
    expect(ledger.asked.filter((what) => what === "take a")).toHaveLength(2);
  });

  test("does not learn from a look at the rows what it may not give back yet", async () => {
    await keeper.hold(free("a"));
    for (const known of [true, false]) {
      ledger.rows = [row(free("a"), 5)];
      await keeper.refresh();
      await keeper.release(id("a"));
      expect([known, ledger.rows.length]).toEqual([known, 1]);
    }
    ledger.rows = [{ ...(ledger.rows[0] as HeldSlot), idle_seconds: 60 }];
    await keeper.refresh();
    await keeper.release(id("a"));
    expect(ledger.rows).toEqual([]);
  });
});

test("what cannot be given back stays known, and is given back later", async () => {
  await keeper.hold(basic("a"));
  ledger.away = true;
  await keeper.release(id("a"));
  ledger.away = false;
  now += 2_000;
  await keeper.release(id("a"));
  expect(ledger.rows).toEqual([]);
});
