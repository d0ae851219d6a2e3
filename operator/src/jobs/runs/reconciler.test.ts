import { KubeError, resources } from "@slipway/controller-runtime";
import { describe, expect, test } from "vitest";
import { Bench, PROJECT } from "../../../../test/kit/operator/jobrun-bench.ts";
import { jobRunResource } from "../../resources.ts";

/** The state table "Job run" of the specification, and what may go wrong between two writes. */

const network = () => new KubeError({ status: 0, reason: "NetworkError", message: "cut" });

async function begun(options = {}): Promise<Bench> {
  const bench = new Bench(options);
  await bench.reconcileUntilStable();
  await bench.passTo("12:01:00");
  return bench;
}

describe("an occurrence", () => {
  // Shows: docs/jobs.md#job-run: (none) | an occurrence, and no run is active | `running` from the
  // Shows: docs/jobs.md#billing: a run keeps the price at which it was admitted
  test("with no run active is admitted, runs, and is billed from its container's start", async () => {
    const bench = await begun();
    const name = bench.makeJob("12:01:00");
    await bench.reconcileUntilStable();
    expect(bench.state).toMatchObject({
      activeRun: name,
      lastScheduledAt: "2026-03-01T12:01:00.000Z",
      nextScheduledAt: "2026-03-01T12:02:00.000Z",
    });
    expect(bench.job(name)?.spec?.suspend).toBe(false);
    expect(bench.job(name)?.metadata.annotations).toMatchObject({ "slipway.dev/price-per-minute": "0.25" });
    expect(bench.run(name)?.metadata.finalizers).toEqual(["slipway.dev/jobrun"]);
    const pod = bench.makePod(name);
    await bench.passTo("12:01:20");
    bench.starts(pod);
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status).toMatchObject({
      phase: "running",
      plan: "job-basic",
      nodeName: "node-1",
    });
    await bench.passTo("12:01:50");
    bench.ends(pod, 0, "12:01:20");
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status).toMatchObject({
      phase: "succeeded",
      startedAt: "2026-03-01T12:01:20.000Z",
      finishedAt: "2026-03-01T12:01:50.000Z",
      billedMinutes: 1,
      amount: "0.25",
      logs: "stored",
    });
    expect(bench.condition(name, "Charged")).toBe("True/ChargeRecorded");
    expect([...bench.ledger.rows.keys()]).toEqual([name]);
    expect(bench.state).toMatchObject({ lastFinishedAt: "2026-03-01T12:01:50.000Z", lastRun: { name } });
    expect(bench.state.activeRun).toBeUndefined();
    expect(bench.job(name)).toBeUndefined();
    expect(bench.pod(pod)?.metadata.finalizers).toEqual([]);
    await bench.pass(5 * 60_000 + 1_000);
    await bench.reconcileUntilStable();
    expect(bench.run(name)).toBeUndefined();
    expect(bench.writes.length).toBeLessThanOrEqual(14);
  });

  // Shows: docs/jobs.md#job-run: (none) | an occurrence, and a run is active | none: missed, `Overlap`
  test("while another run is active is missed: no queue, no catch-up", async () => {
    const bench = await begun();
    const first = await bench.start("12:01:00");
    await bench.passTo("12:02:00");
    const second = bench.makeJob("12:02:00");
    await bench.reconcileUntilStable();
    expect(bench.state.activeRun).toBe(first.name);
    await bench.passTo("12:02:10");
    bench.ends(first.pod, 0, "12:01:00");
    await bench.reconcileUntilStable();
    expect(bench.missed()).toBe("Overlap 1");
    expect(bench.job(second)).toBeUndefined();
    expect(bench.run(second)).toBeUndefined();
    expect(bench.events.map(({ reason }) => reason)).toEqual(["Overlap"]);
  });

  test("just after a run that ended the second before is admitted, although that was learned late", async () => {
    const bench = await begun();
    const first = await bench.start("12:01:00");
    await bench.passTo("12:01:59");
    const ended = bench.day("12:01:59");
    await bench.passTo("12:02:00");
    const second = bench.makeJob("12:02:00");
    await bench.reconcileUntilStable();
    expect(bench.state.activeRun).toBe(first.name);
    const startedAt = bench.day("12:01:01");
    const terminated = { exitCode: 0, reason: "Completed", startedAt, finishedAt: ended };
    bench.patchPodStatus(first.pod, { terminated }, "Succeeded");
    await bench.reconcileUntilStable();
    expect(bench.state.activeRun).toBe(second);
    expect(bench.missed()).toBe("");
  });

  // Shows: docs/jobs.md#occurrences-that-were-missed: `Overlap` | a run was active at its minute
  test("that ended in the scheduled second itself overlaps", async () => {
    const bench = await begun();
    const first = await bench.start("12:01:00");
    await bench.passTo("12:02:00");
    bench.makeJob("12:02:00");
    bench.ends(first.pod, 0, "12:01:00");
    await bench.reconcileUntilStable();
    expect(bench.missed()).toBe("Overlap 1");
  });

  // Shows: docs/jobs.md#occurrences-that-were-missed: `Late` | its Job was created, or could be
  test("whose Job is created after its window is late, and never starts", async () => {
    const bench = await begun({ cron: "*/5 * * * *", start: "2026-03-01T12:00:30Z" });
    await bench.passTo("12:07:00");
    const name = bench.makeJob("12:05:00");
    await bench.reconcileUntilStable();
    expect(bench.missed()).toBe("Late 1");
    expect(bench.job(name)).toBeUndefined();
    expect(bench.run(name)).toBeUndefined();
  });

  // Shows: docs/jobs.md#occurrences-that-were-missed: `NotCreated` | the cluster created no Job for it
  test("without a Job is missed as NotCreated, and counted once", async () => {
    const bench = await begun();
    await bench.passTo("12:03:30");
    await bench.reconcileUntilStable();
    await bench.reconcileUntilStable();
    expect(bench.missed()).toBe("NotCreated 2");
    expect(bench.state.lastScheduledAt).toBe("2026-03-01T12:02:00.000Z");
  });

  // Shows: docs/jobs.md#occurrences-that-were-missed: `NotAccepted` | plan, Secret or namespace of the
  test("of a project that is not accepted is missed as NotAccepted", async () => {
    const bench = await begun();
    bench.accept(false);
    bench.makeJob("12:01:00");
    await bench.reconcileUntilStable();
    expect(bench.state.activeRun).toBeUndefined();
    await bench.passTo("12:02:01");
    await bench.reconcileUntilStable();
    expect(bench.missed()).toBe("NotAccepted 1");
  });

  // Shows: docs/jobs.md#occurrences-that-were-missed: `OperatorUnavailable` | its window closed before
  test("whose window closed before this operator led is counted as OperatorUnavailable", async () => {
    const bench = await begun({ leaderSince: new Date("2026-03-01T12:03:10Z") });
    await bench.passTo("12:03:10");
    const name = bench.makeJob("12:03:00");
    await bench.reconcileUntilStable();
    expect(bench.missed()).toBe("OperatorUnavailable 2");
    expect(bench.state.activeRun).toBe(name);
  });

  test("is neither admitted nor missed while the project is paused or closed", async () => {
    const bench = await begun();
    bench.patchProject({ spec: { paused: true } });
    const name = bench.makeJob("12:01:00");
    await bench.reconcileUntilStable();
    expect(bench.job(name)).toBeUndefined();
    expect(bench.state.scheduledSince).toBeUndefined();
    await bench.passTo("12:05:30");
    bench.patchProject({ spec: { paused: null } });
    await bench.reconcileUntilStable();
    expect(bench.state.scheduledSince).toBe("2026-03-01T12:05:30.000Z");
    expect(bench.missed()).toBe("");
  });

  // Shows: docs/jobs.md#two-operators-and-kubectl: every write of a run's life may be lost, or its answer
  test("whose admission began is completed after a crash at every write", async () => {
    for (const fault of ["beforeWrite", "afterWrite"] as const) {
      for (let failing = 1; failing <= 3; failing += 1) {
        const bench = await begun();
        const name = bench.makeJob("12:01:00");
        let sent = 0;
        bench[fault] = () => {
          sent += 1;
          if (sent === failing) {
            throw network();
          }
        };
        await expect(bench.once()).rejects.toThrow("cut");
        await bench.reconcileUntilStable();
        expect([fault, failing, bench.state.activeRun]).toEqual([fault, failing, name]);
        expect(bench.job(name)?.spec?.suspend).toBe(false);
        expect(bench.run(name)).toBeDefined();
      }
    }
  });

  // Shows: docs/jobs.md#occurrences-that-were-missed: `Late` | its Job was created, or could be
  test("that acquired the slot and could not be admitted in its window is withdrawn, and missed once", async () => {
    const bench = await begun();
    const name = bench.makeJob("12:01:00");
    bench.beforeWrite = (write) => {
      if (write === "patch jobs") {
        throw network();
      }
    };
    await expect(bench.once()).rejects.toThrow("cut");
    bench.beforeWrite = () => {};
    await bench.passTo("12:02:00");
    await bench.reconcileUntilStable();
    expect(bench.state.activeRun).toBeUndefined();
    expect(bench.missed()).toBe("Late 1");
    expect(bench.job(name)).toBeUndefined();
    expect(bench.run(name)).toBeUndefined();
  });
});

