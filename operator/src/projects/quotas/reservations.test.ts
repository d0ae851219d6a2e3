import type { QuotaDecision, QuotaRequest, QuotaReservation, ReleaseCondition } from "@slipway/ledger";
import { silentLogger } from "@slipway/process";
import { beforeEach, describe, expect, test } from "vitest";
import { LedgerUnavailableError, type QuotaLedger } from "./quota-ledger.ts";
import { QuotaReservations } from "./reservations.ts";

const LIMIT = { scope: "free", max: 2 };

/** A ledger that counts one limit, and what it is asked. */
class FakeLedger implements QuotaLedger {
  rows: QuotaReservation[] = [];
  asked: string[] = [];
  away = false;
  /** Answers nothing at all, ever. */
  silent = false;

  async reserve(request: QuotaRequest): Promise<QuotaDecision> {
    await this.#ask(`reserve ${request.projectId}`);
    const others = this.rows.filter((row) => row.project_id !== request.projectId);
    const used = others.filter((row) => row.scope === LIMIT.scope).reduce((sum, row) => sum + row.slots, 0);
    if (request.limit && used + request.amount > LIMIT.max) {
      return { reserved: false, reason: "limit", used, max: LIMIT.max };
    }
    const reserved = row(request);
    this.rows = [...others, reserved];
    return { reserved: true, version: reserved.version };
  }

  async release({ projectId }: { projectId: string }, { version }: ReleaseCondition = {}): Promise<boolean> {
    await this.#ask(`release ${projectId}`);
    const before = this.rows.length;
    const isMeant = (each: QuotaReservation) =>
      each.project_id === projectId && (version === undefined || Number(each.version) <= Number(version));
    this.rows = this.rows.filter((each) => !isMeant(each));
    return this.rows.length < before;
  }

