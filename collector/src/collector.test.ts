import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@slipway/process";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeContainerLog } from "../../test/kit/analytics/fake-kubelet.ts";
import { traefikLine } from "../../test/kit/analytics/test-collector.ts";
import { accessLog } from "./access-log.ts";
import { Collector } from "./collector.ts";
import { type Disk, realDisk } from "./disk.ts";
import { CollectorMetrics } from "./metrics.ts";
import { Spool } from "./spool.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "collector-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const inputWith = (metrics: CollectorMetrics) =>
  accessLog({
    source: { namespace: "slipway-ingress", container: "traefik" },
    resolve: () => ({ organization: "o1", project: "p1" }),
    isTrusted: () => false,
    metrics,
    clock: systemClock,
  });

test("a log that cannot be read holds up none of the others", async () => {
  const podLogs = join(folder, "pod-logs");
  const metrics = new CollectorMetrics();
  const spool = await Spool.open(realDisk, join(folder, "state"), Date.now);
  const collector = new Collector({
    podLogs,
    input: inputWith(metrics),
    spool,
    quota: { isFull: async () => false },
    metrics,
    log: { info: () => {}, warn: () => {}, error: () => {} },
    clock: systemClock,
  });
  // A folder in the place of a file.
  await mkdir(join(podLogs, "slipway-ingress_traefik-1_uid/traefik/0.log"), { recursive: true });
  const log = new FakeContainerLog(podLogs, "slipway-ingress_traefik-2_uid");
  await log.start();
  await log.write([traefikLine(1)]);
  await expect
    .poll(async () => {
      await expect(collector.step()).rejects.toThrow("EISDIR");
      return spool.count;
    })
    .toBe(1);
});

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
    quota: { isFull: async () => false },
    metrics,
    log: { info: () => {}, warn: () => {}, error: () => {} },
    clock: systemClock,
  });
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
