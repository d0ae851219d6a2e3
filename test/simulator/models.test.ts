import { resources } from "@slipway/controller-runtime";
import { beforeEach, describe, expect, test } from "vitest";
import { Apiserver } from "./apiserver.ts";
import { minutesBetween, units } from "./charge-rules.ts";
import type { Behaviour, ContainerRecord } from "./container.ts";
import { ControllerManager } from "./controller-manager.ts";
import { ModelSchedule } from "./cron.ts";
import { CronJobController } from "./cron-job-controller.ts";
import { GarbageCollector } from "./garbage-collector.ts";
import { JobController } from "./job-controller.ts";
import { Kubelets } from "./kubelets.ts";
import { Nodes } from "./nodes.ts";
import type { StoredJob, StoredNode, StoredPod } from "./objects.ts";
import { Chance } from "./random.ts";
import { Timeline } from "./timeline.ts";

const START = Date.parse("2026-01-01T00:00:10Z");
const ref = { namespace: "n", name: "p" };
const manager = { usualMs: [5, 50], late: 0, lateMs: [0, 0], crashes: 0 } as const;
const usual: Behaviour = {
  scheduleMs: 10,
  pullMs: 0,
  startError: false,
  runMs: 5_000,
  exitCode: 0,
  reason: "Completed",
  stopMs: 1_000,
  stopCode: 143,
};

let timeline: Timeline;
let api: Apiserver;
let nodes: Nodes;
let kcm: ControllerManager;
let behaviour: Behaviour;
let records: ContainerRecord[];

beforeEach(() => {
  timeline = new Timeline(START);
  api = new Apiserver(timeline);
  kcm = new ControllerManager(timeline, new Chance(1, "manager"), manager);
  nodes = new Nodes(timeline, api, new Chance(1, "nodes"), { count: 1, maxSkewMs: 0 });
  behaviour = usual;
  records = [];
  new Kubelets(timeline, api, nodes, new Chance(1, "kubelets"), {
    behaviour: () => behaviour,
    observer: { containerStarted: (record) => records.push(record), containerEnded: () => {} },
  });
  new CronJobController(timeline, api, kcm);
  new JobController(timeline, api, kcm, new Chance(1, "pods"));
  new GarbageCollector(timeline, api, kcm);
});

function makeCronJob(spec: object = {}): void {
  api.create(resources.cronJobs, {
    apiVersion: "batch/v1",
    metadata: ref,
    spec: {
      schedule: "* * * * *",
      concurrencyPolicy: "Forbid",
      startingDeadlineSeconds: 120,
      jobTemplate: {
        spec: {
          suspend: true,
          backoffLimit: 0,
          podReplacementPolicy: "Failed",
          template: {
            metadata: { finalizers: ["test"] },
            spec: { terminationGracePeriodSeconds: 30, containers: [{ name: "app" }] },
          },
        },
      },
      ...spec,
    },
  });
}

const jobs = () => api.list<StoredJob>(resources.jobs);
const pod = () => api.list<StoredPod>(resources.pods)[0];
const conditions = () => jobs()[0]?.status?.conditions?.map(({ type }) => type);
const state = () => pod()?.status.containerStatuses?.[0]?.state;
const after = (seconds: number) => timeline.runUntil(timeline.now + seconds * 1_000);

/** A Job that is unsuspended, and its pod. */
async function start(): Promise<void> {
  makeCronJob();
  await after(52);
  api.patch(resources.jobs, jobs()[0]?.metadata ?? ref, { spec: { suspend: false } });
  await after(2);
}

test("a CronJob makes suspended Jobs named after the minute, and with Forbid none while one is there", async () => {
  makeCronJob();
  await after(180);
  expect(jobs()).toHaveLength(1);
  const minute = Date.parse("2026-01-01T00:01:00Z") / 60_000;
  expect(jobs()[0]?.metadata).toMatchObject({
    name: `p-${minute}`,
    annotations: { "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T00:01:00Z" },
  });
  expect(pod()).toBeUndefined();
});

test("once the Job is deleted it catches up with the most recent missed minute only", async () => {
  makeCronJob();
  await after(52);
  await after(3 * 60);
  api.delete(resources.jobs, jobs()[0]?.metadata ?? ref);
  await after(1);
  expect(jobs().map(({ metadata }) => metadata.annotations)).toEqual([
    { "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T00:04:00Z" },
  ]);
});

test("while the controller-manager is down nothing happens, and nothing that is too old afterwards", async () => {
  makeCronJob({ schedule: "0 * * * *", startingDeadlineSeconds: 120 });
  await after(3_500);
  kcm.stop(400_000);
  await after(7_000 - 3_500);
  expect(jobs()).toHaveLength(0);
  await after(400);
  expect(jobs()).toHaveLength(1);
});

