import { expect, test } from "vitest";
import { FakeClock } from "../../test/kit/processes/fake-clock.ts";
import { DiskQuota, reservedFor } from "./disk-quota.ts";
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
    ...{ maxBufferBytes: 1_000, keepFreeBytes: () => 4_000 },
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

// Shows: docs/logs.md#over-v1: a buffer full of logs leaves the disk to the requests' buffer
test("what one buffer may still take is left free by the other, so that the first is full no sooner than without it", async () => {
  const [requests, logs] = [{ bytes: 0 }, { bytes: 0 }];
  let used = 0;
  const disk = { free: async () => 10_000 - used - requests.bytes - logs.bytes };
  const clock = new FakeClock();
  const shared = { disk, clock, folder: "/state" };
  const ofRequests = new DiskQuota({
    ...{ ...shared, spool: requests, maxBufferBytes: 2_000, metrics: new CollectorMetrics() },
    keepFreeBytes: () => 4_000,
  });
  const ofLogs = new DiskQuota({
    ...{ ...shared, spool: logs, maxBufferBytes: 8_000, metrics: new CollectorMetrics() },
    keepFreeBytes: reservedFor({ spool: requests, maxBufferBytes: 2_000 }, 4_000),
  });
  const fill = async (quota: DiskQuota, spool: { bytes: number }) => {
    for (; !(await quota.isFull()); await clock.advance(1_000)) {
      spool.bytes += 100;
    }
  };
  await fill(ofLogs, logs);
  expect(logs.bytes).toBe(4_000);
  await fill(ofRequests, requests);
  expect(requests.bytes).toBe(2_000);
  // What requests have is no longer reserved, and no more is left for logs.
  expect(await ofLogs.remainingBytes()).toBe(0);
  requests.bytes = 0;
  used = 1_000;
  await clock.advance(1_000);
  expect(await ofLogs.isFull()).toBe(true);
  expect(await ofRequests.remainingBytes()).toBe(1_000);
});
