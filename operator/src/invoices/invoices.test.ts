import { type Clock, silentLogger } from "@slipway/process";
import { expect, test } from "vitest";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { type InvoiceLedger, issueDue, runInvoices } from "./invoices.ts";

const CYCLES = ["2026-01-01", "2026-02-01"];

/** A ledger in memory, whose organizations have charges in both cycles. */
function ledgerOf(organizations: readonly string[], fails: (key: string) => boolean = () => false) {
  const issued: string[] = [];
  const complete: string[] = [];
  const ledger: InvoiceLedger = {
    begin: async () => {},
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
