import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AccessEvent } from "@slipway/analytics";
import { systemClock } from "@slipway/process";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeContainerLog } from "../../test/kit/analytics/fake-kubelet.ts";
import { traefikLine } from "../../test/kit/analytics/test-collector.ts";
import { FakeClock } from "../../test/kit/processes/fake-clock.ts";
import { accessLog } from "./access-log.ts";
import { Collector, type CollectorOptions } from "./collector.ts";
import { type Disk, realDisk } from "./disk.ts";
import type { Input } from "./input.ts";
import { CollectorMetrics } from "./metrics.ts";
import { Spool } from "./spool.ts";

let folder: string;
let opened: Collector<AccessEvent> | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "collector-"));
});
afterEach(async () => {
  const ended = new AbortController();
  ended.abort();
  await opened?.run(ended.signal);
  await rm(folder, { recursive: true, force: true });
});

const inputWith = (metrics: CollectorMetrics) =>
  accessLog({
    source: { namespace: "slipway-ingress", container: "traefik" },
    resolve: () => ({ organization: "o1", project: "p1" }),
    isTrusted: () => false,
    metrics,
    clock: systemClock,
  });

/** A collector whose quota is never full, by default of the ingress's log. */
async function open(change: Partial<CollectorOptions<AccessEvent>> = {}) {
  const podLogs = join(folder, "pod-logs");
  const metrics = new CollectorMetrics();
  const spool = await Spool.open(realDisk, join(folder, "state"), Date.now);
  const errors: string[] = [];
  const collector = new Collector({
    podLogs,
    input: inputWith(metrics),
    spool,
    quota: { remainingBytes: async () => 1e9 },
    metrics,
    log: { info: () => {}, warn: () => {}, error: (_, message) => errors.push(message) },
    clock: systemClock,
    ...change,
  });
  opened = collector;
  return { collector, podLogs, spool, metrics, errors };
}

/** Numbers of the requests that wait on the disk. */
async function waiting(spool: Spool): Promise<number[]> {
  const found: number[] = [];
  for (let oldest = spool.oldest; oldest; oldest = spool.oldest) {
    found.push(...(await spool.read(oldest)).events.map(({ bytesSent }) => bytesSent));
    await spool.done(oldest);
  }
  return found;
}

test("a log that cannot be read holds up none of the others", async () => {
  const { collector, podLogs, spool, metrics, errors } = await open();
  // A folder in the place of a file.
  await mkdir(join(podLogs, "slipway-ingress_traefik-1_uid/traefik/0.log"), { recursive: true });
  const log = new FakeContainerLog(podLogs, "slipway-ingress_traefik-2_uid");
  await log.start();
  await log.write([traefikLine(1)]);
  // Without a pause as long as there is something.
  expect(await collector.step()).toBe(0);
  await expect
    .poll(async () => {
      expect(await collector.step()).toBeLessThan(1_000);
      return spool.count;
    })
    .toBe(1);
  expect(await metrics.registry.metrics()).toMatch(/slipway_collector_failures_total\{step="read"\} [1-9]/);
  // What the other one has is no count of all requests.
  expect(collector.isReading).toBe(false);
  // Where its files are searched for, and where it is read: once each, however often that fails.
  expect(errors).toEqual(["logs cannot be read", "logs cannot be read"]);
});

test("a line that cannot be taken stops its own log, and what was taken before it is taken once", async () => {
  let isBroken = true;
  const input = inputWith(new CollectorMetrics());
  const take: Input<AccessEvent>["take"] = (line, log, batch) => {
    if (isBroken && line.content.includes('"DownstreamContentSize":3,')) {
      throw new Error("a line that nobody has thought of");
    }
    return input.take(line, log, batch);
  };
  const { collector, podLogs, spool } = await open({ input: { ...input, take } });
  const [one, other] = ["1", "2"].map(
    (pod) => new FakeContainerLog(podLogs, `slipway-ingress_traefik-${pod}_uid${pod}`),
  ) as [FakeContainerLog, FakeContainerLog];
  await one.start();
  await one.write([1, 2, 3, 4].map((number) => traefikLine(number)));
  await other.start();
  await other.write([traefikLine(10)]);
  const found: number[] = [];
  const read = async (count: number) => {
    await expect
      .poll(
        async () => {
          await collector.step();
          found.push(...(await waiting(spool)));
          return found.length;
        },
        { timeout: 10_000 },
      )
      .toBeGreaterThanOrEqual(count);
  };
  await read(3);
  expect([...found].sort()).toEqual([1, 10, 2].sort());
  // It is tried again several times, beside the other log.
  for (let number = 11; number < 14; number += 1) {
    await other.write([traefikLine(number)]);
    await read(number - 7);
  }
  // Where a process begins that is started now.
  expect(Object.values(spool.positions)).toHaveLength(2);
  isBroken = false;
  await read(8);
  expect([...found].sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 10, 11, 12, 13]);
}, 60_000);

