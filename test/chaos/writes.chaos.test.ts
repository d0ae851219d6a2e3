import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { recordFigures } from "../../hack/testing/figures.ts";
import { isLong } from "../kit/long.ts";
import { NOT_NOW, projectResource } from "../kit/processes/job-platform.ts";
import { type Moment, moments } from "./support/apiserver-proxy.ts";
import { ageCharged, cancelRunning, runNow, silence } from "./support/drive.ts";
import { type ChaosEnvironment, setClosed, startEnvironment } from "./support/environment.ts";
import { expectNoViolations } from "./support/observation-log.ts";
import { runWrites } from "./support/writes.ts";

let environment: ChaosEnvironment;
beforeAll(async () => {
  environment = await startEnvironment({
    SLIPWAY_JOB_RUN_LIMIT_SECONDS: "60",
    SLIPWAY_JOB_START_DEADLINE_SECONDS: "10",
  });
});
afterAll(() => environment?.stop());

/** How often the operator is killed at each moment of each write, in the long form. */
const ROUNDS = 5;
/** The short form has one moment of each write, another one for the next. */
const momentsOf = (index: number): readonly Moment[] =>
  isLong
    ? Array.from({ length: ROUNDS }, () => moments).flat()
    : [moments[index % moments.length] ?? "before"];
/** It ends once all faults are injected, which takes as long as so many starts of the operator, and enough runs are charged. */
const limitMs = 1_800_000;

// Shows: docs/jobs.md#billing: each run is charged once, whatever fails
// Shows: docs/jobs.md#two-operators-and-kubectl: killing the leader again and again loses no run, runs
// Shows: docs/jobs.md#two-operators-and-kubectl: every write of a run's life may be lost, or its answer
test("the operator is killed at every write in the life of a run: before, within or after it, with --long all three", {
  timeout: limitMs + 240_000,
}, async () => {
  const { proxy, ledgerProxy, platform, namespace } = environment;
  const kinds = Object.values(runWrites);
  proxy.faults.push(...kinds.flatMap((kind, index) => momentsOf(index).map((moment) => ({ kind, moment }))));
  ledgerProxy.faults.push(...(isLong ? momentsOf(0) : moments));
  const faults = proxy.faults.length + ledgerProxy.faults.length;
  const plain = await environment.jobs("plain", [
    { run: 2 },
    { run: 5, exit: 3 },
    { run: 8, oom: true },
    { run: 20 },
    { wait: 3, run: 2 },
    { wait: 6, run: 2 },
  ]);
  const special = await environment.jobs("special", [
    { run: 50 },
    { stuck: true },
    { run: 600, grace: 2 },
    { unstartable: true },
  ]);
  const [cancelled = ""] = await environment.jobs("cancelled", [{ run: 45 }]);
  // Its pod is observed before it runs, at whichever moment of that the operator is killed.
  const [manual = ""] = await environment.jobs("manual", [{ wait: 2, run: 4 }], NOT_NOW);
  const [closing = ""] = await environment.jobs("closing", [{}], NOT_NOW);
  const [refused = ""] = await environment.jobs("refused", [{ run: 1 }]);
  await platform.client.patch(
    projectResource,
    { namespace, name: refused },
    { spec: { envsFrom: [{ name: "absent" }] } },
  );
  const projects = [...plain, ...special, cancelled, manual, refused, closing];

  const start = performance.now();
  const end = start + limitMs;
  const charged = async () => (await environment.observer.records(projects)).runs.length;
  const isUnderWay = async () =>
    ledgerProxy.faults.length + proxy.faults.length > 0 || (await charged()) <= projects.length;
  for (let turn = 0; performance.now() < end && (await isUnderWay()); turn += 1) {
    // The second one is refused while the first runs.
    await runNow(environment, manual);
    await runNow(environment, manual);
    await cancelRunning(environment, cancelled);
    for (const project of [...plain, manual]) {
      await ageCharged(environment, project);
    }
    await setClosed(environment, closing, turn % 2 === 0);
    // One of the nodes: runs on those that were silent are not seen running again for a while.
    await silence(environment, "node-0", 2_000);
    await sleep(2_000);
  }
  const wrong = await environment.closeAndCheck(projects, { limitSeconds: 60 });
  const records = await environment.observer.records(projects);
  await recordFigures("chaos", "the operator killed between two writes", {
    "faults asked for": faults,
    kills: proxy.injected.length + ledgerProxy.injected.length,
    starts: environment.operator.starts,
    seconds: Math.round((performance.now() - start) / 1_000),
    "runs charged": records.runs.length,
    "occurrences missed": records.projects.reduce((sum, { missed }) => sum + missed, 0),
    violations: wrong.length,
  });
  expectNoViolations(wrong);
  expect(proxy.faults.map(({ kind, moment }) => `${moment} ${kind}`)).toEqual([]);
  expect(ledgerProxy.faults).toEqual([]);
  expect([...proxy.committed.keys()].filter((kind) => kind.startsWith("unknown"))).toEqual([]);
  expect(records.runs.length).toBeGreaterThan(projects.length);
});
