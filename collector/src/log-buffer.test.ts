import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { LogEvent } from "@slipway/analytics";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { FakeContainerLog } from "../../test/kit/analytics/fake-kubelet.ts";
import { drain, LogsNode } from "../../test/kit/analytics/logs-node.ts";
import { FakeClock } from "../../test/kit/processes/fake-clock.ts";

let node: LogsNode;
beforeEach(async () => {
  node = await LogsNode.open();
});
afterEach(() => node.close());

// Shows: docs/logs.md#over-v1: an organization that fills its share of the buffer leaves room for others
test("while the store is away, one organization fills no more than a quarter of the buffer, and another's lines are read", async () => {
  const bufferBytes = 8_000_000;
  const { collector, spool, events, take } = await node.collect({ bufferBytes });
  const loud = await node.logOf("slipway-org-o1_loud-1_uid1", "app");
  const quiet = await node.logOf("slipway-org-o2_quiet-0_uid2", "database");
  // What cannot be compressed.
  for (let round = 0; round < 2; round += 1) {
    await loud.write(Array.from({ length: 1_000 }, () => randomBytes(4_500).toString("base64")));
  }
  let idle = 0;
  for (let step = 0; step < 2_000 && idle < 3; step += 1) {
    const pause = await collector.step();
    idle = pause === 0 ? 0 : idle + 1;
    await sleep(pause);
  }
  expect(spool.bytes).toBeGreaterThan(bufferBytes / 5);
  expect(spool.bytes).toBeLessThan(bufferBytes / 1.5);
  await quiet.write(["LOG:  checkpoint"]);
  await expect
    .poll(
      async () => {
        await collector.step();
        return spool.unsentBytesOf("o2");
      },
      { timeout: 10_000 },
    )
    .toBeGreaterThan(0);
  // Once the store takes batches again, the others' lines come, each once.
  for (let step = 0; step < 2_000 && events.length < 2_001; step += 1) {
    await take();
    await sleep(await collector.step());
  }
  await take();
  expect(new Set(events.map(({ offset, project }) => `${project} ${offset}`)).size).toBe(2_001);
  expect(events).toHaveLength(2_001);
}, 60_000);

test("a batch is bounded in the bytes that its JSON has, whatever the lines are made of", async () => {
  const log = await node.logOf("slipway-org-o1_loud-1_uid1", "app");
  await log.write(Array.from({ length: 300 }, () => "\u0001".repeat(10_000)));
  const { collector, spool } = await node.collect();
  const batches: LogEvent[][] = [];
  for (let step = 0; step < 100 && batches.flat().length < 300; step += 1) {
    await sleep(await collector.step());
    batches.push(...(await drain(spool)));
  }
  expect(batches.flat()).toHaveLength(300);
  const bytes = batches.map((events) => Buffer.byteLength(JSON.stringify(events)));
  expect(Math.max(...bytes)).toBeLessThan(4.5 * 1024 * 1024);
});

test.each([
  { has: "something", lines: ["a line that is not read"], lost: 10 },
  { has: "nothing", lines: [], lost: 0 },
])(
  "of removed instances whose logs may not be read and have $has, so many stay open, and the others are recorded as lost",
  async ({ lines, lost }) => {
    const clock = new FakeClock();
    const { collector, end } = await node.collect({ bufferBytes: 0, clock });
    const logs: FakeContainerLog[] = [];
    for (let pod = 0; pod < 60; pod += 1) {
      const [organization, project] = pod < 3 ? ["o2", "quiet"] : ["o1", "loud"];
      node.pods.set(`pod${pod}`, { organization, project, container: "app" });
      const log = await node.logOf(`slipway-org_${project}-${pod}_pod${pod}`, "app");
      await log.write(lines);
      logs.push(log);
    }
    const stepAfter = async (ms: number) => {
      await clock.advance(ms);
      await collector.step();
    };
    await stepAfter(0);
    await Promise.all(logs.map((log) => log.remove()));
    await stepAfter(30_000);
    expect(collector.size).toBe(60);
    await stepAfter(31_000);
    expect(collector.size).toBe(50);
    const records = await end();
    expect(records).toHaveLength(lost);
    expect(records.every(({ project, lostFiles }) => project === "loud" && lostFiles === 1)).toBe(true);
  },
);
