import { setTimeout as sleep } from "node:timers/promises";
import { openStore, readRows, type Store, searchLogs } from "@slipway/analytics";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { FakeContainerLog } from "../../test/kit/analytics/fake-kubelet.ts";
import { TestCollector } from "../../test/kit/analytics/test-collector.ts";
import { isLong } from "../../test/kit/long.ts";
import { eventually } from "../../test/kit/processes/eventually.ts";
import { startClickHouse, type TestClickHouse } from "../../test/kit/servers/clickhouse.ts";

/** From the files of a node into a real store, by a process that is killed. */

const many = isLong ? 1_000_000 : 100_000;
const kills = isLong ? 40 : 8;
/** The engine takes a while to come up on a busy machine, and longer when its image has to be made. */
const START_MS = 900_000;

let server: TestClickHouse;
let store: Store;
let collector: TestCollector;

beforeAll(async () => {
  server = await startClickHouse();
}, START_MS);
afterAll(() => server?.stop());

beforeEach(async () => {
  collector = await TestCollector.open();
});
afterEach(async () => {
  await collector.close();
  await store?.client.close();
});

function start(database: string, more: Record<string, string> = {}): void {
  const { url, username, passwordFile } = server;
  collector.start({
    SLIPWAY_ANALYTICS_URL: url,
    SLIPWAY_ANALYTICS_USERNAME: username,
    SLIPWAY_ANALYTICS_PASSWORD_FILE: passwordFile,
    SLIPWAY_ANALYTICS_DATABASE: database,
    SLIPWAY_COLLECTOR_LOGS: "true",
    SLIPWAY_NODE_NAME: "node-1",
    ...more,
  });
}

function connect(database: string): void {
  const { url, username, passwordFile } = server;
  store = openStore({ url, username, passwordFile, database, caFile: undefined, cluster: undefined });
}

const unbounded = Object.fromEntries(
  [
    "PROJECT_LINES",
    "PROJECT_BYTES",
    "ORGANIZATION_LINES",
    "ORGANIZATION_BYTES",
    "ORGANIZATION_DAY_BYTES",
  ].map((name) => [`SLIPWAY_COLLECTOR_LOG_${name}`, "1000000000"]),
);

const second = () => new Date().toISOString().slice(0, 19);

async function logOf(project: string, pod: string, type = "http", kept = 1_000): Promise<FakeContainerLog> {
  const folder = await collector.addPod(project, pod, type);
  const log = new FakeContainerLog(collector.podLogs, folder, type === "http" ? "app" : "database", kept);
  log.second = second();
  await log.start();
  return log;
}

const select = async <Row>(columns: string, where = "1") =>
  (
    await readRows<Row>(store, {
      query: `SELECT ${columns} FROM ${store.database}.logs WHERE ${where}`,
      parameters: {},
    })
  ).rows;

const count = async () => (await select<{ n: number }>("count() AS n").catch(() => []))[0]?.n ?? 0;

/** What a search has to be about. */
const about = (project: string) => ({
  organization: "o1",
  project,
  window: { from: Date.now() - 86_400_000, to: Date.now() + 86_400_000 },
});

// Shows: docs/logs.md#over-v1: no line is lost and none is kept twice
test(`${many} lines over a collector that is killed at random, with rotation, are each in the store once`, async () => {
  connect("kills");
  const log = await logOf("p1", "p1-abc-x1");
  let written = 0;
  let isDone = false;
  const writing = (async () => {
    for (let round = 0; written < many; round += 1) {
      log.second = second();
      const first = written + 1;
      const size = Math.min(500, many - written);
      const lines = Array.from({ length: size }, (_, index) =>
        JSON.stringify({ level: "info", n: first + index, pad: "x".repeat((first + index) % 120) }),
      );
      written += size;
      await log.write(lines, round % 3 === 0 ? "stderr" : "stdout");
      if (round % 10 === 9) {
        await log.rotate();
      }
      await sleep(isLong ? 40 : 20);
    }
    isDone = true;
  })();
  let rounds = 0;
  for (; rounds < kills || !isDone; rounds += 1) {
    start("kills", unbounded);
    await eventually("the collector reads", () => collector.isReady(), 120_000);
    await sleep(Math.random() * 2_500);
    await collector.kill("SIGKILL");
  }
  await writing;
  start("kills", unbounded);
  await eventually("all are in the store", async () => (await count()) >= many, 600_000);
  await eventually(
    "nothing waits",
    async () => (await collector.figure("slipway_collector_logs_buffered_batches")) === 0,
    60_000,
  );
  // What it would send twice, it would send now.
  await collector.kill("SIGTERM");
  const number = "toUInt64OrZero(JSONExtractRaw(text, 'n'))";
  const [row] = await select<Record<string, number>>(
    `count() AS n, uniqExact(${number}) AS different, min(${number}) AS first, max(${number}) AS last,
      sum(omitted_lines) AS omitted, sum(lost_files) AS lost, countIf(level != 'info') AS others`,
  );
  expect(row, collector.log).toEqual({
    ...{ n: many, different: many, first: 1, last: many },
    ...{ omitted: 0, lost: 0, others: 0 },
  });
  console.log(`${many} lines, killed ${rounds} times: each once`);
}, 3_600_000);

// Shows: docs/logs.md#over-v1: what an instance wrote is found after it is gone
test("what a pod wrote is found once the pod is gone, also by a process that has never seen the pod; long lines in pieces", async () => {
  connect("gone");
  start("gone");
  const log = await logOf("p2", "p2-abc-x1");
  const database = await logOf("db", "db-0", "postgresql");
  const job = await logOf("job", "job-1", "job");
  await job.write(["of a run"]);
  await log.write(["first"]);
  await log.write(["ERROR: second"], "stderr");
  await database.write(["2026-11-29 04:42:09.123 UTC [12] FATAL:  password authentication failed"]);
  await eventually("they are found", async () => (await count()) === 3, 120_000);
  // The pod is deleted while no collector runs; the kubelet has not removed its files yet.
  await collector.kill("SIGKILL");
  await log.write(["third"]);
  await log.writePieces(`${"a".repeat(100)}${"b".repeat(100)}`, 100);
  await collector.deletePod("p2-abc-x1");
  start("gone");
  await eventually("the rest is found", async () => (await count()) === 6, 120_000);
  await log.remove();
  const found = await searchLogs(store, { ...about("p2"), order: "oldest", limit: 10 });
  expect(found.map(({ text, level, stream, continues }) => [text, level, stream, continues])).toEqual([
    ["first", null, "stdout", false],
    ["ERROR: second", "error", "stderr", false],
    ["third", null, "stdout", false],
    ["a".repeat(100), null, "stdout", true],
    ["b".repeat(100), null, "stdout", false],
  ]);
  expect(await searchLogs(store, { ...about("db"), order: "newest", limit: 10 })).toMatchObject([
    { level: "fatal", instance: "db-0", container: "database" },
  ]);
}, 300_000);
