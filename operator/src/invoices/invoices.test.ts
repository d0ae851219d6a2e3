import { type Clock, silentLogger } from "@slipway/process";
import { expect, test } from "vitest";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { FailedOrganizations } from "./failed-organizations.ts";
import { type InvoiceLedger, issueDue, runInvoices } from "./invoices.ts";

const CYCLES = ["2026-01-01", "2026-02-01"];

/** A ledger in memory, whose organizations have charges in both cycles. */
function ledgerOf(organizations: readonly string[], fails: (key: string) => boolean = () => false) {
  const issued: string[] = [];
  const complete: string[] = [];
  const ledger: InvoiceLedger = {
    begin: async () => {},
    due: async () => new Date("2026-02-02T00:00:00Z"),
    cycles: async () => CYCLES.filter((cycle) => !complete.includes(cycle)),
    organizations: async (cycle) => organizations.filter((id) => !issued.includes(`${id} ${cycle}`)),
    issue: async (id, cycle) => {
      const key = `${id} ${cycle}`;
      if (fails(key)) {
        throw new Error("away");
      }
      issued.push(key);
      return key;
    },
    complete: async (cycle) => void complete.push(cycle),
  };
  return { ledger, issued, complete };
}

const clock = new FakeClock("2026-03-03T00:00:00Z");
const { signal } = new AbortController();

test("cycles are issued in order, and complete once all have theirs", async () => {
  const { ledger, issued, complete } = ledgerOf(["a", "b"]);
  expect(await issueDue({ ledger, clock, log: silentLogger }, signal)).toBe(true);
  expect(issued).toEqual(["a 2026-01-01", "b 2026-01-01", "a 2026-02-01", "b 2026-02-01"]);
  expect(complete).toEqual(CYCLES);
});

// Shows: docs/invoices.md#issue: an organization whose invoice fails delays no other
test("an organization whose invoice fails delays no other, and has no later one first", async () => {
  let isAway = true;
  const { ledger, issued, complete } = ledgerOf(["a", "b"], (key) => isAway && key === "a 2026-01-01");
  const outcomes: string[] = [];
  const options = { ledger, clock, log: silentLogger, onOutcome: (one: string) => outcomes.push(one) };
  expect(await issueDue(options, signal)).toBe(false);
  expect(issued).toEqual(["b 2026-01-01", "b 2026-02-01"]);
  expect(complete).toEqual([]);
  expect(outcomes).toEqual(["failed", "issued", "issued"]);
  isAway = false;
  expect(await issueDue(options, signal)).toBe(true);
  expect(issued.slice(2)).toEqual(["a 2026-01-01", "a 2026-02-01"]);
  expect(complete).toEqual(CYCLES);
});

test("one that no longer leads issues no more", async () => {
  const leading = new AbortController();
  const { ledger, issued } = ledgerOf(["a", "b"]);
  const ending: InvoiceLedger = {
    ...ledger,
    issue: async (...key) => {
      const number = await ledger.issue(...key);
      leading.abort();
      return number;
    },
  };
  await expect(issueDue({ ledger: ending, clock, log: silentLogger }, leading.signal)).rejects.toThrow();
  expect(issued).toEqual(["a 2026-01-01"]);
});

test("one that no longer leads does not wait for the invoice that it issues", async () => {
  const leading = new AbortController();
  const { ledger } = ledgerOf(["a", "b"]);
  const outcomes: string[] = [];
  const pending: InvoiceLedger = {
    ...ledger,
    issue: () => {
      leading.abort();
      return new Promise(() => {});
    },
  };
  const options = {
    ledger: pending,
    clock,
    log: silentLogger,
    onOutcome: (one: string) => outcomes.push(one),
  };
  await expect(issueDue(options, leading.signal)).rejects.toThrow();
  expect(outcomes).toEqual([]);
});

const lockTimeout = Object.assign(new Error("lock timeout"), { code: "55P03", severity: "ERROR" });
test.each([
  ["another process issues", { issue: () => Promise.reject(lockTimeout) }],
  [
    "the ledger is away",
    {
      issue: () => Promise.reject(new Error("Connection terminated")),
      due: () => Promise.reject(new Error("connect ECONNREFUSED")),
    },
  ],
])("no organization's invoice has failed where %s", async (_, methods) => {
  const { ledger } = ledgerOf(["a", "b"]);
  const outcomes: string[] = [];
  let calls = 0;
  const issue = () => {
    calls += 1;
    return methods.issue();
  };
  const options = { clock, log: silentLogger, onOutcome: (one: string) => outcomes.push(one) };
  await expect(issueDue({ ...options, ledger: { ...ledger, ...methods, issue } }, signal)).rejects.toThrow();
  expect([calls, outcomes]).toEqual([1, []]);
});

test("an organization whose invoice fails is tried again after a minute, and less and less often up to an hour", async () => {
  const time = new FakeClock("2026-03-03T00:00:00Z");
  const { ledger, issued } = ledgerOf(["a", "b"], (key) => key.startsWith("a"));
  const attempts: number[] = [];
  const due: (Date | undefined)[] = [];
  const passes: number[] = [];
  const counting: InvoiceLedger = {
    ...ledger,
    cycles: () => {
      passes.push(time.monotonic() / 60_000);
      return ledger.cycles();
    },
    issue: (id, cycle) => {
      if (id === "a") {
        attempts.push(time.monotonic() / 60_000);
      }
      return ledger.issue(id, cycle);
    },
  };
  const stop = new AbortController();
  const options = {
    ledger: counting,
    clock: time,
    log: silentLogger,
    onDue: (one: Date | undefined) => due.push(one),
  };
  const began = time.monotonic() / 60_000;
  const running = runInvoices(options, stop.signal);
  for (let minute = 0; minute < 190; minute += 1) {
    await time.advance(60_000);
  }
  stop.abort();
  await running;
  expect(attempts.map((at) => Math.round(at - began))).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183]);
  // Nothing is read in between.
  expect(passes).toEqual(attempts);
  expect(issued).toEqual(["b 2026-01-01", "b 2026-02-01"]);
  expect(due).toContainEqual(new Date("2026-02-02T00:00:00Z"));
});

test("an organization whose invoice another process has issued is not waited for", async () => {
  const { ledger, issued } = ledgerOf(["a"], () => true);
  const failures = new FailedOrganizations(clock);
  const options = { ledger, clock, log: silentLogger };
  expect(await issueDue(options, signal, failures)).toBe(false);
  expect(failures.nextAttemptMs()).toBe(60_000);
  issued.push(...CYCLES.map((cycle) => `a ${cycle}`));
  expect(await issueDue(options, signal, failures)).toBe(true);
  expect(failures.nextAttemptMs()).toBeUndefined();
});

test("nothing is issued while the clock is not trusted, and a minute later it is", async () => {
  const { ledger, issued } = ledgerOf(["a"]);
  const time = new FakeClock("2026-03-03T00:00:00Z");
  let isTrusted = false;
  const now = () => {
    if (!isTrusted) {
      throw new Error("the clock is not trusted");
    }
    return time.now();
  };
  const trusted: Clock = {
    now,
    monotonic: () => time.monotonic(),
    setTimeout: (callback, ms) => time.setTimeout(callback, ms),
  };
  const stop = new AbortController();
  const running = runInvoices({ ledger, clock: trusted, log: silentLogger }, stop.signal);
  await time.advance(59_000);
  expect(issued).toEqual([]);
  isTrusted = true;
  await time.advance(1_000);
  await expect.poll(() => issued.length).toBe(2);
  stop.abort();
  await running;
});
