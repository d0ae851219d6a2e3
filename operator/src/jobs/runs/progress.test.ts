import { resources } from "@slipway/controller-runtime";
import { describe, expect, test } from "vitest";
import { Bench } from "../../../../test/kit/operator/jobrun-bench.ts";
import { jobRunResource } from "../../resources.ts";
import type { RunLogSource } from "./ports.ts";

/** What a stopped container writes is read while it writes it; stopping waits for that a second, and never fails by it. */

interface Followed extends RunLogSource {
  /** Whether its pod was being deleted already when the log was requested. */
  leaving: boolean;
}

/** A running container, and the requested logs. */
async function running(opens: () => Promise<void> = async () => {}) {
  const bench = new Bench();
  await bench.reconcileUntilStable();
  await bench.passTo("12:01:00");
  const { name, pod } = await bench.start("12:01:00");
  const followed: Followed[] = [];
  const leaving = () => bench.pod(pod)?.metadata.deletionTimestamp !== undefined;
  bench.logs.follow = async (run) => {
    followed.push({ ...run, leaving: leaving() });
    await opens();
    return { ended: new Promise(() => {}), store: async () => "stored" };
  };
  const cancel = () =>
    bench.api.patch(jobRunResource, bench.ref(name), { spec: { cancelRequestedAt: bench.day("12:01:02") } });
  return { bench, name, pod, followed, leaving, cancel };
}

describe("the log of a running container", () => {
  test("is not followed as long as nobody stops it", async () => {
    const { bench, followed } = await running();
    await bench.pass(120_000);
    await bench.reconcileUntilStable();
    expect(followed).toEqual([]);
  });

  // Shows: docs/jobs.md#billing: the log of a run that is stopped, by any client, is kept to its last
  test("that is cancelled is open before its pod is deleted, and is followed once", async () => {
    const { bench, name, pod, followed, leaving, cancel } = await running();
    cancel();
    await bench.reconcileUntilStable();
    expect(leaving()).toBe(true);
    expect(followed).toEqual([
      {
        organizationId: "test",
        namespace: "slipway-org-test",
        projectId: "pjob",
        runId: name,
        scheduledAt: new Date("2026-03-01T12:01:00Z"),
        podName: pod,
        leaving: false,
      },
    ]);
    await bench.pass(20_000);
    await bench.reconcileUntilStable();
    expect(followed).toHaveLength(1);
  });

  test("that is over its limit is open before its pod is deleted", async () => {
    const { bench, followed, leaving } = await running();
    await bench.pass(3_602_000);
    await bench.reconcileUntilStable();
    expect(leaving()).toBe(true);
    expect(followed).toMatchObject([{ leaving: false }]);
  });

  test("that somebody else has deleted is followed", async () => {
    const { bench, pod, followed } = await running();
    bench.api.delete(resources.pods, bench.ref(pod));
    await bench.reconcileUntilStable();
    expect(followed).toMatchObject([{ podName: pod, leaving: true }]);
  });

  test("that does not open keeps nobody from stopping it for longer than a second", async () => {
    const { bench, followed, leaving, cancel } = await running(() => new Promise(() => {}));
    cancel();
    const pass = bench.once();
    await bench.pass(900);
    expect([followed.length, leaving()]).toEqual([1, false]);
    await bench.pass(200);
    await pass;
    expect(leaving()).toBe(true);
  });

  test("that cannot be opened keeps nobody from stopping it", async () => {
    const { bench, followed, leaving, cancel } = await running(() => Promise.reject(new Error("no node")));
    cancel();
    await bench.reconcileUntilStable();
    expect([followed.length, leaving()]).toEqual([1, true]);
  });

  test("on a silent node is not requested", async () => {
    const { bench, followed, leaving, cancel } = await running();
    bench.nodeReady(false);
    cancel();
    await bench.reconcileUntilStable();
    expect([followed.length, leaving()]).toEqual([0, true]);
  });
});

test("a container that has not started is stopped without a request for its log", async () => {
  const bench = new Bench();
  await bench.reconcileUntilStable();
  await bench.passTo("12:01:00");
  const name = bench.makeJob("12:01:00");
  await bench.reconcileUntilStable();
  const pod = bench.makePod(name);
  let requests = 0;
  bench.logs.follow = () => {
    requests += 1;
    return Promise.reject(new Error("not started"));
  };
  bench.api.patch(jobRunResource, bench.ref(name), { spec: { cancelRequestedAt: bench.day("12:01:05") } });
  await bench.reconcileUntilStable();
  expect(bench.pod(pod)?.metadata.deletionTimestamp).toBeDefined();
  expect(requests).toBe(0);
});

test("a pod that its Job creates in place of one that was deleted by force is stopped immediately, and costs nothing", async () => {
  const { bench, name, pod } = await running();
  const seen = bench.run(name)?.status?.lastObservedRunningAt;
  bench.api.strip(resources.pods, bench.ref(pod));
  const second = bench.makePod(name);
  bench.starts(second);
  await bench.reconcileUntilStable();
  // Before the Job is known to make no third one.
  expect(bench.pod(second)?.metadata.deletionTimestamp).toBeDefined();
  expect(bench.job(name)?.metadata.deletionTimestamp).toBeDefined();
  await bench.pass(3_000);
  bench.ends(second, 143, "12:01:00");
  await bench.pass(6_000);
  await bench.reconcileUntilStable();
  expect(bench.run(name)?.status).toMatchObject({ phase: "failed", podName: pod, finishedAt: seen });
  expect(bench.ledger.rows.get(name)).toMatchObject({ billed_minutes: 1 });
});
