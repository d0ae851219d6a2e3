import { type Logger, silentLogger } from "@slipway/process";
import { expect, test } from "vitest";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { runResourceMeter } from "./resource-meter.ts";

test("all that is due is charged, also after the ledger was away, and what it refuses or has otherwise is counted and named", async () => {
  const refused = { organizationId: "acme", projectId: "shop", buildId: "b1", reason: "nothing_ahead" };
  const answers = [
    () => ({ recorded: 500, differing: [], refused: [], isMore: true }),
    () => ({ recorded: 0, differing: [], refused: [], isMore: false }),
    () => {
      throw new Error("away");
    },
    () => ({ recorded: 1, differing: ["u1/build_minute/b2"], refused: [refused], isMore: false }),
    () => ({ recorded: 3, differing: [], refused: [], isMore: false }),
  ];
  const outcomes: string[] = [];
  const lines: unknown[] = [];
  let calls = 0;
  const clock = new FakeClock();
  const stop = new AbortController();
  const running = runResourceMeter(
    {
      ledger: {
        chargeBuilds: async () => {
          calls += 1;
          return answers[calls - 1]?.() ?? { recorded: 0, differing: [], refused: [], isMore: false };
        },
      },
      clock,
      log: { ...silentLogger, error: (...line: unknown[]) => lines.push(line) } as unknown as Logger,
      onOutcome: (outcome, count) => outcomes.push(`${outcome} ${count}`),
    },
    stop.signal,
  );
  await clock.advance(0);
  expect([calls, outcomes]).toEqual([1, ["recorded 500"]]);
  await clock.advance(1_000);
  expect([calls, outcomes]).toEqual([2, ["recorded 500"]]);
  await clock.advance(60_000);
  expect([calls, outcomes]).toEqual([3, ["recorded 500"]]);
  await clock.advance(60_000);
  expect([calls, outcomes]).toEqual([4, ["recorded 500", "recorded 1", "differs 1", "refused 1"]]);
  expect(lines).toEqual([
    [{ keys: ["u1/build_minute/b2"] }, expect.any(String)],
    [refused, expect.any(String)],
  ]);
  await clock.advance(60_000);
  expect([calls, outcomes]).toEqual([
    5,
    ["recorded 500", "recorded 1", "differs 1", "refused 1", "recorded 3"],
  ]);
  stop.abort();
  await running;
});
