import { expect, test } from "vitest";
import { cleanUpDeliveries } from "./controller.ts";

test("what need not be kept is removed in steps until there is no more, or the process ends", async () => {
  const stop = new AbortController();
  const calls: string[] = [];
  const ledger = (more: boolean[]) => ({
    giveUpDisabled: async () => calls.push("give up"),
    retire: async () => {
      calls.push("retire");
      return more.shift() ?? false;
    },
  });
  await cleanUpDeliveries(ledger([true, true]), stop.signal);
  expect(calls).toEqual(["give up", "retire", "retire", "retire"]);
  stop.abort();
  calls.length = 0;
  await cleanUpDeliveries(ledger([true]), stop.signal);
  expect(calls).toEqual(["give up"]);
});
