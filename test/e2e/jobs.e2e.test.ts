import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isLong } from "../kit/long.ts";
import { apiClient, readProject, uniqueName, untilStatus } from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import {
  deleteJobs,
  EVERY_MINUTE,
  HARDLY_EVER,
  Job,
  type JobBody,
  MINUTE_MS,
  nextMinute,
  tenThousandths,
  until,
} from "./support/jobs.ts";
import { createOrganization } from "./support/organization.ts";
import { namespaceOf } from "./support/stack.ts";
import { expectAsPods, type StackObserver, startStackObserver } from "./support/stack-observer.ts";

/** Jobs on their schedules, in real containers. All of them live through the same minutes. */

// Ten minutes with --long; three otherwise.
const MINUTES = isLong ? 10 : 3;
/** A container has started this soon after its minute, and what it wrote is known. */
const START_LIMIT_MS = 20_000;
/** From the last minute that counts on: a run of 70 s ends and is charged. */
const LIMIT_MS = (MINUTES + 5) * MINUTE_MS;
const PRICES = { "job-basic": 200, "job-premium": 500 } as const;

let call: ReturnType<typeof apiClient>;
let namespace: string;
let observer: StackObserver;
const jobs: Job[] = [];
const create = async (body: JobBody): Promise<Job> => {
  const job = await Job.create(call, { ...body, name: uniqueName(body.name) });
  jobs.push(job);
  return job;
};

/** The first minute whose occurrences count, known once every job is there. */
let first: number;
const minute = (index: number): number => first + index * MINUTE_MS;
const at = (index: number): string => new Date(minute(index)).toISOString();
const minutes = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, index) => at(from + index));

let minutely: Job;
let long: Job;
let failing: Job;
let paused: Job;
let rescheduled: Job;

beforeAll(async () => {
  const organization = await createOrganization("Jobs");
  call = apiClient(organization.api_key);
  namespace = namespaceOf(organization.organization_id);
  observer = await startStackObserver();
  const greeting = { envs: [{ name: "GREETING", value: "good $(HOME) day" }] };
  const script = 'echo "$(date) began"; sleep 4; echo "$GREETING, and the end"';
  [minutely, long, failing, paused, rescheduled] = await Promise.all([
    create({ name: "minutely", script, plan: "job-premium", config: greeting }),
    create({ name: "seventy", script: "sleep 70" }),
    create({ name: "failing", script: "echo no; exit 3" }),
    create({ name: "paused" }),
    create({ name: "rescheduled" }),
  ]);
  expect((await call("POST", `/v1/project/${paused.id}/pause`)).status).toBe(200);
  // All get their schedules well before the first minute that counts.
  if (nextMinute(0) - Date.now() < 15_000) {
    await until(nextMinute(0));
  }
  for (const job of [minutely, long, failing, paused]) {
    expect(await job.schedule(EVERY_MINUTE)).toMatchObject({ status: 200 });
  }
  first = nextMinute(0);
}, 180_000);

afterAll(async () => {
  await deleteJobs(jobs);
  await observer?.stop();
}, 180_000);

const scheduledTimes = (runs: readonly { scheduled_at: string }[]): string[] =>
  runs.map(({ scheduled_at }) => scheduled_at);

