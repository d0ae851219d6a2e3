import { resources } from "@slipway/controller-runtime";
import { expect, test } from "vitest";
import { Bench } from "../../../../test/kit/operator/jobrun-bench.ts";

/** A run of 12:01 that has ended and whose charge cannot be recorded yet: its Job is still there. */
async function endedRun() {
  const bench = new Bench();
  await bench.reconcileUntilStable();
  await bench.passTo("12:01:00");
  const run = await bench.start("12:01:00");
  bench.ledger.down = true;
  await bench.passTo("12:01:40");
  bench.ends(run.pod, 0, "12:01:00");
  await bench.reconcileUntilStable();
  expect(bench.state.activeRun).toBeUndefined();
  return { bench, ...run };
}

test("the Job of an ended run stays until the charge, and creates no pod in place of one that was deleted by force", async () => {
  const { bench, name, pod } = await endedRun();
  expect(bench.job(name)?.metadata.deletionTimestamp).toBeUndefined();
  bench.api.strip(resources.pods, bench.ref(pod));
  await bench.reconcileUntilStable();
  expect(bench.job(name)?.metadata.deletionTimestamp).toBeDefined();
  await bench.passTo("12:02:00");
  const next = bench.makeJob("12:02:00");
  await bench.reconcileUntilStable();
  expect(bench.state.activeRun).toBe(next);
});

test("the Job of an ended run that has counted its pod is left alone", async () => {
  const { bench, name, pod } = await endedRun();
  const status = { conditions: [{ type: "Complete", status: "True" }] };
  bench.api.patch(resources.jobs, bench.ref(name), { status }, { subresource: "status" });
  bench.api.strip(resources.pods, bench.ref(pod));
  await bench.reconcileUntilStable();
  expect(bench.job(name)?.metadata.deletionTimestamp).toBeUndefined();
});

// Shows: docs/jobs.md#limits-and-known-behaviour: when the run has ended, it is stopped, and no other
test("a pod that was created in place of an ended run's is deleted, and nothing else starts", async () => {
  const { bench, name, pod } = await endedRun();
  bench.api.strip(resources.pods, bench.ref(pod));
  const second = bench.makePod(name);
  bench.starts(second);
  await bench.reconcileUntilStable();
  expect(bench.pod(second)?.metadata.deletionTimestamp).toBeDefined();
  await bench.passTo("12:02:00");
  const next = bench.makeJob("12:02:00");
  await bench.reconcileUntilStable();
  expect([bench.state.activeRun, bench.job(next)?.spec?.suspend]).toEqual([undefined, true]);
  await bench.passTo("12:02:10");
  bench.ends(second, 143, "12:01:40");
  await bench.reconcileUntilStable();
  expect(bench.state.activeRun).toBe(next);
  bench.ledger.down = false;
  await bench.pass(60_000);
  await bench.reconcileUntilStable();
  expect(bench.ledger.rows.get(name)).toMatchObject({ status: "succeeded", billed_minutes: 1 });
});