test("an unsuspended Job creates one pod and completes; finalizers keep the pod", async () => {
  await start();
  expect(pod()?.status.phase).toBe("Running");
  await after(10);
  expect(records).toHaveLength(1);
  expect(conditions()).toEqual(["Complete"]);
  expect(pod()?.metadata.finalizers).toEqual(["test"]);
  expect(state()?.terminated).toMatchObject({ exitCode: 0, reason: "Completed" });
  api.delete(resources.jobs, jobs()[0]?.metadata ?? ref);
  await after(2);
  expect(pod()?.metadata.deletionTimestamp).toBeDefined();
  api.patch(resources.pods, pod()?.metadata ?? ref, { metadata: { finalizers: [] } });
  expect(pod()).toBeUndefined();
});

test("a deleted pod gets SIGTERM and is then killed; its Job fails and makes no other", async () => {
  behaviour = { ...usual, runMs: Number.POSITIVE_INFINITY, stopMs: Number.POSITIVE_INFINITY };
  await start();
  api.delete(resources.pods, pod()?.metadata ?? ref);
  await after(29);
  expect(pod()?.status.phase).toBe("Running");
  await after(6);
  expect(state()?.terminated).toMatchObject({ exitCode: 137 });
  expect(conditions()).toEqual(["Failed"]);
  expect(records).toHaveLength(1);
});

test("a pod that is deleted by force is replaced: its Job counts no failure", async () => {
  behaviour = { ...usual, runMs: Number.POSITIVE_INFINITY };
  await start();
  api.strip(resources.pods, pod()?.metadata ?? ref);
  await after(5);
  expect(records).toHaveLength(2);
});

describe("a node", () => {
  test("that is cut off reports nothing until it is back, and its containers run on", async () => {
    await start();
    const node = nodes.all[0];
    if (node) {
      nodes.fail(node, "partition", 90_000);
    }
    await after(60);
    expect(pod()?.status.phase).toBe("Running");
    expect(api.list<StoredNode>(resources.nodes)[0]?.status.conditions[0]?.status).toBe("Unknown");
    expect(records[0]?.endedAt).toBeDefined();
    await after(45);
    expect(pod()?.status.phase).toBe("Succeeded");
    expect(state()?.terminated?.finishedAt).toBe(records[0]?.reportedFinishedAt);
  });

  test("that crashes ends its containers, and reports it after it is back", async () => {
    behaviour = { ...usual, runMs: 50_000 };
    await start();
    const node = nodes.all[0];
    if (node) {
      nodes.fail(node, "crash", 60_000);
    }
    await after(1);
    expect(records[0]).toMatchObject({ lost: true });
    await after(75);
    expect(pod()?.status.phase).toBe("Failed");
  });

  test("that is lost has its pods failed, with finalizers kept", async () => {
    behaviour = { ...usual, runMs: 500_000 };
    await start();
    const node = nodes.all[0];
    // It is removed after half of the time, and then missed for the quarantine.
    if (node) {
      nodes.fail(node, "loss", 300_000);
    }
    await after(185);
    expect(pod()?.status.phase).toBe("Running");
    await after(60);
    expect(pod()?.status.phase).toBe("Failed");
    expect(state()?.running).toBeDefined();
    expect(pod()?.metadata.deletionGracePeriodSeconds).toBe(0);
  });
});

test("a pod that was deleted before it had a node fails", async () => {
  behaviour = { ...usual, scheduleMs: Number.POSITIVE_INFINITY };
  await start();
  api.delete(resources.pods, pod()?.metadata ?? ref);
  await after(25);
  expect(pod()?.status.phase).toBe("Failed");
});

test("the model reads schedules", () => {
  const at = (text: string) => Date.parse(`2026-01-01T${text}Z`);
  const schedule = new ModelSchedule("7,8,30 */2 * * *");
  expect(schedule.next(at("00:08:00"))).toBe(at("00:30:00"));
  expect(schedule.next(at("00:30:00"))).toBe(at("02:07:00"));
  expect(schedule.previous(at("02:06:59"))).toBe(at("00:30:00"));
  expect(schedule.between(at("00:07:00"), at("02:07:00"))).toHaveLength(3);
  expect(() => new ModelSchedule("* * 1 * *")).toThrow(RangeError);
});

test("the model counts minutes and money", () => {
  expect([0, 1, 60_000, 60_001, 3_600_000, 9e6].map((ms) => minutesBetween(0, ms))).toEqual([
    1, 1, 1, 2, 60, 60,
  ]);
  expect(units("2.3333") * 3n).toBe(units("6.9999"));
});

test("chance is the same for the same seed and name, and else another", () => {
  const draw = (seed: number, name: string) => {
    const chance = new Chance(seed, name);
    return Array.from({ length: 5 }, () => chance.next());
  };
  expect(draw(1, "a")).toEqual(draw(1, "a"));
  expect(draw(1, "a")).not.toEqual(draw(1, "b"));
  expect(draw(1, "a")).not.toEqual(draw(2, "a"));
});
