import { KubeError } from "@slipway/controller-runtime";
import { type JobRun, type JobRunPhase, jobRunName } from "@slipway/crds";
import {
  type JobRunRow,
  recordJobRuns,
  reserveIdempotencyKey,
  setOrganizationBlocked,
  storeJobRunLog,
} from "@slipway/ledger";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { condition, type OperatorActor, runResource, runRow } from "../../../test/kit/api-server/job-runs.ts";
import { createJob, type Job, refusalOf } from "../../../test/kit/api-server/jobs.ts";
import { type RealHarness, startRealHarness } from "../../../test/kit/api-server/real-harness.ts";
import type { ApiProject } from "../projects/api-project.ts";
import { bodyHash } from "../projects/creation/idempotency.ts";
import { closeJob } from "./before-deletion.ts";
import { cancelRun } from "./cancel.ts";
import { startRun } from "./start.ts";

/** Runs of jobs over a real apiserver and a real PostgreSQL. Tests play the operator, and set the clock. */

let harness: RealHarness;
beforeAll(async () => {
  harness = await startRealHarness();
});
afterAll(() => harness?.close());
afterEach(() => at(undefined));

/** Sets the API's clock; undefined uses the real time. */
const at = (moment: string | undefined) =>
  Object.assign(harness.services, {
    now: () => (moment === undefined ? new Date() : new Date(moment)),
  });

const minute = (moment: string) => new Date(moment);
const nameOf = (job: Job, scheduledAt: Date) => jobRunName(job.id, scheduledAt);
const names = (job: Job, scheduledAt: Date) => ({
  organizationId: job.organizationId,
  projectId: job.id,
  id: nameOf(job, scheduledAt),
});

/** Puts a run that has ended into the ledger. */
async function record(job: Job, scheduledAt: Date, change: Partial<JobRunRow> = {}): Promise<string> {
  const row = runRow(names(job, scheduledAt), scheduledAt, change);
  const [outcome] = await recordJobRuns(harness.ledger, [row]);
  expect(outcome).toMatchObject({ outcome: "recorded" });
  return row.id;
}

/** Puts a run into the cluster, and waits until the API has seen it. */
async function resource(job: Job, scheduledAt: Date, status?: JobRun["status"]): Promise<JobRun> {
  const created = await job.actor.createRun(runResource(names(job, scheduledAt), scheduledAt, status));
  await seen(job, created);
  return created;
}

const seen = async (job: Job, run: JobRun) => {
  const project = await projectOf(job);
  await expect
    .poll(async () => {
      const known = harness.jobRuns
        .ofProject(project)
        .find(({ metadata }) => metadata.name === run.metadata.name);
      return known?.metadata.resourceVersion;
    })
    .toBe((await job.actor.run(job.organizationId, run.metadata.name))?.metadata.resourceVersion);
};

async function projectOf(job: Job): Promise<ApiProject> {
  const project = await harness.projects.find(job.organizationId, job.id);
  if (!project) {
    throw new Error("no project");
  }
  return project;
}

const running = (startedAt: string): JobRun["status"] => ({
  phase: "running",
  plan: "job-basic",
  pricePerMinute: "0.02",
  startedAt,
});
const ended = (phase: JobRunPhase, startedAt: string, finishedAt: string): JobRun["status"] => ({
  ...running(startedAt),
  phase,
  finishedAt,
  billedUntil: finishedAt,
  billedMinutes: 1,
  amount: "0.02",
  exitCode: phase === "succeeded" ? 0 : 137,
  endReason: phase === "succeeded" ? "Completed" : "OOMKilled",
});

const list = async (job: Job, query = "") => {
  const answer = await job.send("GET", `job-runs${query}`);
  expect(answer.statusCode, answer.body).toBe(200);
  return answer.json().data as {
    runs: { id: string; status: string }[];
    pagination: Record<string, number>;
    cycle_started_at: string;
    next_reset_at: string;
  };
};
const ids = async (job: Job, query = "") => (await list(job, query)).runs.map(({ id }) => id);

