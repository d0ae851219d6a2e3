import { expect, test } from "vitest";
import { FakeClock } from "../../test/kit/processes/fake-clock.ts";
import { Room } from "./disk-quota.ts";
import { CollectorMetrics } from "./metrics.ts";

// Shows: docs/analytics.md#other-ingresses: a full buffer stops the reading; what is lost is counted
test("the buffer is full when it has grown to its bound, and when the disk has no more room than others are left with", async () => {
  const spool = { bytes: 0 };
  const clock = new FakeClock();
  const metrics = new CollectorMetrics();
  let free = 10_000;
  const disk = { free: async () => free };
  const room = new Room({
    ...{ spool, disk, clock, metrics, folder: "/state" },
    ...{ maxBufferBytes: 1_000, keepFreeBytes: 4_000 },
  });
  expect([await room.left(), await room.isFull()]).toEqual([1_000, false]);
  spool.bytes = 999;
  expect([await room.left(), await room.isFull()]).toEqual([1, false]);
  spool.bytes = 1_000;
  expect(await room.isFull()).toBe(true);

  spool.bytes = 100;
  free = 4_300;
  await clock.advance(1_000);
  expect(await room.left()).toBe(300);
  free = 3_000;
  await clock.advance(1_000);
  expect(await room.isFull()).toBe(true);
  expect(await metrics.registry.metrics()).toContain("slipway_collector_buffer_room_bytes 0\n");
  free = 4_001;
  await clock.advance(1_000);
  expect(await room.isFull()).toBe(false);
});
