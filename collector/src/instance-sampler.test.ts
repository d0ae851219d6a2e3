import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { InstanceSample } from "@slipway/analytics";
import type { Summary } from "@slipway/controller-runtime";
import { systemClock } from "@slipway/process";
import { afterEach, beforeEach, expect, test } from "vitest";
import { realDisk } from "./disk.ts";
import { InstanceSampler } from "./instance-sampler.ts";
import { CollectorMetrics } from "./metrics.ts";
import type { InstancePod } from "./pod-owners.ts";
import { Spool } from "./spool.ts";

let folder: string;
let spool: Spool<InstanceSample>;
let metrics: CollectorMetrics;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "collector-"));
  spool = await Spool.open<InstanceSample>(realDisk, folder, Date.now);
  metrics = new CollectorMetrics();
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const pods: InstancePod[] = [
  { organization: "o1", project: "p1", container: "app", instance: "p1-a", uid: "u1", restarts: 0 },
];
const log = { info: () => {}, warn: () => {}, error: () => {} };

function sampler(
  summary: (signal: AbortSignal) => Promise<Summary>,
  isFull = () => false,
  add = (...batch: Parameters<typeof spool.add>) => spool.add(...batch),
) {
  return new InstanceSampler({
    kubelets: { summary: (_address, signal) => summary(signal) },
    address: { host: "127.0.0.1", port: 10_250 },
    pods: { list: () => pods },
    intervalMs: 15_000,
    spool: { add, bytes: 0, count: 0 },
    ...{ metrics, log, clock: systemClock, uptime: () => 100 },
    quota: { isFull: async () => isFull() },
  });
}
const never = new AbortController().signal;

test("each sample is a batch with an id of its own, which a process that follows sends as it is", async () => {
  const one = sampler(async () => ({}));
  await one.step(never);
  const [first] = [spool.oldest];
  const again = await Spool.open<InstanceSample>(realDisk, folder, Date.now);
  const batch = first && (await again.read(first));
  expect(batch?.events).toMatchObject([{ instance: "p1-a", restarts: 0 }]);
  expect(batch?.id).toMatch(/^metrics-[0-9a-f-]{36}$/);
});

test("a full buffer makes a gap, and no request to the kubelet", async () => {
  let requests = 0;
  let full = true;
  const one = sampler(
    async () => {
      requests += 1;
      return {};
    },
    () => full,
  );
  await one.step(never);
  expect([requests, spool.count]).toEqual([0, 0]);
  expect(await metrics.registry.metrics()).toContain("slipway_collector_reading_stopped 1");
  full = false;
  await one.step(never);
  expect([requests, spool.count]).toEqual([1, 1]);
  expect(await metrics.registry.metrics()).toContain("slipway_collector_reading_stopped 0");
});

test("a kubelet that fails is counted, and ends nothing", async () => {
  const stop = new AbortController();
  const one = sampler(async () => {
    setImmediate(() => stop.abort());
    throw new Error("refused");
  });
  await one.run(stop.signal);
  expect(await metrics.registry.metrics()).toContain('slipway_collector_failures_total{step="read"} 1');
  expect(spool.count).toBe(0);
});

test("what could not be written is no failure of the kubelet, and is sampled again", async () => {
  const cpu = { time: new Date().toISOString(), usageCoreNanoSeconds: 5_000 };
  let isBroken = true;
  const one = sampler(
    async () => ({ pods: [{ podRef: { uid: "u1" }, containers: [{ name: "app", cpu }] }] }),
    () => false,
    async (...batch) => (isBroken ? Promise.reject(new Error("no inodes")) : spool.add(...batch)),
  );
  await expect(one.step(never)).rejects.toThrow("no inodes");
  const text = await metrics.registry.metrics();
  expect(text).toContain('slipway_collector_failures_total{step="write"} 1');
  expect(text).toContain('slipway_collector_failures_total{step="read"} 0');
  isBroken = false;
  await one.step(never);
  expect(spool.count).toBe(1);
  await one.step(never);
  expect(spool.count).toBe(1);
});
