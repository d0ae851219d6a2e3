import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { waitFor } from "../../hack/lib/wait.ts";
import { isLong } from "../kit/long.ts";
import { keepRequesting, requestUntil } from "./support/drive.ts";
import { type ChaosEnvironment, startEnvironment } from "./support/environment.ts";
import { expectNoViolations } from "./support/observation-log.ts";

let environment: ChaosEnvironment;
beforeAll(async () => {
  environment = await startEnvironment();
});
afterAll(() => environment?.stop());

/** In the long form each fault lasts several minutes of schedule. */
const scale = isLong ? 8 : 1;
const scripts = [{ run: 1 }, { run: 2, exit: 1 }, { run: 3 }, { run: 5, grace: 2 }, { run: 9 }];

/** Runs projects, by their schedules and by hand, during a fault; there must be no violation afterwards. */
async function survives(name: string, fault: () => Promise<void>): Promise<void> {
  const projects = await environment.jobs(name, scripts);
  await Promise.all([keepRequesting(environment, projects, 6_000), sleep(3_000)]);
  const runs = async () => (await environment.observer.records(projects)).runs.length;
  const requests = keepRequesting(environment, projects, 12_000 * scale);
  await Promise.all([requests, fault()]);
  const before = await runs();
  // Runs must continue after it.
  await requestUntil(environment, projects, "more runs after the fault", async () => (await runs()) > before);
  expectNoViolations(await environment.closeAndCheck(projects));
}

const timeout = isLong ? 900_000 : 420_000;

test("the apiserver is killed and comes back", { timeout }, () =>
  survives("restart", async () => {
    const { platform, proxy, observer } = environment;
    for (let round = 0; round < scale; round += 1) {
      // A Job's controller that has lost the answer for its pod makes another: Kubernetes promises no more, and nothing here is
      // about that.
      await waitFor(
        "all Jobs to have their pods",
        60_000,
        async () => observer.withoutPods().length === 0,
        5,
      );
      await platform.cluster.kill();
      // The operator is reconnected last: a pod whose finalizer the operator removes can no longer report its end to others.
      proxy.refuse(true);
      await sleep(3_000);
      await platform.cluster.restart();
      await observer.relist();
      proxy.refuse(false);
      await sleep(2_000);
    }
  }),
);

test("watches are cut, and cannot be opened for a while", { timeout }, () =>
  survives("cut", async () => {
    for (let round = 0; round < scale; round += 1) {
      environment.proxy.cutWatches();
      await sleep(2_000);
      environment.proxy.refuseWatches(true);
      environment.proxy.cutWatches();
      await sleep(6_000);
      environment.proxy.refuseWatches(false);
    }
  }),
);

test("an operator that starts again reads stale lists first", { timeout }, () =>
  survives("stale", async () => {
    for (let round = 0; round < scale; round += 1) {
      await environment.operator.kill();
      environment.proxy.repeatLists();
      environment.proxy.pauseWatches(true);
      const { repeated } = environment.proxy;
      environment.operator.start();
      await waitFor(
        "the operator to receive a stale list",
        60_000,
        async () => environment.proxy.repeated > repeated,
      );
      await sleep(5_000);
      environment.proxy.pauseWatches(false);
    }
  }),
);

// Shows: docs/jobs.md#two-operators-and-kubectl: a leader that was stopped and wakes up does no harm
test("the leader is frozen for 30 s, and another leads when it wakes", { timeout }, async () => {
  const { operator, proxy } = environment;
  const other = environment.addOperator();
  operator.restarts = false;
  await survives("frozen", async () => {
    await sleep(3_000);
    operator.freeze();
    await sleep(30_000);
    // Its pending requests are answered now, and it continues with its stale decision.
    operator.thaw();
    await sleep(5_000);
  });
  expect(other.isRunning).toBe(true);
  // A process that lost its Lease ends; its pod would start it again.
  await expect.poll(() => operator.isRunning).toBe(false);
  expect([...proxy.committed.keys()].filter((kind) => kind.startsWith("unknown"))).toEqual([]);
});
