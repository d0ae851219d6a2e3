import type { BillingSeal, SealedUntil } from "@slipway/ledger";
import { type Logger, silentLogger } from "@slipway/process";
import { expect, test } from "vitest";
import { FakeClock } from "../../../test/kit/processes/fake-clock.ts";
import { runSeals } from "./seals.ts";

const UNTIL = new Date("2026-03-01T00:00:00Z");
const seal = { number: 1, hash: "00", rows: 3, to: UNTIL };

/** Seals with these answers, one after the other, and the last one from then on; and when, in seconds. */
async function sealing(
  answers: readonly (SealedUntil | Error)[],
  seconds: number,
  before: readonly (BillingSeal | undefined)[] = [],
) {
  const clock = new FakeClock("2026-03-03T00:00:00Z");
  const began = clock.monotonic();
  const calls: number[] = [];
  const hours: number[] = [];
  const until: (Date | undefined)[] = [];
  let made = 0;
  let read = 0;
  const logged: unknown[] = [];
  const log = {
    ...silentLogger,
    info: (fields: unknown, text: string) => logged.push([text, fields]),
  } as unknown as Logger;
  const ledger = {
    last: async () => {
      read += 1;
      return before[Math.min(read, before.length) - 1];
    },
    seal: async (longestMs: number) => {
      hours.push(longestMs / 3_600_000);
      const answer = answers[Math.min(calls.length, answers.length - 1)];
      calls.push(Math.round((clock.monotonic() - began) / 1_000));
      if (answer === undefined || answer instanceof Error) {
        throw answer ?? new Error("no answer");
      }
      return answer;
    },
  };
  const stop = new AbortController();
  const onSealed = () => {
    made += 1;
  };
  const running = runSeals({ ledger, clock, log, onSealed, onUntil: (at) => until.push(at) }, stop.signal);
  for (let second = 0; second < seconds; second += 1) {
    await clock.advance(1_000);
  }
  stop.abort();
  await running;
  return { calls, hours, until, logged, sealed: made };
}

test("what is left is sealed a second later, and then nothing for an hour", async () => {
  const more = { seal, until: UNTIL, isMore: true };
  const result = await sealing([more, more, { seal: undefined, until: UNTIL, isMore: false }], 3_605);
  expect(result.calls).toEqual([0, 1, 2, 3_602]);
  expect(result.sealed).toBe(2);
});

test("it is tried again a minute after the ledger was away, or another process sealed", async () => {
  const other = { seal: undefined, until: undefined, isMore: false };
  const result = await sealing([new Error("away"), other, { seal, until: UNTIL, isMore: false }], 200);
  expect(result.calls).toEqual([0, 60, 120]);
  expect(result.until).toEqual([UNTIL]);
});

test("a process that begins reports what was sealed before it, also while it cannot seal", async () => {
  const before = new Date("2026-02-27T00:00:00Z");
  const sealed = [{ ...seal, to: before }];
  expect((await sealing([new Error("away")], 50, sealed)).until).toEqual([before]);
  const result = await sealing([{ seal, until: UNTIL, isMore: false }], 1, sealed);
  expect(result.until).toEqual([before, UNTIL]);
});

// Shows: docs/billing-audit.md#seals: Where the ledger takes too long for a day
test("where the ledger takes too long for a day it seals half of it, down to an hour, until all is sealed", async () => {
  const tooSlow = Object.assign(new Error("canceling statement due to statement timeout"), { code: "57014" });
  const more = { seal, until: UNTIL, isMore: true };
  const all = { seal, until: UNTIL, isMore: false };
  const slow = Array.from({ length: 6 }, () => tooSlow);
  const result = await sealing([new Error("away"), ...slow, more, all, all], 2 * 3_600);
  expect(result.hours).toEqual([24, 24, 12, 6, 3, 1.5, 1, 1, 1, 24]);
  expect(result.sealed).toBe(3);
});

// Shows: docs/billing-audit.md#seals: Each one is in the operator's log, or one after it
test("a seal is logged once, also where its answer was lost", async () => {
  const [first, second, third] = [1, 2, 3].map((number) => ({ ...seal, number })) as [
    BillingSeal,
    BillingSeal,
    BillingSeal,
  ];
  const all = { seal: third, until: UNTIL, isMore: false };
  const answers = [{ ...all, seal: undefined }, new Error("lost"), new Error("away"), all];
  const { logged } = await sealing(answers, 3_600 + 130, [first, second]);
  expect(logged).toEqual([
    ["billing sealed before", first],
    ["billing sealed before", second],
    ["billing sealed", third],
  ]);
});
