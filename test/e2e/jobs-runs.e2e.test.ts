import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiClient, uniqueName } from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import {
  deleteJobs,
  EVERY_MINUTE,
  Job,
  type JobBody,
  MINUTE_MS,
  nextMinute,
  tenThousandths,
  until,
} from "./support/jobs.ts";
import { setOperator } from "./support/operator-settings.ts";
import { createOrganization } from "./support/organization.ts";
import { namespaceOf, stack } from "./support/stack.ts";
import { expectAsPods, type StackObserver, startStackObserver } from "./support/stack-observer.ts";

/** How runs end, and how they are started by hand. Each job runs when it is asked to. */

/** A run is stopped after this long, and has never started after that long: as in `values.yaml`, or for as long as these tests take. */
const RUN_LIMIT_SECONDS = 90;
const START_DEADLINE_SECONDS = 40;
/** What is stopped has this long until it is killed. */
const GRACE_SECONDS = 30;
const BASIC = 200;

let call: ReturnType<typeof apiClient>;
let namespace: string;
let observer: StackObserver;
let restore: (() => Promise<void>) | undefined;
const jobs: Job[] = [];
const create = async (body: JobBody): Promise<Job> => {
  const job = await Job.create(call, { ...body, name: uniqueName(body.name) });
  jobs.push(job);
  return job;
};

beforeAll(async () => {
  restore = await setOperator({
    SLIPWAY_JOB_RUN_LIMIT_SECONDS: String(RUN_LIMIT_SECONDS),
    SLIPWAY_JOB_START_DEADLINE_SECONDS: String(START_DEADLINE_SECONDS),
  });
  const organization = await createOrganization("Job runs");
  call = apiClient(organization.api_key);
  namespace = namespaceOf(organization.organization_id);
  observer = await startStackObserver();
}, 180_000);

afterAll(async () => {
  await deleteJobs(jobs);
  await observer?.stop();
  await restore?.();
}, 300_000);

/** Ends at once when it is asked to. */
const OBEDIENT = "trap 'echo bye; exit 0' TERM; echo up; sleep 600 & wait";
/** The log is stored a moment after the end. */
const expectLog = (job: Job, id: string, log: string): Promise<void> =>
  eventually(async () => expect((await job.log(id)).logs).toBe(log), { every: 250 });

/** Ends when it is killed. */
const STUBBORN = "trap '' TERM; echo up; while :; do sleep 1; done";

