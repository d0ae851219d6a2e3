import type { MetricSampleRow } from "@slipway/ledger";
import { silentLogger } from "@slipway/process";
import { expect, test } from "vitest";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import { Outbox } from "./outbox.ts";

const row = (instance: string, raw: number) =>
  ({ organizationId: "acme", projectId: "pshop", projectUid: "u", instance, raw }) as MetricSampleRow;

function outboxOf(write: (rows: readonly MetricSampleRow[]) => Promise<void>) {
  const clock = new FakeClock();
  const written: unknown[][] = [];
  const outbox = new Outbox({
    write: async (rows) => {
      await write(rows);
      written.push(rows.map(({ instance, raw }) => `${instance}=${raw}`));
    },
    clock,
    log: silentLogger,
  });
  return { clock, outbox, written };
}

test("samples of one second are written together", async () => {
  const { clock, outbox, written } = outboxOf(async () => undefined);
  outbox.put(row("a", 1));
  await clock.advance(500);
  outbox.put(row("b", 1));
  await clock.advance(500);
  outbox.put(row("a", 2));
  await clock.advance(1_000);
  expect(written).toEqual([["a=1", "b=1"], ["a=2"]]);
  expect(clock.pending).toBe(0);
});

test("what was not written is tried again, but for what is newer by then", async () => {
  let away = true;
  const { clock, outbox, written } = outboxOf(async () => {
    if (away) {
      throw new Error("away");
    }
  });
  outbox.put(row("a", 1));
  outbox.put(row("b", 1));
  await clock.advance(1_000);
  outbox.put(row("a", 2));
  away = false;
  await clock.advance(5_000);
  expect(written).toEqual([["a=2", "b=1"]]);
  await outbox.close();
  expect(clock.pending).toBe(0);
});