describe("the list of runs", () => {
  // Shows: docs/jobs.md#endpoints: `GET /v1/project/:id/job-runs` | `data`: `runs`, `pagination`
  // Shows: docs/jobs.md#the-job-its-settings-its-runs: `page` from 1, `limit` 1 to 50 (15 unless given)
  it("merges what the ledger has with what it has not yet, newest scheduled first, in exact pages", async () => {
    const job = await createJob(harness);
    at("2026-03-10T12:00:00Z");
    const minutes = Array.from({ length: 7 }, (_, i) => minute(`2026-03-10T10:0${i}:00Z`));
    const expected = minutes.map((scheduledAt) => nameOf(job, scheduledAt)).reverse();
    // 0, 2, 3 are over; 3 is in both. 1 was charged late; 4 is not charged, 5 runs, 6 is not started.
    for (const index of [0, 2, 3]) {
      await record(job, minutes[index] as Date);
    }
    await resource(
      job,
      minutes[3] as Date,
      ended("succeeded", "2026-03-10T10:03:02Z", "2026-03-10T10:04:12Z"),
    );
    await resource(job, minutes[1] as Date, ended("failed", "2026-03-10T10:01:02Z", "2026-03-10T10:01:09Z"));
    await resource(
      job,
      minutes[4] as Date,
      ended("cancelled", "2026-03-10T10:04:02Z", "2026-03-10T10:04:30Z"),
    );
    await resource(job, minutes[5] as Date, running("2026-03-10T10:05:02Z"));
    await resource(job, minutes[6] as Date);

    const shown = expected.slice(1);
    expect(await ids(job)).toEqual(shown);
    const whole = await list(job);
    expect(whole.pagination).toEqual({ page: 1, limit: 15, total: 6, total_pages: 1 });
    expect(whole.runs.map(({ status }) => status)).toEqual([
      "running",
      "cancelled",
      "succeeded",
      "succeeded",
      "failed",
      "succeeded",
    ]);
    expect(whole.runs[4]).toEqual({
      id: shown[4],
      status: "failed",
      trigger: "schedule",
      scheduled_at: "2026-03-10T10:01:00.000Z",
      started_at: "2026-03-10T10:01:02.000Z",
      finished_at: "2026-03-10T10:01:09.000Z",
      duration_seconds: 7,
      billed_minutes: 1,
      plan: "job-basic",
      amount: 0.02,
      currency: "brl",
    });
    for (let page = 1; page <= 4; page += 1) {
      const part = await list(job, `?limit=2&page=${page}`);
      expect(part.runs.map(({ id }) => id)).toEqual(shown.slice((page - 1) * 2, page * 2));
      expect(part.pagination).toEqual({ page, limit: 2, total: 6, total_pages: 3 });
    }
    const counts = { running: 1, succeeded: 3, failed: 1, cancelled: 1, deadline_exceeded: 0 };
    for (const [status, total] of Object.entries(counts)) {
      const part = await list(job, `?status=${status}`);
      expect(part.pagination).toMatchObject({ total });
      expect(part.runs.every((run) => run.status === status)).toBe(true);
    }
  });

  // Shows: docs/jobs.md#endpoints: `GET /v1/project/:id/job-runs` | `data`: `runs`, `pagination`
  it("shows every run once while its charge moves it from the cluster to the ledger", async () => {
    const job = await createJob(harness);
    const scheduledAt = minute("2026-03-10T10:00:00Z");
    at("2026-03-10T10:02:00Z");
    const status = ended("succeeded", "2026-03-10T10:00:02Z", "2026-03-10T10:01:12Z");
    const created = await resource(job, scheduledAt, status);
    const one = [nameOf(job, scheduledAt)];
    expect(await ids(job)).toEqual(one);
    await record(job, scheduledAt);
    expect(await ids(job)).toEqual(one);
    await job.actor.setStatus(created, { ...status, chargedAt: "2026-03-10T10:01:13Z" });
    await seen(job, created);
    expect(await ids(job)).toEqual(one);
    await job.actor.removeRun(created);
    expect(await ids(job)).toEqual(one);
    expect((await list(job)).pagination).toMatchObject({ total: 1 });
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: `page` from 1, `limit` 1 to 50 (15 unless given)
  it("refuses a page, a limit and a status that are none", async () => {
    const job = await createJob(harness);
    for (const query of ["?page=0", "?limit=0", "?limit=51", "?limit=x", "?status=pending", "?from=2020"]) {
      expect(await refusalOf(job.send("GET", `job-runs${query}`))).toEqual([400, "VALIDATION_FAILED"]);
    }
    expect((await list(job, "?limit=50&page=9")).runs).toEqual([]);
    expect((await list(job, "?limit=50&page=2147483647")).runs).toEqual([]);
  });

  // Shows: docs/jobs.md#failures: logs, metrics | 404 `JOB_RUN_NOT_FOUND`: unknown, of an earlier cycle
  // Shows: docs/jobs.md#failures: cancel | 404 `JOB_RUN_NOT_FOUND`
  it("shows no other project's runs", async () => {
    const job = await createJob(harness);
    const other = await createJob(harness);
    at("2026-03-10T12:00:00Z");
    const id = await record(job, minute("2026-03-10T10:00:00Z"));
    expect(await ids(other)).toEqual([]);
    for (const operation of ["logs", "metrics"]) {
      expect(await refusalOf(other.send("GET", `job-runs/${id}/${operation}`))).toEqual([
        404,
        "JOB_RUN_NOT_FOUND",
      ]);
    }
    expect(await refusalOf(other.send("POST", `job-runs/${id}/cancel`))).toEqual([404, "JOB_RUN_NOT_FOUND"]);
  });
});

describe("the cost summary", () => {
  // Shows: docs/jobs.md#endpoints: `GET /v1/project/:id/job-runs/cost-summary` | `data`: `totals`
  // Shows: docs/jobs.md#the-job-its-settings-its-runs: amounts are exact, and their JSON is the decimal
  it("sums what ended runs cost, exactly: three times 0.1 is 0.3", async () => {
    const job = await createJob(harness);
    at("2026-03-10T12:00:00Z");
    const summary = async () => (await job.send("GET", "job-runs/cost-summary")).json().data;
    const nothing = { currency: "brl", total_amount: 0, executed_runs: 0, billed_minutes: 0, billed_runs: 0 };
    expect(await summary()).toEqual({
      totals: [nothing],
      cycle_started_at: "2026-03-01T00:00:00.000Z",
      next_reset_at: "2026-04-01T00:00:00.000Z",
    });
    for (const index of [0, 1, 2]) {
      await record(job, minute(`2026-03-10T10:0${index}:00Z`));
    }
    // A run that has not ended is no part of it.
    await resource(job, minute("2026-03-10T11:00:00Z"), running("2026-03-10T11:00:02Z"));
    const answer = await job.send("GET", "job-runs/cost-summary");
    expect(answer.body).toContain('"total_amount":0.3,');
    expect(answer.json().data.totals).toEqual([
      { currency: "brl", total_amount: 0.3, executed_runs: 3, billed_minutes: 6, billed_runs: 3 },
    ]);
  });
});

describe("a billing cycle", () => {
  // Shows: docs/jobs.md#the-job-its-settings-its-runs: only the current cycle is shown: at
  // Shows: docs/jobs.md#the-job-its-settings-its-runs: cancelling: a run that has ended stays as it is
  // Shows: docs/jobs.md#failures: logs, metrics | 404 `JOB_RUN_NOT_FOUND`: unknown, of an earlier cycle
  it("ends at next_reset_at: then list, logs, metrics and totals begin again, immediately", async () => {
    const job = await createJob(harness);
    const last = minute("2026-03-31T23:58:00Z");
    const id = await record(job, last);
    await storeJobRunLog(
      harness.ledger,
      { organization_id: job.organizationId, project_id: job.id, id, scheduled_at: last },
      "of March\n",
    );
    const total = async () =>
      (await job.send("GET", "job-runs/cost-summary")).json().data.totals[0].executed_runs;
    at("2026-03-31T23:59:59.999Z");
    expect(await list(job)).toMatchObject({
      runs: [{ id }],
      cycle_started_at: "2026-03-01T00:00:00.000Z",
      next_reset_at: "2026-04-01T00:00:00.000Z",
    });
    expect((await job.send("GET", `job-runs/${id}/logs`)).json().data.logs).toBe("of March\n");
    expect((await job.send("GET", `job-runs/${id}/metrics`)).statusCode).toBe(200);
    expect(await total()).toBe(1);

    at("2026-04-01T00:00:00.000Z");
    expect(await list(job)).toMatchObject({
      runs: [],
      pagination: { total: 0 },
      cycle_started_at: "2026-04-01T00:00:00.000Z",
      next_reset_at: "2026-05-01T00:00:00.000Z",
    });
    expect(await refusalOf(job.send("GET", `job-runs/${id}/logs`))).toEqual([404, "JOB_RUN_NOT_FOUND"]);
    expect(await refusalOf(job.send("GET", `job-runs/${id}/metrics`))).toEqual([404, "JOB_RUN_NOT_FOUND"]);
    expect(await total()).toBe(0);
    // It is still known: cancelling it changes nothing.
    expect((await job.send("POST", `job-runs/${id}/cancel`)).json().data.run.status).toBe("succeeded");
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: a run belongs to the cycle in which it started
  it("keeps a run that crosses its end where it started, in the cluster and in the ledger", async () => {
    const job = await createJob(harness);
    const scheduledAt = minute("2026-03-31T23:59:00Z");
    const created = await resource(job, scheduledAt, running("2026-03-31T23:59:58Z"));
    at("2026-03-31T23:59:59Z");
    expect(await ids(job)).toEqual([created.metadata.name]);
    at("2026-04-01T00:00:30Z");
    expect(await ids(job)).toEqual([]);
    const crossing = {
      started_at: minute("2026-03-31T23:59:58Z"),
      finished_at: minute("2026-04-01T00:01:08Z"),
      billed_until: minute("2026-04-01T00:01:08Z"),
    };
    await record(job, scheduledAt, crossing);
    await job.actor.removeRun(created);
    expect(await ids(job)).toEqual([]);
    at("2026-03-31T23:59:59Z");
    await expect.poll(() => ids(job)).toEqual([created.metadata.name]);
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: a run belongs to the cycle in which it started
  it("takes a run that was scheduled before it and started in it", async () => {
    const job = await createJob(harness);
    const started = minute("2026-04-01T00:00:01Z");
    const finished = minute("2026-04-01T00:00:31Z");
    const id = await record(job, minute("2026-03-31T23:59:00Z"), {
      started_at: started,
      finished_at: finished,
      billed_until: finished,
      billed_minutes: 1,
      amount: "0.05",
    });
    at("2026-04-01T00:02:00Z");
    expect(await ids(job)).toEqual([id]);
    at("2026-03-31T23:59:59Z");
    expect(await ids(job)).toEqual([]);
  });
});

describe("logs and metrics of a run", () => {
  // Shows: docs/jobs.md#endpoints: `GET /v1/project/:id/job-runs/:runId/logs` | `data`: `run`, `logs`
  it("come from the ledger once it has them, at most 50 KiB", async () => {
    const job = await createJob(harness);
    const scheduledAt = minute("2026-03-10T10:00:00Z");
    at("2026-03-10T12:00:00Z");
    const metrics = { status: "available" as const, samples: 3, averageCores: "0.2", peakCores: "0.4" };
    const id = await record(job, scheduledAt, { metrics });
    const logs = () => job.send("GET", `job-runs/${id}/logs`);
    // Nothing could be kept.
    expect((await logs()).json().data).toEqual({
      run: { id, status: "succeeded", billed_minutes: 2, currency: "brl" },
      logs: "",
    });
    const name = { organization_id: job.organizationId, project_id: job.id, id, scheduled_at: scheduledAt };
    await storeJobRunLog(harness.ledger, name, `first\n${"ü".repeat(40_000)}\nlast\n`);
    const text = (await logs()).json().data.logs as string;
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(51_200);
    expect(text).toMatch(/^ü+\nlast\n$/);
    expect((await logs()).headers["cache-control"]).toBe("no-store");
    expect((await job.send("GET", `job-runs/${id}/metrics`)).json().data).toEqual({
      run_id: id,
      status: "available",
      window: { started_at: "2026-03-10T10:00:02.000Z", finished_at: "2026-03-10T10:01:12.000Z" },
      cpu: { average_cores: 0.2, peak_cores: 0.4 },
      samples: 3,
    });
  });

  // Shows: docs/jobs.md#endpoints: `GET /v1/project/:id/job-runs/:runId/logs` | `data`: `run`, `logs`
  // Shows: docs/jobs.md#the-job-its-settings-its-runs: logs: the end, at most 51,200 bytes of UTF-8, no
  // Shows: docs/jobs.md#failures: logs | 503 `LOGS_UNAVAILABLE`: its node does not answer, or has
  it("come from the node while it runs and until they are stored", async () => {
    const job = await createJob(harness);
    const scheduledAt = minute("2026-03-10T10:00:00Z");
    at("2026-03-10T12:00:00Z");
    const status = { ...running("2026-03-10T10:00:02Z"), podName: `${nameOf(job, scheduledAt)}-x2x9k` };
    const created = await resource(job, scheduledAt, status);
    const podLog = vi.spyOn(harness.services.kube, "podLog");
    podLog.mockResolvedValue(Buffer.from("2026-03-10T10:00:03Z hello\n2026-03-10T10:00:04Z wörld"));
    const logs = () => job.send("GET", `job-runs/${created.metadata.name}/logs`);
    expect((await logs()).json().data).toEqual({
      run: { id: created.metadata.name, status: "running", currency: "brl" },
      logs: "hello\nwörld",
    });
    expect(podLog.mock.calls[0]).toMatchObject([{ name: status.podName }, { container: "app" }]);
    // A node that does not answer, and nothing stored yet.
    podLog.mockRejectedValue(new KubeError({ status: 500, reason: "InternalError", message: "no node" }));
    expect(await refusalOf(logs())).toEqual([503, "LOGS_UNAVAILABLE"]);
    // One that has removed the container of a stopped run, with its log.
    podLog.mockResolvedValue(Buffer.from("unable to retrieve container logs for containerd://d689083f5f1c"));
    expect(await refusalOf(logs())).toEqual([503, "LOGS_UNAVAILABLE"]);
    // Stored meanwhile, and the pod is deleted.
    podLog.mockRestore();
    const name = { organization_id: job.organizationId, project_id: job.id, id: created.metadata.name };
    await storeJobRunLog(harness.ledger, { ...name, scheduled_at: scheduledAt }, "kept\n");
    expect((await logs()).json().data.logs).toBe("kept\n");
    await job.actor.setStatus(created, { logs: "stored" });
    await seen(job, created);
    expect((await logs()).json().data.logs).toBe("kept\n");
  });

  // Shows: docs/jobs.md#endpoints: `GET /v1/project/:id/job-runs/:runId/metrics` | `data`: `run_id`
  it("go from collecting to available or unavailable", async () => {
    const job = await createJob(harness);
    at("2026-03-10T12:00:00Z");
    const created = await resource(job, minute("2026-03-10T10:00:00Z"), running("2026-03-10T10:00:02Z"));
    const metrics = async () =>
      (await job.send("GET", `job-runs/${created.metadata.name}/metrics`)).json().data;
    expect(await metrics()).toMatchObject({ status: "collecting" });
    const status = ended("failed", "2026-03-10T10:00:02Z", "2026-03-10T10:00:30Z");
    await job.actor.setStatus(created, {
      ...status,
      chargedAt: "2026-03-10T10:00:31Z",
      metrics: { status: "unavailable" },
    });
    await seen(job, created);
    expect(await metrics()).toMatchObject({ status: "unavailable", run_id: created.metadata.name });
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: an active run has no end and no amount; one that
  // Shows: docs/jobs.md#failures: logs, metrics | 404 `JOB_RUN_NOT_FOUND`: unknown, of an earlier cycle
  it("are 404 for a run that is unknown, was refused or has not started", async () => {
    const job = await createJob(harness);
    at("2026-03-10T12:00:00Z");
    const waiting = await resource(job, minute("2026-03-10T10:00:00Z"));
    const refused = await resource(job, minute("2026-03-10T10:01:00Z"), {
      conditions: [condition("Admitted", "False", "Overlap")],
    });
    const unknown = [`${job.id}-1`, "nothing", "x".repeat(150), "A", "a%20b", "-", "%00"];
    for (const id of [waiting.metadata.name, refused.metadata.name, ...unknown]) {
      for (const operation of ["logs", "metrics"]) {
        const answer = await refusalOf(job.send("GET", `job-runs/${id}/${operation}`));
        expect([id, ...answer]).toEqual([id, 404, "JOB_RUN_NOT_FOUND"]);
      }
    }
  });
});

describe("cancelling", () => {
  const scheduledAt = minute("2026-03-10T10:00:00Z");
  const cancel = (job: Job, id: string) => job.send("POST", `job-runs/${id}/cancel`);

  /** Ends runs that are to be cancelled as the operator does, after a while. */
  const cancelling = (job: Job, phase: JobRunPhase = "cancelled") =>
    job.actor.play(job.organizationId, async (run, actor: OperatorActor) => {
      if (run.spec.cancelRequestedAt === undefined || run.status?.phase !== "running") {
        return;
      }
      const now = new Date().toISOString();
      await actor.setStatus(run, { ...ended(phase, run.status.startedAt ?? now, now), billedMinutes: 2 });
    });

  // Shows: docs/jobs.md#endpoints: `POST /v1/project/:id/job-runs/:runId/cancel` | `data.run`: `id`
  // Shows: docs/jobs.md#the-job-its-settings-its-runs: cancelling: concurrent calls agree, the first one
  it("requests the end of a run once and answers it; repeated, concurrently or later, it answers the same", async () => {
    const job = await createJob(harness);
    const created = await resource(job, scheduledAt, running("2026-03-10T10:00:02Z"));
    const operator = cancelling(job);
    const answers = await Promise.all(Array.from({ length: 10 }, () => cancel(job, created.metadata.name)));
    await operator.stop();
    const run = { id: created.metadata.name, status: "cancelled", billed_minutes: 2, currency: "brl" };
    for (const answer of answers) {
      expect(answer.json()).toEqual({ status: "success", message: expect.any(String), data: { run } });
      expect(answer.statusCode).toBe(200);
    }
    const { spec } = (await job.actor.run(job.organizationId, created.metadata.name)) as JobRun;
    expect(spec.cancelRequestedAt).toBeDefined();
    const again = await cancel(job, created.metadata.name);
    expect(again.json().data.run).toEqual(run);
    const later = (await job.actor.run(job.organizationId, created.metadata.name)) as JobRun;
    expect(later.spec.cancelRequestedAt).toBe(spec.cancelRequestedAt);
    // The schedule continues.
    expect((await job.actor.project(job.organizationId, job.id)).spec.paused).toBeUndefined();
    expect((await list(job)).runs).toEqual([]);
    at("2026-03-10T12:00:00Z");
    expect(await list(job, "?status=cancelled")).toMatchObject({ runs: [{ id: created.metadata.name }] });
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: cancelling: concurrent calls agree, the first one
  // Shows: docs/jobs.md#failures: cancel | 409 `JOB_RUN_CANCELLATION_UNAVAILABLE`: its end cannot be
  it("keeps the time of the first request when its answer was lost, and the repeat answers the end", async () => {
    const job = await createJob(harness);
    const created = await resource(job, scheduledAt, running("2026-03-10T10:00:02Z"));
    const project = await projectOf(job);
    at("2026-03-10T10:00:20.500Z");
    const lost = cancelRun(project, created.metadata.name, harness.services, 200);
    await expect(lost).rejects.toMatchObject({ status: 409, code: "JOB_RUN_CANCELLATION_UNAVAILABLE" });
    at("2026-03-10T10:00:50Z");
    const operator = cancelling(job);
    const repeated = await cancel(job, created.metadata.name);
    await operator.stop();
    expect(repeated.json().data.run.status).toBe("cancelled");
    const { spec } = (await job.actor.run(job.organizationId, created.metadata.name)) as JobRun;
    expect(spec.cancelRequestedAt).toBe("2026-03-10T10:00:20.500Z");
  });

  // Shows: docs/jobs.md#job-run: `running` | it ends while it is being cancelled | the state of its own
  // Shows: docs/jobs.md#the-job-its-settings-its-runs: cancelling: a run that ended on its own meanwhile
  it("answers the state in which the run ended meanwhile", async () => {
    const job = await createJob(harness);
    const created = await resource(job, scheduledAt, running("2026-03-10T10:00:02Z"));
    const operator = cancelling(job, "succeeded");
    expect((await cancel(job, created.metadata.name)).json().data.run.status).toBe("succeeded");
    await operator.stop();
  });

  // Shows: docs/jobs.md#job-run: any terminal | cancelled | the same state, no new charge
  // Shows: docs/jobs.md#the-job-its-settings-its-runs: cancelling: a run that has ended stays as it is
  it.each(["succeeded", "failed", "deadline_exceeded", "cancelled"] as const)(
    "leaves a run that is %s as it is, in the cluster and in the ledger",
    async (phase) => {
      const job = await createJob(harness);
      const status = ended(phase, "2026-03-10T10:00:02Z", "2026-03-10T10:00:30Z");
      const created = await resource(job, scheduledAt, status);
      const run = { id: created.metadata.name, status: phase, billed_minutes: 1, currency: "brl" };
      expect((await cancel(job, created.metadata.name)).json().data.run).toEqual(run);
      const { spec } = (await job.actor.run(job.organizationId, created.metadata.name)) as JobRun;
      expect(spec.cancelRequestedAt).toBeUndefined();
      const id = await record(job, minute("2026-02-10T10:00:00Z"), { status: phase });
      expect((await cancel(job, id)).json().data.run).toEqual({ ...run, id, billed_minutes: 2 });
    },
  );

  // Shows: docs/jobs.md#job-run: `running` | cancelled, and its end cannot be confirmed | `running`: 409
  // Shows: docs/jobs.md#failures: cancel | 409 `JOB_RUN_CANCELLATION_UNAVAILABLE`: its end cannot be
  it("is 409 JOB_RUN_CANCELLATION_UNAVAILABLE where its end cannot be confirmed, and writes nothing", async () => {
    const job = await createJob(harness);
    const created = await resource(job, scheduledAt, {
      ...running("2026-03-10T10:00:02Z"),
      conditions: [condition("CancelUnsafe", "True", "NodeUnreachable")],
    });
    expect(await refusalOf(cancel(job, created.metadata.name))).toEqual([
      409,
      "JOB_RUN_CANCELLATION_UNAVAILABLE",
    ]);
    const { spec } = (await job.actor.run(job.organizationId, created.metadata.name)) as JobRun;
    expect(spec.cancelRequestedAt).toBeUndefined();
  });

  // Shows: docs/jobs.md#failures: cancel | 409 `JOB_RUN_CANCELLATION_UNAVAILABLE`: its end cannot be
  it("is 409 as soon as its end cannot be confirmed any more", async () => {
    const job = await createJob(harness);
    const created = await resource(job, scheduledAt, running("2026-03-10T10:00:02Z"));
    const operator = job.actor.play(job.organizationId, async (run, actor) => {
      if (run.spec.cancelRequestedAt === undefined || run.status?.conditions !== undefined) {
        return;
      }
      await actor.setStatus(run, { conditions: [condition("CancelUnsafe", "True", "NodeUnreachable")] });
    });
    expect(await refusalOf(cancel(job, created.metadata.name))).toEqual([
      409,
      "JOB_RUN_CANCELLATION_UNAVAILABLE",
    ]);
    await operator.stop();
  });

  // Shows: docs/jobs.md#job-run: not started | cancelled | `cancelled`, nothing billed
  // Shows: docs/jobs.md#the-job-its-settings-its-runs: cancelling: a run that has not started is
  it("takes a run that has not started: cancelled, and nothing billed", async () => {
    const job = await createJob(harness);
    const nothing = { status: "cancelled", billed_minutes: 0, currency: "brl" };
    const notStarted = await resource(job, scheduledAt);
    const notStartedReports = job.actor.play(job.organizationId, async (run, actor) => {
      if (run.spec.cancelRequestedAt === undefined || run.status?.conditions !== undefined) {
        return;
      }
      await actor.setStatus(run, { conditions: [condition("Finished", "False", "NeverStarted")] });
    });
    expect((await cancel(job, notStarted.metadata.name)).json().data.run).toEqual({
      id: notStarted.metadata.name,
      ...nothing,
    });
    await notStartedReports.stop();
    const removed = await resource(job, minute("2026-03-10T10:01:00Z"));
    const removes = job.actor.play(job.organizationId, async (run, actor) => {
      if (run.metadata.name !== removed.metadata.name || run.spec.cancelRequestedAt === undefined) {
        return;
      }
      await actor.removeRun(run);
    });
    expect((await cancel(job, removed.metadata.name)).json().data.run).toEqual({
      id: removed.metadata.name,
      ...nothing,
    });
    await removes.stop();
  });

  it("finds a run that was charged and removed while it waited", async () => {
    const job = await createJob(harness);
    const created = await resource(job, scheduledAt, running("2026-03-10T10:00:02Z"));
    const operator = job.actor.play(job.organizationId, async (run, actor) => {
      if (run.spec.cancelRequestedAt === undefined) {
        return;
      }
      await record(job, scheduledAt, { status: "cancelled" });
      await actor.removeRun(run);
    });
    expect((await cancel(job, created.metadata.name)).json().data.run).toMatchObject({
      status: "cancelled",
      billed_minutes: 2,
    });
    await operator.stop();
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: cancelling: a run that has not started is
  it("works on a running run of an earlier cycle", async () => {
    const job = await createJob(harness);
    const created = await resource(job, scheduledAt, running("2026-03-10T10:00:02Z"));
    at("2026-04-02T00:00:00Z");
    const operator = cancelling(job);
    expect((await cancel(job, created.metadata.name)).json().data.run.status).toBe("cancelled");
    await operator.stop();
  });

  // Shows: docs/jobs.md#failures: cancel | 404 `JOB_RUN_NOT_FOUND`
  it("is 404 for a run that is unknown or was refused", async () => {
    const job = await createJob(harness);
    const refused = await resource(job, scheduledAt, {
      conditions: [condition("Admitted", "False", "Overlap")],
    });
    for (const id of [refused.metadata.name, `${job.id}-29400000`, "x", "A"]) {
      expect(await refusalOf(cancel(job, id))).toEqual([404, "JOB_RUN_NOT_FOUND"]);
    }
  });
});

describe("running a job now", () => {
  const start = (job: Job, key?: string) =>
    job.send("POST", "job-runs", undefined, key === undefined ? {} : { "idempotency-key": key });

  const acceptedJob = async () => {
    const job = await createJob(harness);
    await job.actor.setAccepted(job.organizationId, job.id);
    return job;
  };

  /** Decides on runs that were requested manually as the operator does. */
  const deciding = (job: Job, reason?: string) =>
    job.actor.play(job.organizationId, async (run, actor) => {
      if (run.spec.trigger !== "manual" || run.status?.conditions !== undefined) {
        return;
      }
      const admitted = reason === undefined ? "True" : "False";
      await actor.setStatus(run, { conditions: [condition("Admitted", admitted, reason ?? "Admitted")] });
    });

  // Shows: docs/jobs.md#endpoints: `POST /v1/project/:id/job-runs` | 202, `data.run`: `id`
  it("creates a manual run, and answers 202 once it has the slot", async () => {
    const job = await acceptedJob();
    const operator = deciding(job);
    const answer = await start(job);
    await operator.stop();
    expect(answer.statusCode).toBe(202);
    const { id, scheduled_at } = answer.json().data.run;
    expect(id).toMatch(new RegExp(`^${job.id}-[0-9]+-[a-z0-9]{10}$`));
    const run = (await job.actor.run(job.organizationId, id)) as JobRun;
    expect(run.spec).toEqual({ projectRef: { name: job.id }, trigger: "manual", scheduledAt: scheduled_at });
    const project = await job.actor.project(job.organizationId, job.id);
    expect(run.metadata.ownerReferences).toMatchObject([{ kind: "Project", uid: project.metadata.uid }]);
    // The ledger's name of a run contains its minute.
    expect(id.startsWith(`${jobRunName(job.id, new Date(scheduled_at))}-`)).toBe(true);
  });

  // Shows: docs/jobs.md#failures: run now | 409 `JOB_RUN_ACTIVE`, `PROJECT_PAUSED`, `JOB_SCHEDULE_CLOSED`
  // Shows: docs/jobs.md#failures: run now | 409 `JOB_NOT_ACCEPTED`: its plan, a Secret or a limit
  it.each([
    ["Overlap", 409, "JOB_RUN_ACTIVE"],
    ["Paused", 409, "PROJECT_PAUSED"],
    ["ScheduleClosed", 409, "JOB_SCHEDULE_CLOSED"],
    ["NotAccepted", 409, "JOB_NOT_ACCEPTED"],
    ["ProjectGone", 409, "PROJECT_ALREADY_DELETED"],
  ] as const)("that the operator refuses with %s is %i %s", async (reason, status, code) => {
    const job = await acceptedJob();
    const operator = deciding(job, reason);
    expect(await refusalOf(start(job))).toEqual([status, code]);
    await operator.stop();
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: running now, right after creation or a change
  it("waits until the operator has reconciled a project that was just created or changed", async () => {
    const job = await createJob(harness);
    const operator = deciding(job);
    const created = start(job);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await job.actor.listRuns(job.organizationId)).toEqual([]);
    await job.actor.setAccepted(job.organizationId, job.id, false);
    expect((await created).statusCode).toBe(202);
    expect((await job.send("PATCH", "schedule", { cron: "7 7 7 7 *" })).statusCode).toBe(200);
    const changed = start(job);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(await job.actor.listRuns(job.organizationId)).toHaveLength(1);
    await job.actor.setAccepted(job.organizationId, job.id);
    expect((await changed).statusCode).toBe(202);
    await operator.stop();
  });

  // Shows: docs/jobs.md#failures: run now | 503 `OPERATOR_UNAVAILABLE`: no operator decides, or has
  it("is 503 OPERATOR_UNAVAILABLE for a project that the operator has not reconciled, and nothing is created", async () => {
    const job = await createJob(harness);
    const id = `${jobRunName(job.id, new Date())}-unseen`;
    const answer = startRun(await projectOf(job), id, harness.services, { limitMs: 300 });
    await expect(answer).rejects.toMatchObject({ status: 503, code: "OPERATOR_UNAVAILABLE" });
    expect(await job.actor.listRuns(job.organizationId)).toEqual([]);
  });

  // Shows: docs/jobs.md#failures: run now | 409 `JOB_RUN_ACTIVE`, `PROJECT_PAUSED`, `JOB_SCHEDULE_CLOSED`
  it("is refused immediately while a run is active, the project is paused or its schedule closed", async () => {
    const job = await acceptedJob();
    await job.actor.patchProjectStatus(job.organizationId, job.id, { activeRun: `${job.id}-1` });
    expect(await refusalOf(start(job))).toEqual([409, "JOB_RUN_ACTIVE"]);
    await job.send("POST", "pause");
    expect(await refusalOf(start(job))).toEqual([409, "PROJECT_PAUSED"]);
    await closeJob(await projectOf(job), harness.services, 0).catch(() => undefined);
    expect(await refusalOf(start(job))).toEqual([409, "JOB_SCHEDULE_CLOSED"]);
    expect(await job.actor.listRuns(job.organizationId)).toEqual([]);
  });

  // Shows: docs/jobs.md#failures: run now | 503 `SCHEDULED_JOBS_UNAVAILABLE`
  it("is 503 while the platform has no jobs", async () => {
    const job = await acceptedJob();
    const { current } = harness.services.catalog;
    Object.assign(harness.services, { catalog: { current: { ...current, jobsEnabled: false } } });
    const disabled = await refusalOf(start(job));
    Object.assign(harness.services, { catalog: { current } });
    expect(disabled).toEqual([503, "SCHEDULED_JOBS_UNAVAILABLE"]);
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: running now: one run at a time; one run for one
  it("is one of several concurrent ones: the others get that a run is active", async () => {
    const job = await acceptedJob();
    let taken = false;
    const operator = job.actor.play(job.organizationId, async (run, actor) => {
      if (run.status?.conditions !== undefined) {
        return;
      }
      const first = !taken;
      taken = true;
      const decision = first
        ? condition("Admitted", "True", "Admitted")
        : condition("Admitted", "False", "Overlap");
      await actor.setStatus(run, { conditions: [decision] });
    });
    const answers = await Promise.all(Array.from({ length: 5 }, () => start(job)));
    await operator.stop();
    expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([202, 409, 409, 409, 409]);
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: running now: one run at a time; one run for one
  it("is one run under one Idempotency-Key, concurrently and later; a refusal frees the key", async () => {
    const job = await acceptedJob();
    const key = "run-now-0123456789";
    const refusing = deciding(job, "Overlap");
    expect(await refusalOf(start(job, key))).toEqual([409, "JOB_RUN_ACTIVE"]);
    await refusing.stop();
    const operator = deciding(job);
    const answers = await Promise.all(Array.from({ length: 5 }, () => start(job, key)));
    const [{ run }] = answers.map((answer) => answer.json().data) as [{ run: { id: string } }];
    for (const answer of answers) {
      expect(answer.json().data?.run, answer.body).toEqual(run);
      expect(answer.statusCode).toBe(202);
    }
    await operator.stop();
    const created = (await job.actor.run(job.organizationId, run.id)) as JobRun;
    await job.actor.removeRun(created);
    const again = (await start(job, key)).json().data.run;
    expect(again.id).toBe(run.id);
    expect(await refusalOf(start(job, "too-short"))).toEqual([400, "VALIDATION_FAILED"]);
    const other = await acceptedJob();
    const others = deciding(other);
    expect((await start(other, key)).statusCode).toBe(202);
    await others.stop();
  });

  // Shows: docs/jobs.md#the-job-its-settings-its-runs: running now: one run at a time; one run for one
  it("continues under its key after a broken connection: never a second time, and with a new run once its minute is over", async () => {
    const job = await acceptedJob();
    const operator = deciding(job);
    // What a process leaves behind that died before it could say how it went.
    const leave = async (key: string, id: string) =>
      reserveIdempotencyKey(harness.ledger, {
        organizationId: job.organizationId,
        key: `run:${job.id}:${key}`,
        bodySha256: bodyHash(null),
        projectId: id,
        holder: "dead",
        holdSeconds: 0,
      });
    const [asked, now] = [minute("2026-03-10T10:00:20.500Z"), new Date()];
    const over = `${jobRunName(job.id, asked)}-over`;
    await leave("it-ran-and-is-gone", over);
    await recordJobRuns(harness.ledger, [
      runRow({ ...names(job, asked), id: over }, asked, { trigger: "manual" }),
    ]);
    expect((await start(job, "it-ran-and-is-gone")).json().data.run).toEqual({
      id: over,
      scheduled_at: asked.toISOString(),
    });
    const fresh = `${jobRunName(job.id, now)}-fresh`;
    await leave("it-was-never-made", fresh);
    expect((await start(job, "it-was-never-made")).json().data.run.id).toBe(fresh);
    await leave("it-is-too-old-now", `${jobRunName(job.id, asked)}-old`);
    expect(await refusalOf(start(job, "it-is-too-old-now"))).toEqual([503, "CREATION_IN_PROGRESS"]);
    expect((await start(job, "it-is-too-old-now")).statusCode).toBe(202);
    await operator.stop();
    const created = (await job.actor.listRuns(job.organizationId)).map(({ metadata }) => metadata.name);
    expect(created).toHaveLength(2);
    expect(created).not.toContain(over);
  });

  // Shows: docs/jobs.md#failures: run now | 503 `OPERATOR_UNAVAILABLE`: no operator decides, or has
  it("is 503 OPERATOR_UNAVAILABLE when the operator does not decide, and nothing is left of it", async () => {
    const job = await acceptedJob();
    const id = `${jobRunName(job.id, new Date())}-nobody`;
    await expect(
      startRun(await projectOf(job), id, harness.services, { limitMs: 300 }),
    ).rejects.toMatchObject({
      status: 503,
      code: "OPERATOR_UNAVAILABLE",
    });
    expect(await job.actor.run(job.organizationId, id)).toBeUndefined();
  });

  // Shows: docs/jobs.md#failures: run now | 402 `ORGANIZATION_BLOCKED`
  it("is 402 in an organization that is blocked", async () => {
    const job = await acceptedJob();
    await setOrganizationBlocked(harness.ledger, job.organizationId, true);
    expect(await refusalOf(start(job))).toEqual([402, "ORGANIZATION_BLOCKED"]);
  });
});