describe("a run", () => {
  // Shows: docs/jobs.md#job-run: `running` | exit code 0 | `succeeded`, billed
  test.each([
    ["exit code 0", 0, "succeeded", "Completed"],
    ["another exit code", 3, "failed", "Error"],
    ["no memory left", 137, "failed", "OOMKilled"],
  ] as const)("that ends with %s", async (_what, exitCode, phase, reason) => {
    const bench = await begun();
    const { name, pod } = await bench.start("12:01:00");
    await bench.passTo("12:02:10");
    bench.ends(pod, exitCode, "12:01:00", reason);
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status).toMatchObject({ phase, exitCode, endReason: reason, billedMinutes: 2 });
    await bench.pass(60_000);
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status?.phase).toBe(phase);
    expect(bench.ledger.rows.get(name)).toMatchObject({ status: phase, billed_minutes: 2, amount: "0.5" });
  });

  // Shows: docs/jobs.md#job-run: `running` | 60 minutes after the container's start
  test("is stopped at its limit, counted from the container's start, and billed for its running time", async () => {
    const bench = await begun({ limitMs: 120_000 });
    const { name, pod } = await bench.start("12:01:00");
    await bench.passTo("12:02:59");
    await bench.reconcileUntilStable();
    expect(bench.pod(pod)?.metadata.deletionTimestamp).toBeUndefined();
    await bench.passTo("12:03:02");
    await bench.reconcileUntilStable();
    expect(bench.condition(name, "Cancelling")).toBe("True/DeadlineExceeded");
    expect(bench.pod(pod)?.metadata.deletionTimestamp).toBeDefined();
    await bench.passTo("12:03:05");
    bench.ends(pod, 143, "12:01:00");
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status).toMatchObject({ phase: "deadline_exceeded", billedMinutes: 3 });
    expect(bench.condition(name, "Cancelling")).toBeUndefined();
  });

  // Shows: docs/jobs.md#job-run: `running` | cancelled | `cancelled`, billed up to the request: 30 s of
  test("that is cancelled is stopped with grace, and billed up to the request", async () => {
    const bench = await begun();
    const { name, pod } = await bench.start("12:01:00");
    await bench.passTo("12:02:10");
    bench.api.patch(jobRunResource, bench.ref(name), {
      spec: { cancelRequestedAt: bench.day("12:01:40.500") },
    });
    await bench.reconcileUntilStable();
    const { deletionTimestamp, deletionGracePeriodSeconds } = bench.pod(pod)?.metadata ?? {};
    expect([deletionTimestamp !== undefined, deletionGracePeriodSeconds]).toEqual([true, 30]);
    await bench.passTo("12:02:30");
    bench.ends(pod, 143, "12:01:00");
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status).toMatchObject({
      phase: "cancelled",
      billedUntil: "2026-03-01T12:01:40.500Z",
      finishedAt: "2026-03-01T12:02:30.000Z",
      billedMinutes: 1,
    });
  });

  // Shows: docs/jobs.md#clocks: a request to cancel cannot be backdated; the first one observed stays
  test("that is cancelled by a request of years ago is billed up to when it was observed without it", async () => {
    const bench = await begun();
    const { name, pod } = await bench.start("12:01:00");
    await bench.passTo("12:02:25");
    await bench.reconcileUntilStable();
    const seen = new Date(bench.run(name)?.status?.lastObservedRunningAt ?? 0);
    bench.api.patch(jobRunResource, bench.ref(name), { spec: { cancelRequestedAt: "2020-01-01T00:00:00Z" } });
    await bench.reconcileUntilStable();
    const effective = new Date(seen.getTime() - 10_000).toISOString();
    expect(bench.run(name)?.status).toMatchObject({ phase: "running", cancelEffectiveAt: effective });
    await bench.passTo("12:02:55");
    await bench.reconcileUntilStable();
    bench.ends(pod, 143, "12:01:00");
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status).toMatchObject({
      phase: "cancelled",
      billedUntil: effective,
      billedMinutes: 2,
    });
  });

  // Shows: docs/jobs.md#clocks: a node whose clock is wrong changes neither length nor cycle of a run
  test("on a node six hours ahead is billed for as long as it ran, and starts and ends when it could have", async () => {
    const bench = await begun();
    const name = bench.makeJob("12:01:00");
    await bench.reconcileUntilStable();
    const pod = bench.makePod(name);
    bench.patchPodStatus(pod, { running: { startedAt: bench.day("18:01:02") } }, "Running");
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status).toMatchObject({
      phase: "running",
      startedAt: "2026-03-01T12:01:00.120Z",
    });
    await bench.passTo("12:02:32");
    const terminated = {
      exitCode: 0,
      startedAt: bench.day("18:01:02"),
      finishedAt: bench.day("18:02:32"),
    };
    bench.patchPodStatus(pod, { terminated }, "Succeeded");
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status).toMatchObject({
      phase: "succeeded",
      startedAt: expect.stringMatching("2026-03-01T12:01:0[23]"),
      finishedAt: expect.stringMatching("2026-03-01T12:02:3[23]"),
      billedMinutes: 2,
    });
  });

  // Shows: docs/jobs.md#job-run: `running` | cancelled, and it no longer exists | `cancelled`, billed up
  test("that is cancelled and no longer exists is billed up to when it was seen running last", async () => {
    const bench = await begun();
    const { name, pod } = await bench.start("12:01:00");
    await bench.passTo("12:02:30");
    await bench.reconcileUntilStable();
    const seen = bench.run(name)?.status?.lastObservedRunningAt;
    bench.api.strip(resources.pods, bench.ref(pod));
    bench.api.strip(resources.jobs, bench.ref(name));
    bench.api.patch(jobRunResource, bench.ref(name), { spec: { cancelRequestedAt: bench.day("12:02:40") } });
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status).toMatchObject({
      phase: "cancelled",
      billedUntil: seen,
      billedMinutes: 2,
    });
  });

  // Shows: docs/jobs.md#job-run: `running` | it no longer exists, pod and Job | `failed`, billed up to
  test("that no longer exists, pod and Job, has failed when it was seen running last", async () => {
    const bench = await begun();
    const { name, pod } = await bench.start("12:01:00");
    bench.api.strip(resources.pods, bench.ref(pod));
    await bench.reconcileUntilStable();
    // Its Job might create another pod: it is deleted first.
    expect(bench.run(name)?.status?.phase).toBe("running");
    await bench.pass(6_000);
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status).toMatchObject({ phase: "failed", billedMinutes: 1 });
    expect(bench.job(name)).toBeUndefined();
  });

  test("whose Job is deleted before its end was observed, and then its pod, has failed all the same", async () => {
    const bench = await begun();
    const name = bench.makeJob("12:01:00");
    await bench.reconcileUntilStable();
    const pod = bench.makePod(name);
    bench.api.strip(resources.jobs, bench.ref(name));
    bench.starts(pod);
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status).toMatchObject({ phase: "running" });
    bench.api.strip(resources.pods, bench.ref(pod));
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status).toMatchObject({ phase: "failed", billedMinutes: 1 });
    expect(bench.missed()).toBe("");
    expect([...bench.ledger.rows.keys()]).toEqual([name]);
  });

  // Shows: docs/jobs.md#job-run: `running` | cancelled, and its end cannot be confirmed | `running`: 409
  test("on a node that is not ready cannot be cancelled safely, for as long as that lasts", async () => {
    const bench = await begun();
    const { name } = await bench.start("12:01:00");
    const seen = bench.run(name)?.status?.lastObservedRunningAt;
    bench.nodeReady(false);
    await bench.pass(60_000);
    await bench.reconcileUntilStable();
    expect(bench.condition(name, "CancelUnsafe")).toBe("True/NodeUnreachable");
    expect(bench.run(name)?.status?.lastObservedRunningAt).toBe(seen);
    bench.nodeReady(true);
    await bench.reconcileUntilStable();
    expect(bench.condition(name, "CancelUnsafe")).toBeUndefined();
    await bench.pass(60_000);
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status?.lastObservedRunningAt).not.toBe(seen);
  });

  // Shows: docs/jobs.md#job-run: `running` | its node crashed, and came back without it | `failed`
  test("on a node that crashed and came back is not trusted for a minute, and never billed for the outage", async () => {
    const bench = await begun();
    const { name, pod } = await bench.start("12:01:00");
    const seen = bench.run(name)?.status?.lastObservedRunningAt;
    bench.nodeReady(false);
    await bench.reconcileUntilStable();
    await bench.passTo("12:09:00");
    bench.nodeReady(true);
    await bench.reconcileUntilStable();
    await bench.passTo("12:09:50");
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status).toMatchObject({ phase: "running", lastObservedRunningAt: seen });
    // What the runtime has lost has no times.
    bench.patchPodStatus(pod, { terminated: { exitCode: 137, reason: "ContainerStatusUnknown" } }, "Failed");
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status).toMatchObject({ phase: "failed", finishedAt: seen, billedMinutes: 1 });
  });

  // Shows: docs/jobs.md#job-run: `running` | its node crashed, and came back without it | `failed`
  test("on a node that fell silent is not seen running, although the watch of nodes is behind", async () => {
    const bench = await begun();
    const { name } = await bench.start("12:01:00");
    const seen = bench.run(name)?.status?.lastObservedRunningAt;
    bench.staleWatches.add("nodes");
    bench.nodeReady(false);
    await bench.pass(30_000);
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status?.lastObservedRunningAt).toBe(seen);
    await bench.reconcileUntilStable();
    expect(bench.condition(name, "CancelUnsafe")).toBe("True/NodeUnreachable");
  });

  test("on a node that was silent and is back is not trusted for a minute, although no watch reported it", async () => {
    const bench = await begun();
    const { name } = await bench.start("12:01:00");
    const seen = bench.run(name)?.status?.lastObservedRunningAt;
    bench.staleWatches.add("nodes");
    bench.nodeReady(false);
    await bench.pass(20_000);
    bench.nodeReady(true);
    await bench.pass(30_000);
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status?.lastObservedRunningAt).toBe(seen);
    await bench.pass(40_000);
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status?.lastObservedRunningAt).not.toBe(seen);
  });

  // Shows: docs/jobs.md#job-run: any terminal | cancelled | the same state, no new charge
  test("that has ended stays as it is when it is cancelled", async () => {
    const bench = await begun();
    const { name, pod } = await bench.start("12:01:00");
    await bench.pass(5_000);
    bench.ends(pod, 0, "12:01:00");
    await bench.reconcileUntilStable();
    const before = bench.run(name)?.status;
    bench.api.patch(jobRunResource, bench.ref(name), { spec: { cancelRequestedAt: bench.day("12:01:20") } });
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status).toMatchObject({ phase: "succeeded", amount: before?.amount });
    expect(bench.ledger.rows.size).toBe(1);
  });

  // Shows: docs/jobs.md#job-run: (none) | an occurrence, and its run never starts | none: no usage, not
  // Shows: docs/jobs.md#occurrences-that-were-missed: `NeverStarted` | it was admitted, and its
  test("whose image cannot be pulled for ten minutes is none: no usage, the slot free, the occurrence missed", async () => {
    const bench = await begun({ cron: "1 * * * *" });
    const name = bench.makeJob("12:01:00");
    await bench.reconcileUntilStable();
    const pod = bench.makePod(name);
    bench.patchPodStatus(pod, { waiting: { reason: "ImagePullBackOff" } }, "Pending");
    await bench.passTo("12:10:59");
    await bench.reconcileUntilStable();
    expect(bench.state.activeRun).toBe(name);
    await bench.passTo("12:11:01");
    await bench.reconcileUntilStable();
    expect(bench.pod(pod)?.metadata.deletionTimestamp).toBeDefined();
    bench.patchPodStatus(pod, { waiting: { reason: "ImagePullBackOff" } }, "Failed");
    await bench.reconcileUntilStable();
    expect(bench.state.activeRun).toBeUndefined();
    expect(bench.state.lastFinishedAt).toBeUndefined();
    expect(bench.missed()).toBe("NeverStarted 1");
    expect(bench.run(name)).toBeUndefined();
    expect(bench.ledger.rows.size).toBe(0);
  });

  // Shows: docs/jobs.md#job-run: (none) | an occurrence, and its run never starts | none: no usage, not
  test("whose container the runtime could not start is none", async () => {
    const bench = await begun();
    const name = bench.makeJob("12:01:00");
    await bench.reconcileUntilStable();
    const pod = bench.makePod(name);
    const terminated = {
      exitCode: 128,
      reason: "StartError",
      startedAt: "1970-01-01T00:00:00Z",
      finishedAt: bench.day("12:01:01"),
    };
    bench.patchPodStatus(pod, { terminated }, "Failed");
    await bench.reconcileUntilStable();
    expect(bench.missed()).toBe("NeverStarted 1");
    expect(bench.ledger.rows.size).toBe(0);
    expect(bench.job(name)).toBeUndefined();
  });

  // Shows: docs/jobs.md#job-run: not started | cancelled | `cancelled`, nothing billed
  test("that is cancelled before its container started costs nothing", async () => {
    const bench = await begun();
    const name = bench.makeJob("12:01:00");
    await bench.reconcileUntilStable();
    const pod = bench.makePod(name, false);
    bench.api.patch(jobRunResource, bench.ref(name), { spec: { cancelRequestedAt: bench.day("12:01:05") } });
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status).toMatchObject({ phase: "cancelled" });
    expect(bench.run(name)?.status?.startedAt).toBeUndefined();
    expect(bench.condition(name, "Charged")).toBe("True/NothingToCharge");
    expect(bench.missed()).toBe("");
    expect(bench.state.activeRun).toBeUndefined();
    expect(bench.pod(pod)).toBeUndefined();
    expect(bench.ledger.rows.size).toBe(0);
  });

  // Shows: docs/jobs.md#billing: a ledger that is unavailable delays charges, and misses no occurrence
  // Shows: docs/jobs.md#billing: nothing is deleted before its charge was read back
  test("frees its slot while the ledger is down, and keeps everything until it is charged", async () => {
    const bench = await begun();
    const { name, pod } = await bench.start("12:01:00");
    bench.ledger.down = true;
    await bench.pass(5_000);
    bench.ends(pod, 0, "12:01:00");
    await bench.reconcileUntilStable();
    expect(bench.state.activeRun).toBeUndefined();
    await bench.passTo("12:02:00");
    const second = bench.makeJob("12:02:00");
    await bench.reconcileUntilStable();
    expect(bench.state.activeRun).toBe(second);
    await bench.passTo("12:06:00");
    await bench.reconcileUntilStable();
    expect(bench.condition(name, "Charged")).toBe("False/ChargePending");
    for (const object of [bench.run(name), bench.job(name), bench.pod(pod)]) {
      expect(object?.metadata.finalizers).toEqual(["slipway.dev/jobrun"]);
    }
    bench.ledger.down = false;
    await bench.pass(10_000);
    await bench.reconcileUntilStable();
    expect(bench.condition(name, "Charged")).toBe("True/ChargeRecorded");
    expect(bench.job(name)).toBeUndefined();
  });

  test("whose JobRun was deleted gets it back and is charged", async () => {
    const bench = await begun();
    const { name, pod } = await bench.start("12:01:00");
    bench.api.strip(jobRunResource, bench.ref(name));
    await bench.reconcileUntilStable();
    expect(bench.run(name)?.status?.phase).toBe("running");
    await bench.pass(5_000);
    bench.ends(pod, 0, "12:01:00");
    await bench.reconcileUntilStable();
    expect(bench.ledger.rows.get(name)).toMatchObject({ billed_minutes: 1, price_per_minute: "0.25" });
  });

  test("writes a heartbeat at most every 25 s, and nothing else while it runs", async () => {
    const bench = await begun();
    const { name } = await bench.start("12:01:00");
    await bench.passTo("12:01:05");
    await bench.reconcileUntilStable();
    const before = bench.writes.length;
    const first = bench.run(name)?.status?.lastObservedRunningAt ?? "";
    await bench.pass(10_000);
    await bench.reconcileUntilStable();
    expect(bench.writes.length).toBe(before);
    await bench.pass(20_000);
    await bench.reconcileUntilStable();
    expect(bench.writes.slice(before)).toEqual(["patch jobruns"]);
    const next = bench.run(name)?.status?.lastObservedRunningAt ?? "";
    expect(Date.parse(next) - Date.parse(first)).toBeLessThanOrEqual(40_000);
  });
});

