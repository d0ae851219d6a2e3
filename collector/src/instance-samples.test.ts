import type { Summary } from "@slipway/controller-runtime";
import { expect, test } from "vitest";
import { MeasuredOnce, MOST_INSTANCES, MOST_OF_ORGANIZATION, samplesOf } from "./instance-samples.ts";
import type { InstancePod } from "./pod-owners.ts";

const now = Date.parse("2026-11-29T12:00:00Z");
const bootedAt = now - 86_400_000;
const moment = { now, bootedAt };
const at = (secondsAgo: number) => new Date(now - secondsAgo * 1000).toISOString();
const pod = (uid: string, change: Partial<InstancePod> = {}): InstancePod => ({
  ...{ organization: "acme", project: "pshop", container: "app", instance: `pshop-${uid}`, uid, restarts: 2 },
  ...change,
});

/** A pod in the kubelet's own words. */
const reported = (uid: string, container = "app", more: object = {}) => ({
  podRef: { name: `pshop-${uid}`, namespace: "slipway-org-acme", uid },
  containers: [
    { name: "sidecar", cpu: { time: at(1), usageCoreNanoSeconds: 7 } },
    {
      name: container,
      startTime: at(3_600),
      cpu: { time: at(10), usageNanoCores: 5, usageCoreNanoSeconds: 90_000_000_000 },
      memory: { time: at(11), usageBytes: 9, workingSetBytes: 4_096 },
    },
  ],
  network: { name: "eth0", time: at(12), rxBytes: 1_000, txBytes: 2_000, interfaces: [] },
  volume: [
    { name: "tmp", usedBytes: 1, capacityBytes: 2 },
    { name: "data", pvcRef: { name: "pshop", namespace: "x" }, usedBytes: 30, capacityBytes: 100 },
  ],
  ...more,
});

test("an instance's own container, network, claim and restarts are a sample, at the kubelet's times", () => {
  const { samples, omitted } = samplesOf({ pods: [reported("u1")] }, [pod("u1")], moment);
  expect(omitted).toBe(0);
  expect(samples).toEqual([
    {
      ...{ organization: "acme", project: "pshop", instance: "pshop-u1", pod: "u1" },
      ...{
        at: now - 10_000,
        bootedAt,
        startedAt: now - 3_600_000,
        cpuMicroseconds: 90_000_000,
        memoryBytes: 4_096,
      },
      ...{ networkAt: now - 12_000, receivedBytes: 1_000, transmittedBytes: 2_000 },
      ...{ restarts: 2, volumeUsedBytes: 30, volumeCapacityBytes: 100 },
    },
  ]);
});

test("a database's container is another one, and pods of no project are left out", () => {
  const summary: Summary = { pods: [reported("u1", "database"), reported("stranger")] };
  const { samples } = samplesOf(summary, [pod("u1", { container: "database" })], moment);
  expect(samples).toMatchObject([{ pod: "u1", cpuMicroseconds: 90_000_000 }]);
});

test("what is not known is null, never zero", () => {
  const bare = { podRef: { uid: "u1" }, containers: [{ name: "app" }] };
  const [crashed] = samplesOf({ pods: [bare] }, [pod("u1")], moment).samples;
  expect(crashed).toEqual({
    ...{ organization: "acme", project: "pshop", instance: "pshop-u1", pod: "u1", at: now, bootedAt },
    ...{ startedAt: null, cpuMicroseconds: null, memoryBytes: null },
    ...{ networkAt: null, receivedBytes: null, transmittedBytes: null },
    ...{ restarts: 2, volumeUsedBytes: null, volumeCapacityBytes: null },
  });
  // Neither the kubelet nor the cluster has said anything yet.
  expect(samplesOf({}, [pod("u1", { restarts: undefined })], moment).samples).toEqual([]);
});

test("readings of long ago are of a container that has ended", () => {
  const cpu = { time: at(600), usageCoreNanoSeconds: 5 };
  const old = reported("u1", "app", { containers: [{ name: "app", cpu }], network: undefined, volume: [] });
  expect(samplesOf({ pods: [old] }, [pod("u1")], moment).samples).toMatchObject([
    { at: now, cpuMicroseconds: null },
  ]);
});

// Shows: docs/metrics.md#what-is-promised: an organization with many instances keeps others' from nothing
test("an organization has a bound, so that others' instances are sampled, and the node has one", () => {
  const many = Array.from({ length: MOST_OF_ORGANIZATION + 50 }, (_, index) => pod(`loud-${index}`));
  const quiet = pod("quiet", { organization: "globex" });
  const bounded = samplesOf({}, [...many, quiet], moment);
  expect(bounded.samples).toHaveLength(MOST_OF_ORGANIZATION + 1);
  expect(bounded.samples.at(-1)?.pod).toBe("quiet");
  expect(bounded.omitted).toBe(50);
  const all = Array.from({ length: MOST_INSTANCES + 7 }, (_, index) =>
    pod(`u${index}`, { organization: `o${index}` }),
  );
  expect(samplesOf({}, all, moment)).toMatchObject({ omitted: 7, samples: { length: MOST_INSTANCES } });
});

test("instances that are measured come before those of which the cluster alone says something", () => {
  const still = Array.from({ length: MOST_OF_ORGANIZATION }, (_, index) => pod(`still-${index}`));
  const { samples, omitted } = samplesOf({ pods: [reported("live")] }, [...still, pod("live")], moment);
  expect(samples[0]).toMatchObject({ pod: "live", cpuMicroseconds: 90_000_000 });
  expect([samples.length, omitted]).toEqual([MOST_OF_ORGANIZATION, 1]);
});

test.each([
  ["nothing", {}],
  ["no pods", { pods: [] }],
  [
    "other types",
    { pods: [{ podRef: { uid: 7 } }, { podRef: { uid: "u1" }, network: { time: 5 }, volume: [{}] }] },
  ],
])("a summary with %s fails nothing", (_about, summary) => {
  expect(samplesOf(summary as Summary, [pod("u1")], moment).samples).toMatchObject([
    { cpuMicroseconds: null },
  ]);
});

test("what the kubelet has not measured again is the same sample", () => {
  const once = new MeasuredOnce();
  const { samples } = samplesOf({ pods: [reported("u1")] }, [pod("u1")], moment);
  // What was not stored is not known.
  expect(once.of(samples)).toEqual(samples);
  expect(once.of(samples)).toEqual(samples);
  once.note(samples, samples);
  expect(once.of(samples)).toEqual([]);
  expect(once.of(samples.map((one) => ({ ...one, at: one.at + 1_000 })))).toHaveLength(1);
});

test("while a container is down its network and restarts go on, without what it used last", () => {
  const once = new MeasuredOnce();
  const step = (networkAgo: number, restarts: number) => {
    const network = { time: at(networkAgo), rxBytes: 5_000, txBytes: 6_000 };
    const summary = { pods: [reported("u1", "app", { network })] };
    const { samples } = samplesOf(summary, [pod("u1", { restarts })], moment);
    const fresh = once.of(samples);
    once.note(samples, fresh);
    return fresh;
  };
  expect(step(12, 2)).toMatchObject([{ at: now - 10_000, cpuMicroseconds: 90_000_000 }]);
  const nothing = { startedAt: null, cpuMicroseconds: null, memoryBytes: null };
  expect(step(5, 3)).toMatchObject([{ at: now - 5_000, networkAt: now - 5_000, restarts: 3, ...nothing }]);
  expect(step(5, 4)).toEqual([]);
  expect(step(2, 5)).toMatchObject([{ at: now - 2_000, restarts: 5, ...nothing }]);
});