describe.concurrent("on its schedule", { timeout: LIMIT_MS }, () => {
  // Shows: docs/jobs.md#job-run: (none) | an occurrence, and no run is active | `running` from the
  // Shows: docs/jobs.md#job-run: `running` | exit code 0 | `succeeded`, billed
  test("a minutely job: every run is listed, with the times and amounts of its pods", async () => {
    await until(minute(MINUTES - 1) + START_LIMIT_MS);
    const { runs, pagination, ...cycle } = await minutely.list("?limit=50");
    expect(scheduledTimes(runs)).toEqual(minutes(0, MINUTES).toReversed());
    expect(pagination).toEqual({ page: 1, limit: 50, total: MINUTES, total_pages: 1 });
    for (const run of runs) {
      expect(run).toMatchObject({ status: "succeeded", trigger: "schedule", plan: "job-premium" });
      expect(Date.parse(run.started_at) - Date.parse(run.scheduled_at)).toBeLessThan(START_LIMIT_MS);
    }
    expectAsPods(runs, await observer.records([minutely.id]), PRICES["job-premium"]);
    expect((await minutely.list("?limit=1&page=2")).runs).toEqual(runs.slice(1, 2));
    expect((await minutely.list("?status=failed")).runs).toEqual([]);

    // All are charged by now, and nothing else is.
    const costs = await minutely.costs();
    expect(costs).toMatchObject({
      currency: "brl",
      executed_runs: MINUTES,
      billed_runs: MINUTES,
      billed_minutes: MINUTES,
    });
    expect(tenThousandths(costs?.total_amount)).toBe(MINUTES * PRICES["job-premium"]);
    const now = new Date();
    const month = (ahead: number) => Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + ahead);
    expect(cycle).toEqual({
      cycle_started_at: new Date(month(0)).toISOString(),
      next_reset_at: new Date(month(1)).toISOString(),
    });

    expect(await minutely.missed()).toEqual({ total: 0, reasons: [] });
    const expectations = { price: BigInt(PRICES["job-premium"]) };
    expect(await observer.check([minutely.id], expectations)).toEqual([]);
  });

  // Shows: docs/jobs.md#billing: log and metrics outlive the pod
  test("what a run wrote, and what it used, outlive its pod", async () => {
    await until(minute(1) + START_LIMIT_MS);
    const run = await minutely.run((await minutely.runs()).at(-1)?.id ?? "");
    // Its pod goes with the Job, once the run is charged.
    await eventually(async () => {
      const { items } = await cluster.core.listNamespacedPod({
        namespace,
        labelSelector: `batch.kubernetes.io/job-name=${run.id}`,
      });
      expect(items).toEqual([]);
    });
    const { run: summary, logs } = await minutely.log(run.id);
    expect(summary).toEqual({ id: run.id, status: "succeeded", billed_minutes: 1, currency: "brl" });
    expect(logs).toMatch(/ UTC [0-9]{4} began\ngood \$\(HOME\) day, and the end\n$/);

    const metrics = await minutely.metrics(run.id);
    expect(metrics).toMatchObject({
      run_id: run.id,
      status: "available",
      window: { started_at: run.started_at, finished_at: run.finished_at },
    });
    expect(metrics.samples).toBeGreaterThan(0);
    expect(metrics.memory?.peak_bytes).toBeGreaterThan(0);
    for (const read of ["logs", "metrics"]) {
      const path = `/v1/project/${minutely.id}/job-runs/${minutely.id}-1/${read}`;
      expect(await call("GET", path)).toMatchObject({ status: 404, body: { code: "JOB_RUN_NOT_FOUND" } });
    }
  });

  // Shows: docs/jobs.md#job-run: (none) | an occurrence, and a run is active | none: missed, `Overlap`
  // Shows: docs/jobs.md#occurrences-that-were-missed: `Overlap` | a run was active at its minute
  test("a job of 70 s misses every second minute, never starts late, and is deleted once nothing is pending", async () => {
    // The minute in which a run has begun that is still at work.
    const last = MINUTES - 1 + (MINUTES % 2 === 0 ? 1 : 0);
    await until(minute(last) + START_LIMIT_MS);
    const runs = await long.runs();
    const even = minutes(0, last + 1).filter((_, index) => index % 2 === 0);
    expect(scheduledTimes(runs)).toEqual(even.toReversed());
    for (const run of runs) {
      expect(Date.parse(run.started_at) - Date.parse(run.scheduled_at)).toBeLessThan(START_LIMIT_MS);
    }
    const [active, ...ended] = runs;
    expect(active).toMatchObject({ status: "running" });
    expect(active).not.toHaveProperty("amount");
    expect(ended.length).toBeGreaterThan(0);
    for (const run of ended) {
      expect(run).toMatchObject({ status: "succeeded", billed_minutes: 2 });
    }
    expectAsPods(ended, await observer.records([long.id]), PRICES["job-basic"]);
    const overlaps = { reason: "Overlap", count: last / 2, last_scheduled_at: at(last - 1) };
    expect(await long.missed()).toEqual({ total: last / 2, reasons: [overlaps] });

    const pending = { status: 409, body: { status: "failed", code: "JOB_RUNS_PENDING" } };
    expect(await long.delete()).toMatchObject(pending);
    expect((await call("GET", `/v1/project/${long.id}`)).status).toBe(200);
    expect(await long.start()).toMatchObject({ status: 409, body: { code: "JOB_SCHEDULE_CLOSED" } });
    // No other minute runs, and the active run ends on its own.
    await until(minute(last + 1) + START_LIMIT_MS);
    expect(scheduledTimes(await long.runs())).toEqual(even.toReversed());
    expect(await observer.check([long.id])).toEqual([]);
    await eventually(async () => expect((await long.delete()).status).toBe(200), { within: 10_000 });
    expect((await call("GET", `/v1/project/${long.id}`)).status).toBe(404);
    await eventually(() => expectNothingLeft(long.id));
  });

  // Shows: docs/jobs.md#job-run: `running` | another exit code | `failed`, billed; never tried again
  test("a job that exits with 3 has failed, is billed, and is not tried again", async () => {
    await until(minute(1) + START_LIMIT_MS);
    const runs = await failing.runs();
    expect(scheduledTimes(runs)).toEqual([at(1), at(0)]);
    for (const run of runs) {
      expect(run).toMatchObject({ status: "failed", billed_minutes: 1 });
      expect(JSON.stringify(run)).not.toMatch(/exit/i);
    }
    expect((await failing.list("?status=failed")).pagination.total).toBe(2);
    const records = await observer.records([failing.id]);
    expectAsPods(runs, records, PRICES["job-basic"]);
    expect(records.pods.map(({ exitCode }) => exitCode)).toEqual([3, 3]);
    expect(await failing.costs()).toMatchObject({ executed_runs: 2, billed_minutes: 2 });
    expect((await failing.log(runs[0]?.id ?? "")).logs).toBe("no\n");
  });

  test("a paused job runs nothing and misses nothing, and runs again when it is resumed", async () => {
    expect((await untilStatus(call, paused.id, "stopped")).status).toBe("stopped");
    expect(await paused.start()).toMatchObject({ status: 409, body: { code: "PROJECT_PAUSED" } });
    await until(minute(0) + START_LIMIT_MS);
    expect(await paused.runs()).toEqual([]);
    expect((await call("POST", `/v1/project/${paused.id}/resume`)).status).toBe(200);
    await until(minute(1) + START_LIMIT_MS);
    expect(scheduledTimes(await paused.runs())).toEqual([at(1)]);
    expect(await paused.missed()).toEqual({ total: 0, reasons: [] });
    expect((await readProject(call, paused.id)).status).toBe("running");
  });

  test("a new schedule counts from when it was set, and the one before no longer", async () => {
    await until(minute(0) + START_LIMIT_MS);
    const asked = await rescheduled.schedule(`  */1  *  * * *  `);
    expect(asked).toMatchObject({ status: 200, body: { data: { cron: "*/1 * * * *", timezone: "UTC" } } });
    await until(minute(1) + START_LIMIT_MS);
    expect(scheduledTimes(await rescheduled.runs())).toEqual([at(1)]);
    expect((await rescheduled.schedule(HARDLY_EVER)).status).toBe(200);
    expect((await rescheduled.schedule("* * * *")).status).toBe(400);
    await until(minute(2) + START_LIMIT_MS);
    expect(scheduledTimes(await rescheduled.runs())).toEqual([at(1)]);
    expect(await rescheduled.missed()).toEqual({ total: 0, reasons: [] });
  });
});

/** Nothing of a project exists in its organization's namespace. */
async function expectNothingLeft(id: string): Promise<void> {
  const labelSelector = `slipway.dev/project=${id}`;
  const batch = { apiVersion: "batch/v1" };
  const kinds = [
    { ...batch, kind: "CronJob" },
    { ...batch, kind: "Job" },
    { apiVersion: "v1", kind: "Pod" },
    { apiVersion: "v1", kind: "Secret" },
    { apiVersion: "v1", kind: "PersistentVolumeClaim" },
    { apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy" },
    { apiVersion: "slipway.dev/v1alpha1", kind: "JobRun" },
  ];
  for (const { apiVersion, kind } of kinds) {
    const list = await cluster.objects.list(
      apiVersion,
      kind,
      namespace,
      undefined,
      undefined,
      undefined,
      undefined,
      labelSelector,
    );
    expect(list.items.map(({ metadata }) => `${kind} ${metadata?.name}`)).toEqual([]);
  }
}
