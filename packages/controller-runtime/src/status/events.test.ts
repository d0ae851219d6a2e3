import { silentLogger } from "@slipway/process";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeApiserver } from "../../../../test/kit/apiserver/fake-apiserver.ts";
import { eventually } from "../../../../test/kit/processes/eventually.ts";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import { KubeClient } from "../client/client.ts";
import { resources } from "../client/resources.ts";
import type { KubernetesObject } from "../client/types.ts";
import { createRuntimeMetrics } from "../manager/runtime-metrics.ts";
import { ApiEventRecorder, type EventInput } from "./events.ts";

let api: FakeApiserver;
let client: KubeClient;
let clock: FakeClock;
let recorder: ApiEventRecorder;
let registry: Registry;
let abort: AbortController;
let running: Promise<void>;

beforeEach(async () => {
  api = await FakeApiserver.start();
  client = KubeClient.forUrl(api.url);
  clock = new FakeClock();
  registry = new Registry();
  recorder = new ApiEventRecorder({
    client,
    clock,
    random: () => 0,
    log: silentLogger,
    metrics: createRuntimeMetrics(registry),
    reportingController: "test.dev/operator",
    reportingInstance: "pod-1",
  });
  abort = new AbortController();
  running = recorder.run(abort.signal);
});

afterEach(async () => {
  abort.abort();
  await running;
  await client.close();
  await api.stop();
});

const pod = (uid = "u1", namespace: string | undefined = "a"): KubernetesObject => ({
  metadata: { name: "p", uid, resourceVersion: "5", ...(namespace ? { namespace } : {}) },
});
const INPUT: EventInput = { type: "Warning", reason: "Failed", note: "it failed" };
const events = () => [...api.etcd.collection("events.k8s.io/v1/events").values()];
const seriesCount = () => (events()[0]?.series as { count: number } | undefined)?.count;
const count = async (result: string) => {
  const text = await registry.metrics();
  return Number(
    text.match(new RegExp(`controller_runtime_events_total{result="${result}"} (\\d+)`))?.[1] ?? 0,
  );
};

describe("ApiEventRecorder", () => {
  it("records what happened to what, in events.k8s.io/v1", async () => {
    recorder.event(pod(), resources.pods, INPUT);
    await eventually("an event", () => events().length === 1);
    expect(events()[0]).toMatchObject({
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { namespace: "a", name: expect.stringMatching(/^p\.[0-9a-f]+$/) },
      eventTime: "2026-01-01T00:00:00.000000Z",
      type: "Warning",
      reason: "Failed",
      note: "it failed",
      action: "Reconcile",
      regarding: {
        apiVersion: "v1",
        kind: "Pod",
        name: "p",
        namespace: "a",
        uid: "u1",
        resourceVersion: "5",
      },
      reportingController: "test.dev/operator",
      reportingInstance: "pod-1",
    });
  });

  it("puts those of cluster-scoped objects into the default namespace", async () => {
    recorder.event({ metadata: { name: "n", uid: "u" } }, resources.namespaces, INPUT);
    await eventually("an event", () => events().length === 1);
    expect(events()[0]).toMatchObject({ metadata: { namespace: "default" } });
    expect(events()[0]?.regarding).not.toHaveProperty("namespace");
  });

  it("counts repetitions in one series, and writes that rarely", async () => {
    for (let repetition = 0; repetition < 50; repetition += 1) {
      recorder.event(pod(), resources.pods, INPUT);
      if (repetition < 2) {
        await eventually("written", async () => (await count("recorded")) === repetition + 1);
      }
    }
    expect(await count("merged")).toBe(48);
    expect(events()).toHaveLength(1);
    expect(events()[0]?.series).toMatchObject({ count: 2 });
    await clock.advance(60_000);
    recorder.event(pod(), resources.pods, INPUT);
    await eventually("the series", () => seriesCount() === 51);
  });

  it("starts a new event after six quiet minutes, and for another note", async () => {
    recorder.event(pod(), resources.pods, INPUT);
    recorder.event(pod(), resources.pods, { ...INPUT, note: "otherwise" });
    await clock.advance(6 * 60_000 + 1);
    recorder.event(pod(), resources.pods, INPUT);
    await eventually("three events", () => events().length === 3);
  });

  it("limits the events of one object", async () => {
    for (let number = 0; number < 100; number += 1) {
      recorder.event(pod(), resources.pods, { ...INPUT, note: `note ${number}` });
    }
    expect(await count("dropped")).toBe(75);
    recorder.event(pod("u2"), resources.pods, INPUT);
    await eventually("25 and the other's", () => events().length === 26);
  });

  it("drops what the apiserver rejects, and continues", async () => {
    api.failNext(({ method }) => method === "POST", { status: 403, reason: "Forbidden" });
    recorder.event(pod(), resources.pods, INPUT);
    recorder.event(pod(), resources.pods, { ...INPUT, note: "second" });
    await eventually("the second", () => events().length === 1);
    expect(await count("failed")).toBe(1);
  });
});
