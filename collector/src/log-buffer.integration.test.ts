import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeContainerLog } from "../../test/kit/analytics/fake-kubelet.ts";
import { FakeStore } from "../../test/kit/analytics/fake-store.ts";
import { TestCollector } from "../../test/kit/analytics/test-collector.ts";
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

/** Columns of the lines of logs that the store has. */
const lines = (): unknown[][] => store.rows.map((row) => JSON.parse(row) as unknown[]);
const untilEmpty = () =>
  eventually(
    "nothing waits",
    async () => (await collector.figure("slipway_collector_logs_buffered_batches")) === 0,
    60_000,
  );

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
  expect(lines().map((columns) => [columns[7], columns.at(-1)])).toEqual([
    ["one", 8],
    ["two", 8],
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
