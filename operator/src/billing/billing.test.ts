import { silentLogger } from "@slipway/process";
import { expect, test } from "vitest";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { runSettlement } from "./billing.ts";

test("a cycle is settled two hours after its end, once, and retried while the ledger is unavailable", async () => {
  const clock = new FakeClock("2026-01-31T22:30:00Z");
  const settled: string[] = [];
  let away = false;
  let tries = 0;
  const settle = async (cycle: Date) => {
    tries += 1;
    if (away) {
      throw new Error("away");
    }
    settled.push(`${cycle.toISOString().slice(0, 7)} at ${clock.now().toISOString().slice(5, 16)}`);
    return 1;
  };
  const stop = new AbortController();
  const running = runSettlement({ settle, clock, log: silentLogger }, stop.signal);
  await clock.advance(3 * 3_600_000);
  expect(settled).toEqual(["2025-12 at 01-31T22:30"]);
  away = true;
  await clock.advance(3 * 3_600_000);
  expect(tries).toBeGreaterThan(10);
  away = false;
  await clock.advance(60_000);
  expect(settled).toEqual(["2025-12 at 01-31T22:30", "2026-01 at 02-01T04:31"]);
  await clock.advance(40 * 3_600_000);
  expect(settled).toHaveLength(2);
  stop.abort();
  await running;
});
