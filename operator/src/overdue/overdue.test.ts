import type { Manager } from "@slipway/controller-runtime";
import { silentLogger } from "@slipway/process";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { addOverdue, type OverdueLedger, recordOverdueInvoices } from "./overdue.ts";

const clock = new FakeClock("2026-03-03T00:00:00Z");
const { signal } = new AbortController();

/** A ledger in memory, in which all organizations have something due once. */
function ledgerOf(organizations: readonly string[], change: Partial<OverdueLedger> = {}) {
  const recorded: string[] = [];
  const ledger: OverdueLedger = {
    list: async ({ after, limit }) => organizations.filter((id) => id > after).slice(0, limit),
    due: async (ids) => ids.filter((id) => !recorded.includes(id)),
    record: async (id) => {
      recorded.push(id);
      return { notices: 1, blocks: 0 };
    },
    ...change,
  };
  const counts = { notices: 0, failures: 0 };
  const options = {
    ...{ ledger, clock, trustedClock: clock, log: silentLogger },
    onRecorded: ({ notices }: { notices: number }) => {
      counts.notices += notices;
    },
    onFailure: () => {
      counts.failures += 1;
    },
  };
  return { recorded, counts, round: (of = signal) => recordOverdueInvoices(options, of) };
}

test("a round records what is due, and the next one nothing", async () => {
  const { round, recorded, counts } = ledgerOf(["a", "b"]);
  expect(await round()).toBe(true);
  expect(await round()).toBe(true);
  expect([recorded, counts]).toEqual([["a", "b"], { notices: 2, failures: 0 }]);
});

// Shows: docs/invoices.md#overdue: an organization that cannot be recorded keeps no other back
test("an organization that fails keeps no other back, and the round is not complete", async () => {
  const done: string[] = [];
  const { round, counts } = ledgerOf(["a", "b"], {
    record: async (id) => {
      if (id === "a") {
        throw new Error("refused");
      }
      done.push(id);
      return { notices: 1, blocks: 1 };
    },
  });
  expect(await round()).toBe(false);
  expect([done, counts.failures]).toEqual([["b"], 1]);
});

test("one that no longer leads records no more", async () => {
  const leading = new AbortController();
  const done: string[] = [];
  const { round } = ledgerOf(["a", "b"], {
    record: async (id) => {
      done.push(id);
      leading.abort();
      return { notices: 1, blocks: 0 };
    },
  });
  expect(await round(leading.signal)).toBe(false);
  expect(done).toEqual(["a"]);
});

test("nothing is recorded while the ledger is away", async () => {
  const { round } = ledgerOf(["a"], { list: () => Promise.reject(new Error("away")) });
  await expect(round()).rejects.toThrow("away");
});

test("the leader goes through all every ten minutes, and a minute after a round that failed", async () => {
  const time = new FakeClock("2026-03-03T00:00:00Z");
  const registry = new Registry();
  const rounds: number[] = [];
  const began = time.monotonic();
  const { recorded } = ledgerOf([]);
  const ledger: OverdueLedger = {
    list: async () => {
      rounds.push(Math.round((time.monotonic() - began) / 60_000));
      if (rounds.length === 1) {
        throw new Error("away");
      }
      return ["a"];
    },
    due: async () => ["a"],
    record: async (id) => {
      recorded.push(id);
      return { notices: 2, blocks: 1 };
    },
  };
  let run: ((signal: AbortSignal) => Promise<void>) | undefined;
  const manager = { clock: time, trustedClock: time, log: silentLogger, registry };
  addOverdue(
    {
      ...manager,
      addRunnable: (runnable: { run: (signal: AbortSignal) => Promise<void> }) => {
        ({ run } = runnable);
      },
    } as unknown as Manager,
    ledger,
  );
  const stop = new AbortController();
  const running = run?.(stop.signal);
  for (let minute = 0; minute < 12; minute += 1) {
    await time.advance(60_000);
  }
  expect(rounds).toEqual([0, 1, 11]);
  const metrics = await registry.metrics();
  expect(metrics).toContain('slipway_overdue_steps_total{step="notice"} 4');
  expect(metrics).toContain('slipway_overdue_steps_total{step="block"} 2');
  expect(metrics).toContain("slipway_overdue_failures_total 1");
  expect(metrics).toContain("slipway_overdue_round_age_seconds 60");
  stop.abort();
  await running;
  expect(await registry.metrics()).toContain("slipway_overdue_round_age_seconds 0");
});