describe.concurrent("a run", () => {
  // Shows: docs/jobs.md#job-run: `running` | another exit code | `failed`, billed; never tried again
  test("that takes more memory than its plan has is killed, has failed and is billed", async () => {
    const command = ["/bin/dd", "if=/dev/zero", "of=/dev/null", "bs=1000M", "count=1"];
    const job = await create({ name: "greedy", config: { job: { cron: "0 0 29 2 *", command } } });
    const { id } = await job.running();
    const run = await job.ended(id);
    expect(run).toMatchObject({ status: "failed", billed_minutes: 1 });
    const records = await observer.records([job.id]);
    expect(records.pods.map(({ exitCode }) => exitCode)).toEqual([137]);
    expectAsPods([run], records, BASIC);
    expect(await observer.check([job.id])).toEqual([]);
  });

  // Shows: docs/jobs.md#job-run: `running` | 60 minutes after the container's start
  // Shows: docs/jobs.md#job-run: any terminal | cancelled | the same state, no new charge
  test("that reaches the limit is stopped, counted from the container's start, and billed for its time", async () => {
    const job = await create({ name: "endless", script: OBEDIENT });
    const { id, started_at } = await job.running();
    // Meanwhile it can be read.
    await eventually(async () => expect((await job.log(id)).logs).toBe("up\n"));
    const { samples: early = 0 } = await eventually(
      async () => {
        const metrics = await job.metrics(id);
        expect(metrics).toMatchObject({ status: "collecting", window: { started_at } });
        expect(metrics.memory?.latest_bytes).toBeGreaterThan(0);
        return metrics;
      },
      { within: 60_000 },
    );
    const run = await job.ended(id);
    expect(run).toMatchObject({ status: "deadline_exceeded", billed_minutes: 2 });
    expect(run.duration_seconds).toBeGreaterThanOrEqual(RUN_LIMIT_SECONDS);
    // It ended by itself within its grace period: nothing waited to kill it.
    expect(run.duration_seconds).toBeLessThan(RUN_LIMIT_SECONDS + GRACE_SECONDS);
    expectAsPods([run], await observer.records([job.id]), BASIC);
    expect(await observer.check([job.id], { limitSeconds: RUN_LIMIT_SECONDS })).toEqual([]);
    await eventually(async () => {
      const metrics = await job.metrics(id);
      expect(metrics).toMatchObject({ status: "available" });
      // How many depends on how busy its kubelet is, which is asked less often while it does not answer in time.
      expect(metrics.samples).toBeGreaterThan(early);
    });
    await expectLog(job, id, "up\nbye\n");
    // Cancelling what has ended changes nothing.
    const late = await job.cancel(id);
    expect(late).toMatchObject({
      status: 200,
      body: { data: { run: { id, status: "deadline_exceeded", billed_minutes: 2 } } },
    });
    expect((await job.costs())?.billed_minutes).toBe(2);
  });

  // Shows: docs/jobs.md#job-run: `running` | cancelled | `cancelled`, billed up to the request: 30 s of
  // Shows: docs/jobs.md#billing: the log of a run that is stopped, by any client, is kept to its last
  test("that is cancelled twice concurrently ends within its grace period, and both answers are equal", async () => {
    const job = await create({ name: "obedient", script: OBEDIENT });
    const { id } = await job.running();
    await sleep(2_000);
    const asked = performance.now();
    const answers = await Promise.all([job.cancel(id), job.cancel(id)]);
    // Then it would have been killed.
    expect(performance.now() - asked).toBeLessThan(GRACE_SECONDS * 1_000);
    const run = { id, status: "cancelled", billed_minutes: 1, currency: "brl" };
    for (const answer of answers) {
      expect(answer).toMatchObject({ status: 200, body: { data: { run } } });
    }
    expect(await job.cancel(id)).toMatchObject({ status: 200, body: { data: { run } } });
    expect(await job.cancel(`${job.id}-1`)).toMatchObject({
      status: 404,
      body: { code: "JOB_RUN_NOT_FOUND" },
    });
    expect(await observer.check([job.id])).toEqual([]);
    expect(tenThousandths((await job.run(id)).amount)).toBe(BASIC);
    await expectLog(job, id, "up\nbye\n");
    // The schedule stays active: it may run again.
    const again = await job.running();
    expect((await job.cancel(again.id)).status).toBe(200);
    // What is summed are charges, which follow a moment later.
    await eventually(async () => expect((await job.costs())?.executed_runs).toBe(2));
  });

  // Shows: docs/jobs.md#job-run: `running` | cancelled | `cancelled`, billed up to the request: 30 s of
  test("that ignores its cancellation is killed after 30 s, and billed up to the request alone", async () => {
    const job = await create({ name: "stubborn", script: STUBBORN });
    const { id, started_at } = await job.running();
    await until(Date.parse(started_at) + 45_000);
    const asked = performance.now();
    const answer = await job.cancel(id);
    expect(answer.body.data?.run).toMatchObject({ status: "cancelled", billed_minutes: 1 });
    const seconds = (performance.now() - asked) / 1_000;
    expect(seconds).toBeGreaterThan(GRACE_SECONDS - 5);
    expect(seconds).toBeLessThan(2 * GRACE_SECONDS);
    const run = await job.run(id);
    // Well over a minute of life, of which one is charged.
    expect(run.duration_seconds).toBeGreaterThan(60);
    expect(tenThousandths(run.amount)).toBe(BASIC);
    const records = await observer.records([job.id]);
    expectAsPods([run], records, BASIC);
    expect(records.pods.map(({ exitCode }) => exitCode)).toEqual([137]);
    expect(await observer.check([job.id])).toEqual([]);
    await expectLog(job, id, "up\n");
  });

  // Shows: docs/jobs.md#billing: the log of a run that is stopped, by any client, is kept to its last
  test("whose pod somebody deletes with kubectl ends as its container does, and its log is kept to the last word", async () => {
    const script = "trap 'echo bye; exit 3' TERM; echo up; sleep 600 & wait";
    const job = await create({ name: "deleted", script });
    const { id } = await job.running();
    await sleep(2_000);
    const { items } = await cluster.core.listNamespacedPod({
      namespace,
      labelSelector: `batch.kubernetes.io/job-name=${id}`,
    });
    expect(items).toHaveLength(1);
    await cluster.core.deleteNamespacedPod({ namespace, name: items[0]?.metadata?.name ?? "" });
    expect(await job.ended(id)).toMatchObject({ status: "failed", billed_minutes: 1 });
    await expectLog(job, id, "up\nbye\n");
    expect(await observer.check([job.id])).toEqual([]);
  });

  // Shows: docs/jobs.md#job-run: (none) | an occurrence, and its run never starts | none: no usage, not
  // Shows: docs/jobs.md#occurrences-that-were-missed: `NeverStarted` | it was admitted, and its
  test("whose image cannot be pulled never was: not listed, not billed, the slot is free", async () => {
    // Its schedule is there well before the minute.
    if (nextMinute(0) - Date.now() < 15_000) {
      await until(nextMinute(0));
    }
    const image = { url: `${stack.imageJob.split("/")[0]}/no-such-image:1`, is_public: true };
    const job = await create({
      name: "imageless",
      cron: EVERY_MINUTE,
      config: { image, job: { cron: EVERY_MINUTE } },
    });
    const minute = nextMinute(0);
    await until(minute + (START_DEADLINE_SECONDS + 15) * 1_000);
    const records = await observer.records([job.id]);
    expect(records.pods.map(({ startedAt }) => startedAt)).toEqual([undefined]);
    expect(await job.runs()).toEqual([]);
    expect(await job.costs()).toMatchObject({ executed_runs: 0, billed_minutes: 0, total_amount: 0 });
    const last_scheduled_at = new Date(minute).toISOString();
    expect(await job.missed()).toEqual({
      total: 1,
      reasons: [{ reason: "NeverStarted", count: 1, last_scheduled_at }],
    });
    // The next minute is tried.
    await until(minute + MINUTE_MS + 10_000);
    expect((await observer.records([job.id])).pods).toHaveLength(2);
    expect((await call("POST", `/v1/project/${job.id}/pause`)).status).toBe(200);
  });
});

