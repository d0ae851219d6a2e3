import { silentLogger } from "@slipway/process";
import { expect, test } from "vitest";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { runResourceMeter } from "./resource-meter.ts";

test("all that is due is charged, also after the ledger was away, and what it refuses is counted", async () => {
  const answers = [
    () => ({ recorded: 500, isMore: true }),
    () => ({ recorded: 0, isMore: false }),
    () => {
      throw new Error("away");
    },
    () => {
      throw Object.assign(new Error("refused"), { code: "23514" });
    },
    () => ({ recorded: 3, isMore: false }),
  ];
  const outcomes: string[] = [];
  let calls = 0;
  const clock = new FakeClock();
  const stop = new AbortController();
  const running = runResourceMeter(
    {
      ledger: {
        chargeBuilds: async () => {
          calls += 1;
          return answers[calls - 1]?.() ?? { recorded: 0, isMore: false };
        },
      },
      clock,
      log: silentLogger,
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
  expect([calls, outcomes]).toEqual([4, ["recorded 500", "refused 1"]]);
  await clock.advance(60_000);
  expect([calls, outcomes]).toEqual([5, ["recorded 500", "refused 1", "recorded 3"]]);
  stop.abort();
  await running;
});
