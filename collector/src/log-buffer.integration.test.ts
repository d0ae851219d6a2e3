import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeContainerLog } from "../../test/kit/analytics/fake-kubelet.ts";
import { FakeStore } from "../../test/kit/analytics/fake-store.ts";
import { TestCollector, traefikLine } from "../../test/kit/analytics/test-collector.ts";
import { eventually } from "../../test/kit/processes/eventually.ts";

/** The buffer of projects' logs, over restarts of a collector whose settings change. */

let collector: TestCollector;
let store: FakeStore;

beforeEach(async () => {
  collector = await TestCollector.open();
  store = await FakeStore.start();
});
afterEach(async () => {
  await collector.close();
  await store.stop();
});

const start = (env: Record<string, string> = {}) =>
  collector.start({
    SLIPWAY_ANALYTICS_URL: store.url,
    SLIPWAY_COLLECTOR_LOGS: "true",
    SLIPWAY_NODE_NAME: "node-1",
    ...env,
  });

async function logOf(pod: string): Promise<FakeContainerLog> {
  const log = new FakeContainerLog(collector.podLogs, await collector.addPod("p1", pod), "app");
  await log.start();
  return log;
}

/** Columns of the lines of logs that the store has, of which it has more than of requests. */
const lines = (): unknown[][] =>
  store.rows.map((row) => JSON.parse(row) as unknown[]).filter((columns) => columns.length > 12);
/** NaN also until the process answers. */
const figure = (name: string) => collector.figure(`slipway_collector_${name}`).catch(() => Number.NaN);
const untilEmpty = () =>
  eventually("nothing waits", async () => (await figure("logs_buffered_batches")) === 0, 60_000);

test("a batch that is sent again after the plans' days have changed is the same batch", async () => {
  const log = await logOf("p1-abc-x1");
  await log.write(["one", "two"]);
  store.mood = () => "silent";
  start({ SLIPWAY_COLLECTOR_LOG_DAYS: "8" });
  await eventually("the store has taken it in, and has not answered", () => store.inserts > 0, 90_000);
  await collector.kill("SIGKILL");
  store.mood = () => "well";
  const before = store.inserts;
  start({ SLIPWAY_COLLECTOR_LOG_DAYS: "30" });
  await eventually("it is sent again", () => store.inserts > before, 90_000);
  await untilEmpty();
  expect(store.changed).toEqual([]);
  // With the days, and that log drains have it.
  expect(lines().map((columns) => [columns[7], ...columns.slice(-2)])).toEqual([
    ["one", 8, true],
    ["two", 8, true],
  ]);
}, 240_000);

test("a batch is one insert, whatever the lines are made of: it is cut nowhere that another release might cut it differently", async () => {
  const log = await logOf("p1-abc-x1");
  const count = 600;
  await log.write(Array.from({ length: count }, () => "\u0001".repeat(10_000)));
  start({
    SLIPWAY_COLLECTOR_LOG_PROJECT_BYTES: "1000000000",
    SLIPWAY_COLLECTOR_LOG_ORGANIZATION_BYTES: "1000000000",
  });
  await eventually("all lines are in the store", () => store.rows.length >= count, 120_000);
  expect(store.batches.size).toBeGreaterThan(1);
  expect([...store.batches.keys()].filter((token) => token.includes("#"))).toEqual([]);
}, 240_000);

test("what waits of logs is sent also once no more of them are kept, and nothing is read any more", async () => {
  const log = await logOf("p1-abc-x1");
  await log.write(["one", "two"]);
  store.mood = () => "away";
  start();
  await eventually("they wait", async () => (await figure("logs_buffered_batches")) > 0, 90_000);
  await collector.kill("SIGTERM");
  await log.write(["three"]);
  store.mood = () => "well";
  start({ SLIPWAY_COLLECTOR_LOGS: "false" });
  await eventually("they are in the store", () => lines().length >= 2, 90_000);
  await untilEmpty();
  expect(lines().map((columns) => columns[7])).toEqual(["one", "two"]);
  // Nothing waits now: there is no such pipeline any more.
  await collector.kill("SIGTERM");
  start({ SLIPWAY_COLLECTOR_LOGS: "false" });
  await eventually("it reads requests", () => collector.isReady(), 90_000);
  expect(await figure("buffered_batches")).toBe(0);
  expect(await figure("logs_buffered_batches")).toBeNaN();
}, 240_000);

// Shows: docs/logs.md#over-v1: a buffer of logs that cannot be opened stops no requests
test("a buffer of logs that cannot be opened is tried again, and requests are counted meanwhile", async () => {
  const log = await logOf("p1-abc-x1");
  await log.write(["one"]);
  const folder = join(collector.stateFolder, "logs");
  await mkdir(collector.stateFolder);
  await writeFile(folder, "a file in the place of the folder");
  start();
  const failures = () => figure('logs_failures_total{step="write"}');
  await eventually("it fails twice", async () => (await failures()) >= 2, 90_000);
  const requests = new FakeContainerLog(collector.podLogs, "slipway-ingress_traefik-1_uid");
  await requests.start();
  await requests.write([traefikLine(1)]);
  await eventually("a request is counted", () => store.rows.length === 1, 60_000);
  expect(lines()).toEqual([]);
  await rm(folder);
  await eventually("the line is kept", () => lines().length === 1, 60_000);
  await untilEmpty();
}, 240_000);