describe("a manual run", () => {
  const request = (bench: Bench, suffix = "now") => {
    const name = `${PROJECT}-${Math.floor(bench.timeline.now / 60_000)}-${suffix}`;
    bench.api.create(jobRunResource, {
      metadata: { name, namespace: bench.ref().namespace },
      spec: { projectRef: { name: PROJECT }, trigger: "manual", scheduledAt: bench.day("12:01:00") },
    });
    return name;
  };

  test("acquires a free slot, and its Job is the schedule's", async () => {
    const bench = await begun({ cron: "0 0 * * *" });
    bench.makeCronJob();
    const name = request(bench);
    await bench.reconcileUntilStable();
    expect(bench.condition(name, "Admitted")).toBe("True/Admitted");
    expect(bench.state.activeRun).toBe(name);
    expect(bench.state.lastScheduledAt).toBeUndefined();
    expect(bench.job(name)).toMatchObject({ spec: { suspend: false, backoffLimit: 0 } });
    expect(bench.run(name)?.metadata.finalizers).toEqual(["slipway.dev/jobrun"]);
    const pod = bench.makePod(name);
    bench.starts(pod);
    await bench.reconcileUntilStable();
    await bench.pass(5_000);
    bench.ends(pod, 0, "12:01:00");
    await bench.reconcileUntilStable();
    expect(bench.ledger.rows.get(name)).toMatchObject({ trigger: "manual", status: "succeeded" });
  });

  test("waits for the validation of a project that was created together with it", async () => {
    const bench = await begun({ cron: "0 0 * * *" });
    bench.makeCronJob();
    bench.clearConditions();
    const name = request(bench);
    await bench.reconcileUntilStable();
    expect(bench.condition(name, "Admitted")).toBeUndefined();
    bench.accept(true);
    await bench.reconcileUntilStable();
    expect(bench.condition(name, "Admitted")).toBe("True/Admitted");
  });

  test("is refused when its project is not validated in time", async () => {
    const bench = await begun({ cron: "0 0 * * *" });
    bench.clearConditions();
    const name = request(bench);
    await bench.reconcileUntilStable();
    await bench.pass(125_000);
    await bench.reconcileUntilStable();
    expect(bench.condition(name, "Admitted")).toBe("False/NotAccepted");
  });

  test("is refused while another is active, and deleted a minute later", async () => {
    const bench = await begun();
    await bench.start("12:01:00");
    const name = request(bench);
    await bench.reconcileUntilStable();
    expect(bench.condition(name, "Admitted")).toBe("False/Overlap");
    await bench.pass(61_000);
    await bench.reconcileUntilStable();
    expect(bench.run(name)).toBeUndefined();
  });

  test.each([
    ["paused", { spec: { paused: true } }, "Paused"],
    ["closed", { spec: { job: { closedAt: "2026-03-01T12:00:50Z" } } }, "ScheduleClosed"],
  ])("is refused while the project is %s", async (_what, patch, reason) => {
    const bench = await begun({ cron: "0 0 * * *" });
    bench.patchProject(patch);
    const name = request(bench);
    await bench.reconcileUntilStable();
    expect(bench.condition(name, "Admitted")).toBe(`False/${reason}`);
  });

  // Shows: docs/jobs.md#two-operators-and-kubectl: a leader that was stopped and wakes up does no harm
  test("never runs twice when its leader was stopped before it created the Job", async () => {
    const bench = await begun({ cron: "0 0 * * *" });
    bench.makeCronJob();
    const name = request(bench);
    await bench.reconcileUntilStable();
    const pod = bench.makePod(name);
    bench.ends(pod, 0, "12:01:00");
    await bench.reconcileUntilStable();
    expect(bench.job(name)).toBeUndefined();
    // The request of a leader that had acquired the slot, was stopped, and continues after the end.
    bench.api.create(resources.jobs, {
      metadata: { name, namespace: bench.ref().namespace, labels: { "slipway.dev/project": PROJECT } },
      spec: { suspend: true },
    });
    await bench.reconcileUntilStable();
    expect(bench.job(name)).toBeUndefined();
    expect(bench.ledger.rows.size).toBe(1);
  });
});