test("what a full disk does not take is read once, kept, and written when there is room; no more is read meanwhile", async () => {
  let isDiskFull = true;
  const disk: Disk = {
    ...realDisk,
    write: (path, content) =>
      isDiskFull ? Promise.reject(new Error("ENOSPC")) : realDisk.write(path, content),
  };
  const metrics = new CollectorMetrics();
  const spool = await Spool.open(disk, join(folder, "state"), Date.now);
  const collector = new Collector({
    podLogs: join(folder, "pod-logs"),
    input: inputWith(metrics),
    spool,
    quota: { remainingBytes: async () => 1e9 },
    metrics,
    log: { info: () => {}, warn: () => {}, error: () => {} },
    clock: systemClock,
  });
  opened = collector;
  const log = new FakeContainerLog(join(folder, "pod-logs"), "slipway-ingress_traefik-1_uid");
  await log.start();
  const count = 12_000;
  await log.write(Array.from({ length: count }, (_, index) => traefikLine(index + 1)));
  const linesRead = async () =>
    Number(/^slipway_collector_lines_total (\d+)$/m.exec(await metrics.registry.metrics())?.[1]);
  let failures = 0;
  const step = () =>
    collector.step().catch((error: Error) => {
      expect(error.message).toBe("ENOSPC");
      failures += 1;
    });
  // A batch's worth, and what one look at a file may add to that.
  while (failures < 20) {
    await step();
  }
  const read = await linesRead();
  expect(read).toBeLessThan(6_500);
  while (failures < 40) {
    await step();
  }
  expect([await linesRead(), spool.count]).toEqual([read, 0]);
  isDiskFull = false;
  const sizes: number[] = [];
  while (sizes.length < count) {
    await step();
    for (let oldest = spool.oldest; oldest; oldest = spool.oldest) {
      sizes.push(...(await spool.read(oldest)).events.map(({ bytesSent }) => bytesSent));
      await spool.done(oldest);
    }
  }
  expect(sizes).toEqual(Array.from({ length: count }, (_, index) => index + 1));
}, 240_000);

// Shows: docs/applications.md#scaling-by-requests: only requests that reached an instance count
test("a request is counted once it has ended, unless the ingress answered it itself", async () => {
  const counted: { project: string; endedAt: number }[] = [];
  const input = accessLog({
    source: { namespace: "slipway-ingress", container: "traefik" },
    resolve: () => ({ organization: "o1", project: "p1" }),
    isTrusted: () => false,
    metrics: new CollectorMetrics(),
    clock: systemClock,
    onRequest: ({ project }, endedAt) => counted.push({ project, endedAt }),
  });
  const { collector, podLogs } = await open({ input });
  const log = new FakeContainerLog(podLogs, "slipway-ingress_traefik-1_uid");
  await log.start();
  const served = traefikLine(1);
  const refused = JSON.stringify({ ...(JSON.parse(served) as object), ServiceName: undefined });
  expect(collector.isReading).toBe(false);
  await log.write([served, refused]);
  await expect
    .poll(async () => {
      await collector.step();
      return counted.length;
    })
    .toBe(1);
  await collector.step();
  const { StartUTC, Duration } = JSON.parse(served) as { StartUTC: string; Duration: number };
  const endedAt = expect.closeTo(Date.parse(StartUTC) + Duration / 1e6, 1);
  expect(counted).toEqual([{ project: "p1", endedAt }]);
  expect(collector.isReading).toBe(true);
});

test("logs count as read while there are some, the buffer has room, and a round has succeeded within 5 s", async () => {
  const clock = new FakeClock();
  let remaining: number | Error = 1e9;
  const remainingBytes = async () => {
    if (remaining instanceof Error) {
      throw remaining;
    }
    return remaining;
  };
  const { collector, podLogs } = await open({ clock, quota: { remainingBytes } });
  await collector.step();
  expect(collector.isReading).toBe(false);
  await new FakeContainerLog(podLogs, "slipway-ingress_traefik-1_uid").start();
  const after = async (left: number | Error) => {
    remaining = left;
    await clock.advance(5_000);
    await collector.step().catch(() => undefined);
    return collector.isReading;
  };
  expect(await after(1e9)).toBe(true);
  expect(await after(0)).toBe(false);
  expect(await after(1e9)).toBe(true);
  expect(await after(new Error("EIO"))).toBe(false);
  expect(await after(1e9)).toBe(true);
});

test("a part of a log that was lost before it was read is reported, for the counts of requests", async () => {
  let gaps = 0;
  const input = accessLog({
    source: { namespace: "slipway-ingress", container: "traefik" },
    resolve: () => ({ organization: "o1", project: "p1" }),
    isTrusted: () => false,
    metrics: new CollectorMetrics(),
    clock: systemClock,
    onGap: () => {
      gaps += 1;
    },
  });
  const { collector, podLogs } = await open({ input });
  const log = new FakeContainerLog(podLogs, "slipway-ingress_traefik-1_uid");
  await log.start();
  await log.write([traefikLine(1)]);
  await collector.step();
  await log.write([traefikLine(2)]);
  expect(gaps).toBe(0);
  // More often than it is read: one file is removed that was not opened.
  for (let rotation = 0; rotation < 3; rotation += 1) {
    await log.rotate();
  }
  await log.write([traefikLine(3)]);
  await expect
    .poll(async () => {
      await collector.step();
      return gaps;
    })
    .toBe(1);
});
