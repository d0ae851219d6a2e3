import { expect, test } from "vitest";
import { FakeClock } from "../../test/kit/processes/fake-clock.ts";
import { DiskQuota } from "./disk-quota.ts";
import { CollectorMetrics } from "./metrics.ts";

// Shows: docs/analytics.md#other-ingresses: a full buffer stops the reading; lost files are counted
test("the quota is used up when the buffer has reached its bound, and when the disk has no more free space than others keep", async () => {
  const spool = { bytes: 0 };
  const clock = new FakeClock();
  const metrics = new CollectorMetrics();
  let free = 10_000;
  const disk = { free: async () => free };
  const quota = new DiskQuota({
    ...{ spool, disk, clock, metrics, folder: "/state" },
    ...{ maxBufferBytes: 1_000, keepFreeBytes: 4_000 },
  });
  expect([await quota.remainingBytes(), await quota.isFull()]).toEqual([1_000, false]);
  spool.bytes = 999;
  expect([await quota.remainingBytes(), await quota.isFull()]).toEqual([1, false]);
  spool.bytes = 1_000;
  expect(await quota.isFull()).toBe(true);

  spool.bytes = 100;
  free = 4_300;
  await clock.advance(1_000);
  expect(await quota.remainingBytes()).toBe(300);
  free = 3_000;
  await clock.advance(1_000);
  expect(await quota.isFull()).toBe(true);
  expect(await metrics.registry.metrics()).toContain("slipway_collector_buffer_room_bytes 0\n");
  free = 4_001;
  await clock.advance(1_000);
  expect(await quota.isFull()).toBe(false);
});
