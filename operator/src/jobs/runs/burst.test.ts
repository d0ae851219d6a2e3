import { expect, test } from "vitest";
import { Bench } from "../../../../test/kit/operator/jobrun-bench.ts";
import { projectResource } from "../../resources.ts";
import { BURST_SIZE } from "./burst.ts";

/** Other jobs whose occurrence of 12:01 is due; their controller-manager is slow. */
function others(bench: Bench, count: number): void {
  for (let index = 0; index < count; index += 1) {
    const metadata = bench.ref(`other-${index}`);
    bench.api.create(projectResource, { metadata, spec: { type: "job", job: { cron: "* * * * *" } } });
    const status = {
      job: { schedule: "* * * * *", nextScheduledAt: "2026-03-01T12:01:00.000Z" },
      conditions: [{ type: "Accepted", status: "True" }],
    };
    bench.api.patch(projectResource, metadata, { status }, { subresource: "status" });
  }
}

/** A run of 12:01 that has ended while so many others wait to begin. */
async function ended(waiting: number): Promise<{ bench: Bench; name: string; pod: string }> {
  const bench = new Bench();
  others(bench, waiting);
  await bench.reconcileUntilStable();
  await bench.passTo("12:01:00");
  const { name, pod } = await bench.start("12:01:00");
  await bench.passTo("12:01:10");
  bench.ends(pod, 0, "12:01:00");
  await bench.reconcileUntilStable();
  return { bench, name, pod };
}

test("few occurrences are no burst: the leftovers of a run are deleted immediately", async () => {
  const { bench, name, pod } = await ended(BURST_SIZE - 1);
  expect(bench.condition(name, "Charged")).toBe("True/ChargeRecorded");
  expect(bench.job(name)).toBeUndefined();
  expect(bench.pod(pod)?.metadata.finalizers).toEqual([]);
});

test("in a burst a run is ended, charged, and releases its slot immediately; the rest waits until the burst is over", async () => {
  const { bench, name, pod } = await ended(BURST_SIZE);
  expect(bench.run(name)?.status?.phase).toBe("succeeded");
  expect([...bench.ledger.rows.keys()]).toEqual([name]);
  expect(bench.state.activeRun).toBeUndefined();
  expect(bench.condition(name, "Charged")).toBe("False/ChargePending");
  expect(bench.job(name)?.metadata.finalizers).toEqual(["slipway.dev/jobrun"]);
  const next = { status: { job: { nextScheduledAt: "2026-03-01T12:02:00.000Z" } } };
  bench.api.patch(projectResource, bench.ref("other-0"), next, { subresource: "status" });
  await bench.pass(5_000);
  await bench.reconcileUntilStable();
  expect(bench.condition(name, "Charged")).toBe("True/ChargeRecorded");
  expect(bench.job(name)).toBeUndefined();
  expect(bench.pod(pod)?.metadata.finalizers).toEqual([]);
});

test("a burst that does not end delays nothing for longer than a minute", async () => {
  const { bench, name } = await ended(BURST_SIZE);
  await bench.passTo("12:02:09");
  await bench.reconcileUntilStable();
  expect(bench.job(name)).toBeDefined();
  await bench.passTo("12:02:10");
  await bench.reconcileUntilStable();
  expect(bench.condition(name, "Charged")).toBe("True/ChargeRecorded");
  expect(bench.job(name)).toBeUndefined();
});

test("the deletion of a job waits for no burst", async () => {
  const { bench, name } = await ended(BURST_SIZE);
  bench.patchProject({ spec: { job: { closedAt: "2026-03-01T12:01:11Z" } } });
  await bench.reconcileUntilStable();
  expect(bench.condition(name, "Charged")).toBe("True/ChargeRecorded");
  expect(bench.job(name)).toBeUndefined();
});
