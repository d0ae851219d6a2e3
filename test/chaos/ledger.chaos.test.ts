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
  environment.kill.onLedgerCut = false;
});
afterAll(() => environment?.stop());

const downMs = isLong ? 300_000 : 20_000;
const timeout = downMs + 420_000;

// Shows: docs/jobs.md#billing: a ledger that is unavailable delays charges, and misses no occurrence
test("an unavailable ledger loses no run and misses no occurrence", { timeout }, async () => {
  const { ledgerProxy, observer } = environment;
  // A schedule that takes effect right before a minute may get its CronJob after it, and misses that occurrence.
  const intoMinute = Date.now() % 60_000;
  if (intoMinute > 30_000) {
    await sleep(61_000 - intoMinute);
  }
  const projects = await environment.jobs("unavailable", [{ run: 1 }, { run: 2, exit: 1 }, { run: 4 }]);
  // Over a full minute, so that occurrences are due while it is unavailable.
  await sleep(60_000 - (Date.now() % 60_000) - 5_000);
  await ledgerProxy.down();
  await sleep(downMs);
  // The slots are free although nothing is charged.
  const during = await waitFor("the slots to be free after a run of each", 120_000, async () => {
    const records = await observer.records(projects);
    const ended = new Set(records.pods.filter(({ finishedAt }) => finishedAt).map(({ project }) => project));
    return ended.size === projects.length && records.projects.every(({ activeRun }) => !activeRun) && records;
  });
  expect(during.runs).toEqual([]);
  await ledgerProxy.up();
  await waitFor("charges", 60_000, async () => (await observer.records(projects)).runs.length > 0);
  expectNoViolations(await environment.closeAndCheck(projects));
  const after = await observer.records(projects);
  expect(after.projects.map(({ missed }) => missed)).toEqual(projects.map(() => 0));
  expect(after.runs.length).toBe(after.pods.length);
});

test("a commit that was done and not answered charges once", { timeout }, async () => {
  const { ledgerProxy, observer } = environment;
  const projects = await environment.jobs("lost", [{ run: 1 }, { run: 2 }, { run: 3 }]);
  const rounds = isLong ? 30 : 3;
  for (let round = 0; round < rounds; round += 1) {
    ledgerProxy.faults.push("committed");
    const injected = ledgerProxy.injected.length;
    await Promise.all([
      keepRequesting(environment, projects, 6_000),
      waitFor("a fault at a commit", 120_000, async () => ledgerProxy.injected.length > injected),
    ]);
  }
  expectNoViolations(await environment.closeAndCheck(projects));
  expect(ledgerProxy.injected.length).toBeGreaterThanOrEqual(rounds);
  expect((await observer.records(projects)).runs.length).toBeGreaterThanOrEqual(rounds);
});

test("a ledger that stops answering delays no run for ever", { timeout }, async () => {
  const { ledgerProxy, observer } = environment;
  const projects = await environment.jobs("silent", [{ run: 1 }, { run: 2 }]);
  await keepRequesting(environment, projects, 4_000);
  ledgerProxy.stall(true);
  await keepRequesting(environment, projects, 8_000);
  ledgerProxy.stall(false);
  const charged = async () => (await observer.records(projects)).runs.length;
  await requestUntil(
    environment,
    projects,
    "more than a run of each",
    async () => (await charged()) > projects.length,
  );
  expectNoViolations(await environment.closeAndCheck(projects));
});