describe("closing", () => {
  test("is acknowledged immediately without a run, and with one once it is in the cache", async () => {
    const bench = await begun();
    const { name } = await bench.start("12:01:00");
    bench.patchProject({ spec: { job: { closedAt: "2026-03-01T12:01:30Z" } } });
    await bench.passTo("12:01:31");
    await bench.reconcileUntilStable();
    expect(bench.state.scheduleClosedAt).toBe("2026-03-01T12:01:31.000Z");
    expect(bench.state.activeRun).toBe(name);
    bench.patchProject({ spec: { job: { closedAt: null } } });
    await bench.passTo("12:01:40");
    await bench.reconcileUntilStable();
    expect(bench.state.scheduleClosedAt).toBeUndefined();
    expect(bench.state.scheduledSince).toBe("2026-03-01T12:01:40.000Z");
  });

  test("is never acknowledged before it was requested, by any clock", async () => {
    const bench = await begun();
    bench.patchProject({ spec: { job: { closedAt: "2026-03-01T12:01:59Z" } } });
    await bench.reconcileUntilStable();
    expect(bench.state.scheduleClosedAt).toBe("2026-03-01T12:01:59.000Z");
  });
});

// Shows: docs/jobs.md#two-operators-and-kubectl: an unchanged job writes nothing
test("an unchanged project writes nothing", async () => {
  const bench = await begun({ cron: "0 0 * * *" });
  await bench.reconcileUntilStable();
  const before = bench.writes.length;
  for (let pass = 0; pass < 5; pass += 1) {
    await bench.pass(61_000);
    await bench.reconcileUntilStable();
  }
  expect(bench.writes.length).toBe(before);
});
