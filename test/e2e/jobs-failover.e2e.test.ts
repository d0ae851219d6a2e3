import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { recordFigures } from "../../hack/testing/figures.ts";
import { isLong } from "../kit/long.ts";
import { apiClient, uniqueName } from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import { deleteJobs, EVERY_MINUTE, Job, MINUTE_MS, until } from "./support/jobs.ts";
import { killOperator, leader, systemNamespace } from "./support/operator.ts";
import { createOrganization } from "./support/organization.ts";
import { type ReportedRun, type Sink, startSink } from "./support/sink.ts";
import { namespaceOf } from "./support/stack.ts";
import { type StackObserver, startStackObserver } from "./support/stack-observer.ts";

const JOBS = 20;
const MINUTES = 20;
const KILLS = 50;

/** A runtime notes the start of a container once its process is at work: on a busy machine it may have reported its start before. */
const NOTED_LATE_MS = 5_000;

const jobs: Job[] = [];
let observer: StackObserver | undefined;
let sink: (Sink & { stop: () => Promise<void> }) | undefined;
afterAll(async () => {
  await deleteJobs(jobs);
  await sink?.stop();
  await observer?.stop();
}, 300_000);

/** Kills the leader with SIGKILL. A pod in back-off is replaced, as by the platform's administrator. */
async function killLeader(): Promise<void> {
  // The Lease may still name one that was killed a moment ago.
  const pod = await eventually(
    async () => {
      const leading = await leader();
      await killOperator(leading);
      return leading;
    },
    { every: 200 },
  );
  const namespace = systemNamespace;
  await eventually(
    async () => {
      const { items } = await cluster.core.listNamespacedPod({
        namespace,
        fieldSelector: `metadata.name=${pod}`,
      });
      // None where a test beside this one has had the operators replaced.
      if (items.length === 0) {
        return;
      }
      const state = items[0]?.status?.containerStatuses?.[0]?.state;
      expect(state?.waiting?.reason ?? state?.running).toBeDefined();
      if (state?.waiting?.reason === "CrashLoopBackOff") {
        await cluster.core.deleteNamespacedPod({ name: pod, namespace, gracePeriodSeconds: 0 });
      }
    },
    { every: 500 },
  );
}

/** `count` moments within a time, at random. */
const moments = (count: number, from: number, to: number): number[] =>
  Array.from({ length: count }, () => from + Math.random() * (to - from)).sort((a, b) => a - b);

// Shows: docs/jobs.md#occurrences-that-were-missed: `OperatorUnavailable` | its window closed before
// Shows: docs/jobs.md#billing: each run is charged once, whatever fails
// Shows: docs/jobs.md#two-operators-and-kubectl: killing the leader again and again loses no run, runs
test.skipIf(!isLong)(
  `kill -9 of the leading operator ${KILLS} times in ${MINUTES} minutes of ${JOBS} minutely jobs: none lost, none twice, none at once (--long)`,
  async () => {
    const organization = await createOrganization("Jobs failover");
    const namespace = namespaceOf(organization.organization_id);
    const call = apiClient(organization.api_key);
    observer = await startStackObserver();
    sink = await eventually(() => startSink(namespace));
    for (let index = 0; index < JOBS; index += 1) {
      // Some end within seconds, others run into the next minute.
      const seconds = [3, 20, 57][index % 3] ?? 3;
      const name = `failover-${index}`;
      const script = sink.script(name, seconds);
      jobs.push(await Job.create(call, { name: uniqueName(name), cron: EVERY_MINUTE, script }));
    }

    const start = Date.now();
    for (const moment of moments(KILLS, start, start + MINUTES * MINUTE_MS)) {
      await until(moment);
      await killLeader();
    }
    await until(start + MINUTES * MINUTE_MS);
    for (const { id } of jobs) {
      expect((await call("POST", `/v1/project/${id}/pause`)).status).toBe(200);
    }
    // A minute may have come just before its job was paused.
    await sleep(5_000);

    const ids = jobs.map(({ id }) => id);
    const found = await observer.check(ids);
    expect(found).toEqual([]);
    const records = await observer.records(ids);
    const reported = await sink.reports();
    // What the containers reported themselves, what their pods' records say, and what the ledger holds: the same runs.
    const started = records.pods.filter(({ startedAt }) => startedAt !== undefined);
    expect(reported.map(({ pod }) => pod).toSorted()).toEqual(started.map(({ name }) => name).toSorted());
    expect(records.runs.map(({ id }) => id).toSorted()).toEqual(started.map(({ run }) => run).toSorted());
    for (const one of reported) {
      const pod = started.find(({ name }) => name === one.pod);
      const run = records.runs.find(({ id }) => id === pod?.run);
      expect(run).toMatchObject({ status: "succeeded", project: pod?.project });
      expect(one.began * 1_000).toBeGreaterThanOrEqual(Number(run?.startedAt) - NOTED_LATE_MS);
      expect((one.ended ?? Number.NaN) * 1_000).toBeLessThanOrEqual(Number(run?.finishedAt) + 1_000);
    }
    expect(overlapping(reported)).toEqual([]);
    // And the API lists them.
    for (const job of jobs) {
      const listed = await job.runs();
      const own = records.runs.filter(({ project }) => project === job.id);
      expect(listed.map(({ id }) => id).toSorted()).toEqual(own.map(({ id }) => id).toSorted());
    }
    const missed = records.projects.map(({ missedReasons }) => missedReasons);
    await recordFigures("chaos", "jobs while operators are killed, on the stack", {
      "runs, each charged once": records.runs.length,
      "occurrences missed, with a reason": missed
        .flatMap((counts) => Object.values(counts))
        .reduce((a, b) => a + b, 0),
    });
    const reasons = new Set(missed.flatMap((counts) => Object.keys(counts)));
    expect([...reasons].filter((reason) => !EXPECTED_REASONS.includes(reason))).toEqual([]);
    expect(records.runs.length).toBeGreaterThan(0);
  },
  (MINUTES + 6) * MINUTE_MS,
);

/** Why an occurrence may be missed in this test: its run before was at work, or nobody led in time. */
const EXPECTED_REASONS = ["Overlap", "Late", "OperatorUnavailable"];

/** Runs of one job that were at work at the same time. */
function overlapping(reported: readonly ReportedRun[]): string[] {
  const byJob = Object.groupBy(reported, ({ job }) => job);
  return Object.values(byJob).flatMap((runs = []) => {
    const ordered = runs.toSorted((a, b) => a.began - b.began);
    return ordered.filter((run, index) => run.began < (ordered[index - 1]?.ended ?? 0)).map(({ pod }) => pod);
  });
}