describe.concurrent("a run by hand", () => {
  test("starts now, beside none that is active, on the same terms as one of the schedule", async () => {
    const job = await create({ name: "by-hand", script: "echo now; sleep 20" });
    const both = await Promise.all([job.start(), job.start()]);
    expect(both.map(({ status }) => status).toSorted()).toEqual([202, 409]);
    expect(both.find(({ status }) => status === 409)?.body.code).toBe("JOB_RUN_ACTIVE");
    const id = both.find(({ status }) => status === 202)?.body.data?.run.id ?? "";
    expect(await job.start()).toMatchObject({ status: 409, body: { code: "JOB_RUN_ACTIVE" } });
    const run = await eventually(() => job.run(id));
    expect(run).toMatchObject({ status: "running", trigger: "manual", plan: "job-basic" });
    const ended = await job.ended(id);
    expect(ended).toMatchObject({ status: "succeeded", billed_minutes: 1 });
    expectAsPods([ended], await observer.records([job.id]), BASIC);
    expect(await observer.check([job.id])).toEqual([]);
  });

  test("is the same one for the same Idempotency-Key", async () => {
    const job = await create({ name: "keyed", script: "sleep 5" });
    const key = uniqueName("run-by-key-of-the-test");
    const [first, second] = await Promise.all([job.start(key), job.start(key)]);
    expect(first).toMatchObject({ status: 202 });
    expect(second?.body).toEqual(first?.body);
    const id = first?.body.data?.run.id ?? "";
    await eventually(() => job.run(id));
    await job.ended(id);
    expect((await job.start(key)).body).toEqual(first?.body);
    expect(await job.runs()).toHaveLength(1);
  });
});
