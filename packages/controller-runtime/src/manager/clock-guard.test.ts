import { silentLogger } from "@slipway/process";
import { beforeEach, expect, test } from "vitest";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import { ClockGuard } from "./clock-guard.ts";

const HOUR = 3_600_000;
const signal = new AbortController().signal;

let clock: FakeClock;
/** By how much each reference is ahead of the process, in milliseconds; undefined does not answer. */
let ahead: Record<"apiserver" | "ledger", number | undefined>;
let latencyMs: number;
let guard: ClockGuard;

beforeEach(() => {
  clock = new FakeClock("2026-03-01T12:00:00.400Z");
  ahead = { apiserver: 0, ledger: 0 };
  latencyMs = 0;
  const reference = (name: "apiserver" | "ledger", resolutionMs: number) => ({
    name,
    resolutionMs,
    read: async () => {
      const by = ahead[name];
      if (by === undefined) {
        throw new Error("away");
      }
      if (latencyMs > 0) {
        await clock.advance(latencyMs);
      }
      const at = clock.now().getTime() + by;
      return new Date(at - (at % resolutionMs));
    },
  });
  guard = new ClockGuard({
    clock,
    log: silentLogger,
    limitMs: 30_000,
    references: [reference("apiserver", 1_000), reference("ledger", 1)],
  });
});

test("a clock is trusted once it was compared, and not before", async () => {
  expect(guard.trusted).toBe(false);
  await guard.measure(signal);
  expect([guard.trusted, guard.skewMs("apiserver"), guard.skewMs("ledger")]).toEqual([true, 0, 0]);
});

test.each([
  ["six hours ahead of both", -6 * HOUR, -6 * HOUR, false],
  ["behind the apiserver", 31_500, 0, false],
  ["behind the ledger", 0, 31_500, false],
  ["a little apart", 20_000, -20_000, true],
  ["right, as far as is known, and nobody else answers", undefined, 0, true],
  ["compared with nobody", undefined, undefined, false],
] as const)("a clock that is %s", async (_what, apiserver, ledger, trusted) => {
  ahead = { apiserver, ledger };
  await guard.measure(signal);
  expect(guard.trusted).toBe(trusted);
});

// Shows: docs/jobs.md#clocks: a clock that is set while it leads is distrusted with its next use
test("a clock that is set is distrusted as soon as it is queried, and trusted again when it is set back", async () => {
  await guard.measure(signal);
  const trusted = guard.clock;
  expect(trusted.now()).toEqual(clock.now());
  clock.jumpWall(6 * HOUR);
  expect(() => trusted.now()).toThrow("ledger: 21600.0 s");
  clock.jumpWall(-6 * HOUR);
  expect(trusted.now()).toEqual(clock.now());
});

test("an answer that takes long proves no more than it can", async () => {
  latencyMs = 40_000;
  ahead = { apiserver: -35_000, ledger: undefined };
  await guard.measure(signal);
  expect(guard.trusted).toBe(true);
});

test("what was read ten minutes ago says nothing any more", async () => {
  await guard.measure(signal);
  ahead = { apiserver: undefined, ledger: undefined };
  await clock.advance(599_000);
  await guard.measure(signal);
  expect(guard.trusted).toBe(true);
  await clock.advance(2_000);
  expect(guard.trusted).toBe(false);
});

test("it measures on its own, and again immediately when the clock is set", async () => {
  const stop = new AbortController();
  let distrusted = 0;
  const running = guard.run(stop.signal, () => {
    distrusted += 1;
  });
  await clock.advance(60_000);
  expect([guard.trusted, distrusted]).toEqual([true, 0]);
  // Set to what the others say: it was they that went on.
  clock.jumpWall(HOUR);
  await clock.advance(1_000);
  expect([guard.trusted, distrusted]).toEqual([true, 0]);
  ahead = { apiserver: -HOUR, ledger: -HOUR };
  await clock.advance(16_000);
  expect(guard.trusted).toBe(false);
  expect(distrusted).toBeGreaterThan(0);
  stop.abort();
  await running;
});
