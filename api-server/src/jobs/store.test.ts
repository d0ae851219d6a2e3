import type { JobRun } from "@slipway/crds";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type FakeHarness, jobSpec, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { OperatorActor, runResource } from "../../../test/kit/api-server/job-runs.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import type { ApiProject } from "../projects/api-project.ts";
import { jobRunResource } from "../resources.ts";
import { JobRunStore } from "./store.ts";

/** Runs in memory over a fake apiserver. */

const names = { organizationId: "acme", projectId: "pjob", id: "pjob-29406240" };
const scheduledAt = new Date(29_406_240 * 60_000);

let harness: FakeHarness;
let project: ApiProject;
let actor: OperatorActor;
beforeEach(async () => {
  harness = await startFakeHarness();
  await harness.project("acme", "pjob", jobSpec);
  const found = await harness.projects.find("acme", "pjob");
  if (!found) {
    throw new Error("no project");
  }
  project = found;
  actor = new OperatorActor(harness.kube);
});
afterEach(() => harness.close());

const create = async (): Promise<JobRun> => {
  const created = await actor.createRun(runResource(names, scheduledAt));
  await eventually("the run", () => harness.jobRuns.ofProject(project).length === 1);
  return created;
};
const phaseOf = (run: JobRun | undefined) => (run === undefined ? "gone" : run.status?.phase);

describe("JobRunStore", () => {
  it("finds the runs of one project, and those that it has not seen live", async () => {
    const created = await create();
    expect((await harness.jobRuns.find(project, names.id))?.metadata.uid).toBe(created.metadata.uid);
    const late = new JobRunStore({ client: harness.kube, logger: harness.services.logger });
    expect((await late.find(project, names.id))?.metadata.uid).toBe(created.metadata.uid);
    const other = runResource({ ...names, projectId: "pother", id: "pother-1" }, scheduledAt);
    await actor.createRun(other);
    expect(await late.find(project, "pother-1")).toBeUndefined();
    expect(harness.jobRuns.ofProject(project)).toHaveLength(1);
  });

  it("reads nothing of the cluster that cannot be a run's name", async () => {
    const before = harness.apiserver.requests.length;
    for (const id of ["A", "..", "a/b", "", "x".repeat(254), "a b"]) {
      expect(await harness.jobRuns.find(project, id)).toBeUndefined();
    }
    expect(harness.apiserver.requests.length).toBe(before);
  });

  it("waits for a change of one run, for many callers, and not for others", async () => {
    const created = await create();
    const waits = Array.from({ length: 20 }, () => harness.jobRuns.waitFor(created, phaseOf, 5_000));
    await actor.createRun(runResource({ ...names, id: "pjob-29406241" }, scheduledAt, { phase: "failed" }));
    await actor.setStatus(created, { phase: "running" });
    expect(await Promise.all(waits)).toEqual(Array(20).fill("running"));
  });

  it("notifies those who wait that a run is deleted", async () => {
    const created = await create();
    const waiting = harness.jobRuns.waitFor(created, phaseOf, 5_000);
    await actor.removeRun(created);
    expect(await waiting).toBe("gone");
  });

  it("reads live when the watch is behind, before it gives up", async () => {
    const created = await create();
    await harness.jobRuns.stop();
    const late = new JobRunStore({ client: harness.kube, logger: harness.services.logger });
    await actor.setStatus(created, { phase: "succeeded" });
    expect(await late.waitFor(created, phaseOf, 50)).toBe("succeeded");
    expect(await late.waitFor(created, () => undefined, 50)).toBeUndefined();
  });

  // Shows: docs/jobs.md#failures: every route of runs | 503 `CLUSTER_UNAVAILABLE`, also when this
  it("lets everybody go with 503 when it stops", async () => {
    const created = await create();
    const waiting = harness.jobRuns.waitFor(created, phaseOf, 60_000);
    harness.jobRuns.endWaits();
    await expect(waiting).rejects.toMatchObject({ status: 503, code: "CLUSTER_UNAVAILABLE" });
  });

  it("passes on what a decision throws", async () => {
    const created = await create();
    const waiting = harness.jobRuns.waitFor(
      created,
      (run) => {
        if (run?.status?.phase) {
          throw new Error("a bug");
        }
      },
      5_000,
    );
    await actor.setStatus(created, { phase: "running" });
    await expect(waiting).rejects.toThrow("a bug");
  });

  // Shows: docs/jobs.md#failures: every route of runs | 503 `CLUSTER_UNAVAILABLE`, also when this
  it("answers 503 when a run is not in memory and the cluster does not answer", async () => {
    harness.apiserver.failNext(({ path }) => path.includes("/jobruns/"), { status: 500, times: 9 });
    const headers = harness.key("acme", "* on project:*");
    const url = `/v1/project/pjob/job-runs/${names.id}/logs`;
    const answer = await harness.app.inject({ url, headers });
    expect([answer.statusCode, answer.json().code]).toEqual([503, "CLUSTER_UNAVAILABLE"]);
  });
});

describe("what was written of runs through another replica", () => {
  // Shows: docs/jobs.md#the-job-its-settings-its-runs: what was written of runs through one replica is
  it("is waited for by the routes that show runs, and by no other", async () => {
    const decision = { allowed: true, limit: 9, remaining: 9, resetSeconds: 1, newestRun: "999999" };
    Object.assign(harness.services.rateLimiter, { take: () => decision });
    const waits = vi.spyOn(harness.jobRuns, "waitUntilSeen").mockResolvedValue(true);
    const headers = harness.key("acme", "* on project:*");
    await harness.app.inject({ url: "/v1/project/pjob", headers });
    expect(waits).not.toHaveBeenCalled();
    for (const path of ["job-runs", "job-runs/cost-summary", "job-runs/x/logs", "job-runs/x/metrics"]) {
      waits.mockClear();
      await harness.app.inject({ url: `/v1/project/pjob/${path}`, headers });
      expect(waits).toHaveBeenCalledWith("999999", 2_000);
    }
  });

  it("is noted apart from what was written of projects", async () => {
    const notes: unknown[] = [];
    const writes = { publish: async (...note: unknown[]) => void notes.push(note) };
    const store = new JobRunStore({ client: harness.kube, logger: harness.services.logger, writes });
    const created = await actor.createRun(runResource(names, scheduledAt));
    await store.observe(created);
    expect(notes).toEqual([["acme", created.metadata.resourceVersion, "jobRuns"]]);
    expect(jobRunResource.plural).toBe("jobruns");
  });
});

describe("without a ledger", () => {
  // Shows: docs/jobs.md#the-job-its-settings-its-runs: without a ledger, runs in memory are shown; lists
  // Shows: docs/jobs.md#failures: list, cost summary | 503 `LEDGER_UNAVAILABLE`
  it("runs that the memory has are shown one by one; lists and sums are 503", async () => {
    const started = new Date().toISOString();
    const created = await create();
    await actor.setStatus(created, { phase: "running", plan: "job-basic", startedAt: started });
    await eventually("the start", () => phaseOf(harness.jobRuns.ofProject(project)[0]) === "running");
    const headers = harness.key("acme", "* on project:*");
    const get = (path: string) => harness.app.inject({ url: `/v1/project/pjob/job-runs${path}`, headers });
    expect((await get(`/${names.id}/metrics`)).json().data.status).toBe("collecting");
    for (const path of ["", "/cost-summary", "/pjob-1/metrics"]) {
      const answer = await get(path);
      expect([answer.statusCode, answer.json().code]).toEqual([503, "LEDGER_UNAVAILABLE"]);
    }
  });
});