  async list(): Promise<QuotaReservation[]> {
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

let reservations = 0;
const nextVersion = () => {
  reservations += 1;
  return String(reservations);
};
const row = (request: QuotaRequest, idle = 0): QuotaReservation => ({
  organization_id: request.organizationId,
  project_id: request.projectId,
  plan: request.plan,
  scope: request.limit?.scope ?? null,
  slots: request.amount,
  taken_at: new Date(),
  idle_seconds: idle,
  version: nextVersion(),
});
const id = (projectId: string) => ({ organizationId: "alpha", projectId });
const free = (projectId: string, amount = 1): QuotaRequest => ({
  ...id(projectId),
  plan: "free",
  amount,
  limit: LIMIT,
});
const basic = (projectId: string): QuotaRequest => ({ ...id(projectId), plan: "basic", amount: 1 });

let ledger: FakeLedger;
let quotas: QuotaReservations;
let woken: string[];
let now: number;
beforeEach(() => {
  ledger = new FakeLedger();
  now = 0;
  woken = [];
  quotas = new QuotaReservations(ledger, silentLogger, () => now);
  quotas.onWake(({ projectId }) => woken.push(projectId));
});

describe("holding", () => {
  test("queries the ledger once, and again only when the request has changed", async () => {
    for (let times = 0; times < 3; times += 1) {
      await quotas.reserve(free("a"));
    }
    expect(ledger.asked).toEqual(["list", "reserve a"]);
    await quotas.reserve(free("a", 2));
    await quotas.reserve(basic("a"));
    expect(ledger.asked).toEqual(["list", "reserve a", "reserve a", "reserve a"]);
  });

  test("asks nothing for what the ledger had at the start", async () => {
    ledger.rows = [row(free("a"))];
    await quotas.reserve(free("a"));
    expect(ledger.asked).toEqual(["list"]);
  });

  test("queries the ledger each time for a refused project", async () => {
    await quotas.reserve(free("a", 2));
    expect(await quotas.reserve(free("b"))).toMatchObject({ reserved: false, reason: "limit" });
    await quotas.reserve(free("b"));
    expect(ledger.asked.filter((what) => what === "reserve b")).toHaveLength(2);
  });

  test("is unknown while the ledger is unavailable, which is not queried for every project then", async () => {
    ledger.away = true;
    await expect(quotas.reserve(free("a"))).rejects.toBeInstanceOf(LedgerUnavailableError);
    ledger.away = false;
    await expect(quotas.reserve(free("a"))).rejects.toBeInstanceOf(LedgerUnavailableError);
    now += 2_000;
    expect(await quotas.reserve(free("a"))).toMatchObject({ reserved: true });
  });

  test("waits for no answer that does not come, nor for every project in turn", async () => {
    quotas = new QuotaReservations(ledger, silentLogger, () => now, 20);
    ledger.silent = true;
    const asking = ["a", "b", "c"].map((name) => quotas.reserve(free(name)));
    expect((await Promise.allSettled(asking)).map(({ status }) => status)).toEqual(
      asking.map(() => "rejected"),
    );
    now += 2_000;
    await expect(quotas.reserve(free("a"))).rejects.toBeInstanceOf(LedgerUnavailableError);
    await quotas.releaseOfPaused(id("a"));
    await quotas.release(id("a"));
    now += 2_000;
    ledger.silent = false;
    expect(await quotas.reserve(free("a"))).toMatchObject({ reserved: true });
  });

  test("is unknown after a change without an answer: it may have been done", async () => {
    quotas = new QuotaReservations(ledger, silentLogger, () => now, 20);
    await quotas.reserve(free("a"));
    ledger.silent = true;
    await expect(quotas.reserve(basic("a"))).rejects.toBeInstanceOf(LedgerUnavailableError);
    now += 2_000;
    ledger.silent = false;
    ledger.rows = [row(basic("a"))];
    await quotas.reserve(free("a"));
    expect(ledger.rows).toMatchObject([{ plan: "free" }]);
  });
});

describe("a refused project is woken", () => {
  beforeEach(async () => {
    await quotas.reserve(free("a"));
    await quotas.reserve(free("b"));
    await quotas.reserve(free("c"));
    expect(woken).toEqual([]);
  });

  test.each<[string, () => Promise<unknown>]>([
    ["another is paused", () => quotas.releaseOfPaused(id("a"))],
    ["another is deleted", () => quotas.release(id("a"))],
    ["another changes its plan", () => quotas.reserve(basic("a"))],
    ["another is found deleted", () => quotas.reap(id("a"), 120)],
  ])("when %s", async (_, free) => {
    await free();
    expect(woken).toEqual(["c"]);
  });

  test("but not when a paused project is reconciled again", async () => {
    await quotas.releaseOfPaused(id("a"));
    woken = [];
    const asked = ledger.asked.length;
    await quotas.releaseOfPaused(id("a"));
    expect(woken).toEqual([]);
    expect(ledger.asked).toHaveLength(asked);
  });
});

describe("refreshing", () => {
  test("wakes the project whose quota is released or changed, and no other", async () => {
    for (const name of ["a", "b", "c"]) {
      await quotas.reserve(basic(name));
    }
    ledger.rows = [row(basic("a"), 90), row({ ...basic("b"), plan: "pro" }, 90)];
    await quotas.refresh();
    expect(woken.sort()).toEqual(["b", "c"]);
  });

  test("ignores what was reserved a moment ago: a change that is not yet written", async () => {
    await quotas.reserve(basic("a"));
    ledger.rows = [row({ ...basic("a"), plan: "pro" }, 5)];
    await quotas.refresh();
    expect(woken).toEqual([]);
    await quotas.reserve(basic("a"));
    expect(ledger.rows[0]).toMatchObject({ plan: "pro" });
  });

  test("wakes a project that continued without an answer, once", async () => {
    ledger.away = true;
    await expect(quotas.reserve(basic("a"))).rejects.toBeInstanceOf(LedgerUnavailableError);
    quotas.requeueWhenAvailable(id("a"));
    ledger.away = false;
    now += 2_000;
    await quotas.refresh();
    await quotas.refresh();
    expect(woken).toEqual(["a"]);
  });

  test("does not forget what was reserved while the rows were read", async () => {
    await quotas.reserve(basic("a"));
    const reading = quotas.refresh();
    await quotas.reserve(basic("b"));
    await reading;
    expect(woken).toEqual([]);
  });
});

describe("a paused project", () => {
  test("does not release what was reserved since, and queries the ledger when it is resumed", async () => {
    await quotas.reserve(free("a"));
    ledger.rows = [row(free("a"))];
    await quotas.releaseOfPaused(id("a"));
    expect(ledger.rows).toHaveLength(1);
    await quotas.reserve(free("a"));
    expect(ledger.asked.filter((what) => what === "reserve a")).toHaveLength(2);
  });

  test("does not learn from the rows what it may not release yet", async () => {
    await quotas.reserve(free("a"));
    for (const known of [true, false]) {
      ledger.rows = [row(free("a"), 5)];
      await quotas.refresh();
      await quotas.releaseOfPaused(id("a"));
      expect([known, ledger.rows.length]).toEqual([known, 1]);
    }
    ledger.rows = [{ ...(ledger.rows[0] as QuotaReservation), idle_seconds: 60 }];
    await quotas.refresh();
    await quotas.releaseOfPaused(id("a"));
    expect(ledger.rows).toEqual([]);
  });
});

test("what cannot be given back stays known, and is given back later", async () => {
  await quotas.reserve(basic("a"));
  ledger.away = true;
  await quotas.releaseOfPaused(id("a"));
  ledger.away = false;
  now += 2_000;
  await quotas.releaseOfPaused(id("a"));
  expect(ledger.rows).toEqual([]);
});
