import { setTimeout as sleep } from "node:timers/promises";
import { openStore, readRows, rollups, type Store } from "@slipway/analytics";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { FakeContainerLog } from "../../test/kit/analytics/fake-kubelet.ts";
import { TestCollector, traefikLine } from "../../test/kit/analytics/test-collector.ts";
import { isLong } from "../../test/kit/long.ts";
import { eventually } from "../../test/kit/processes/eventually.ts";
import { startClickHouse, type TestClickHouse } from "../../test/kit/servers/clickhouse.ts";

/** The buffer on a real disk, with a real store that is away and comes back. */

/** An hour at 1,000 requests a second, in the long form. */
const hour = isLong ? 3_600_000 : 10_000;
/** The engine takes a while to come up on a busy machine, and longer when its image has to be made. */
const START_MS = 900_000;

let server: TestClickHouse;
let store: Store;
let collector: TestCollector;
let log: FakeContainerLog;
let written: number;
let env: Record<string, string>;

beforeAll(async () => {
  server = await startClickHouse();
}, START_MS);
afterAll(() => server?.stop());

beforeEach(async () => {
  collector = await TestCollector.open();
  written = 0;
});
afterEach(async () => {
  await store?.client.close();
  await collector.close();
});

/** @param kept files that the kubelet keeps of a container */
async function begin(database: string, kept: number, more: Record<string, string> = {}): Promise<void> {
  const { url, username, passwordFile } = server;
  store = openStore({ url, username, passwordFile, database, caFile: undefined, cluster: undefined });
  log = new FakeContainerLog(collector.podLogs, "slipway-ingress_traefik-1_uid", "traefik", kept);
  await log.start();
  env = {
    SLIPWAY_ANALYTICS_URL: url,
    SLIPWAY_ANALYTICS_USERNAME: username,
    SLIPWAY_ANALYTICS_PASSWORD_FILE: passwordFile,
    SLIPWAY_ANALYTICS_DATABASE: database,
    ...more,
  };
  await start();
}

async function start(): Promise<void> {
  collector.start(env);
  await eventually("the collector reads", () => collector.isReady(), 120_000);
}

async function write(count: number): Promise<void> {
  for (let left = count; left > 0; left -= 1_000) {
    const first = written + 1;
    written += Math.min(left, 1_000);
    await log.write(Array.from({ length: written - first + 1 }, (_, index) => traefikLine(first + index)));
  }
}

const figure = (name: string) => collector.figure(`slipway_collector_${name}`);
const isStopped = async () => (await figure("reading_stopped")) === 1;

/** Waits until a figure no longer changes, and gives it. */
async function settled(name: string): Promise<number> {
  for (let last = Number.NaN; ; ) {
    const now = await figure(name);
    if (now === last) {
      return now;
    }
    last = now;
    await sleep(1_500);
  }
}

/** Of all events of the store: how many, how many different ones, and which is the last. */
async function counted() {
  const query = `SELECT count() AS n, uniqExact(bytes_sent) AS different, max(bytes_sent) AS last,
    sum(bytes_sent) AS total FROM ${store.database}.events`;
  const { rows } = await readRows<Record<"n" | "different" | "last" | "total", number>>(store, {
    query,
    parameters: {},
  });
  return rows[0];
}

/** The same in the tables that views fill. */
async function countedByRollups(): Promise<number[]> {
  const asked = rollups.map(({ table }) => `SELECT sum(requests) AS n FROM ${store.database}.${table}`);
  const found = await Promise.all(
    asked.map((query) => readRows<{ n: number }>(store, { query, parameters: {} })),
  );
  return found.map(({ rows }) => rows[0]?.n ?? 0);
}

const untilRead = () =>
  eventually("what was written is read", async () => (await figure("lines_total")) >= written, 300_000);

const untilEmpty = (within: number) =>
  eventually("the buffer is empty", async () => (await figure("buffered_batches")) === 0, within);

/** Until so many requests are in batches, and all batches in the store. */
const untilSent = async (count: number) => {
  await eventually("all are in batches", async () => (await figure("events_total")) >= count, 60_000);
  await untilEmpty(60_000);
};

// Shows: docs/analytics.md#other-ingresses: an hour at 1,000 requests a second is kept on the disk (all
test(`${hour} requests wait on the disk while the store is unavailable, and are counted once when it is available again`, async () => {
  await begin("hour", 1_000);
  await server.crash();
  const began = performance.now();
  for (let round = 0; round < 10; round += 1) {
    await write(hour / 10);
    await untilRead();
    await log.rotate();
  }
  await eventually("all are on the disk", async () => (await figure("events_total")) === hour, 60_000);
  const bytes = await figure("buffered_bytes");
  const buffered = performance.now();
  // Nothing of it is in the process alone.
  await collector.kill("SIGKILL");
  await server.restart();
  const restarted = performance.now();
  await start();
  const ready = performance.now();
  await untilEmpty(1_200_000);
  const sent = performance.now();
  const seconds = (from: number, to: number) => `${((to - from) / 1000).toFixed(1)} s`;
  console.log(
    `${hour} requests: ${bytes} bytes on the disk, ${(bytes / hour).toFixed(1)} each; written, read and buffered in ` +
      `${seconds(began, buffered)}, found again by a new process in ${seconds(restarted, ready)}, in the store after ` +
      `${seconds(restarted, sent)}`,
  );
  expect(await counted()).toEqual({ n: hour, different: hour, last: hour, total: (hour * (hour + 1)) / 2 });
  expect(await countedByRollups()).toEqual(rollups.map(() => hour));
  expect(await figure("gaps_total")).toBe(0);
}, 2_400_000);

// Shows: docs/analytics.md#other-ingresses: a full buffer stops the reading; lost files are counted
test("a full buffer stops the reading, nothing is lost of what the kubelet keeps, and every file that it removes is counted", async () => {
  const most = 1_000_000;
  await begin("full", 3, { SLIPWAY_COLLECTOR_BUFFER_BYTES: String(most) });
  await server.crash();
  const fill = async () => {
    while (!(await isStopped())) {
      await write(2_000);
      await sleep(100);
    }
  };
  await fill();
  const read = await settled("lines_total");
  const bytes = await figure("buffered_bytes");
  expect(bytes).toBeGreaterThanOrEqual(most);
  expect(bytes).toBeLessThan(1.3 * most);
  expect(await figure("buffer_room_bytes")).toBe(0);
  // Others write on, and files are rotated as far as the kubelet keeps them: the collector is not where they are.
  for (let rotations = 0; rotations < 2; rotations += 1) {
    await log.rotate();
    await write(3_000);
  }
  expect(await settled("lines_total")).toBe(read);
  expect(await figure("buffered_bytes")).toBe(bytes);
  await server.restart();
  await untilSent(written);
  expect(await isStopped()).toBe(false);
  const all = { n: written, different: written, last: written, total: (written * (written + 1)) / 2 };
  expect(await counted()).toEqual(all);
  expect(await figure("gaps_total")).toBe(0);

  await server.crash();
  await fill();
  const lost: number[] = [];
  for (let rotations = 1; rotations <= 5; rotations += 1) {
    // The kubelet looks every ten seconds whether a file is to be rotated, the collector every second for new ones.
    await sleep(2_500);
    await log.rotate();
    const first = written + 1;
    await write(1_000);
    // The one that is being read is open, and two are kept beside the newest.
    if (rotations <= 2) {
      lost.push(...Array.from({ length: 1_000 }, (_, index) => first + index));
    }
  }
  await sleep(2_500);
  await server.restart();
  await untilSent(written - lost.length);
  expect(await figure("gaps_total")).toBe(2);
  const missing = lost.reduce((sum, number) => sum + number, 0);
  expect(await counted()).toEqual({
    n: written - lost.length,
    different: written - lost.length,
    last: written,
    total: (written * (written + 1)) / 2 - missing,
  });
  expect(collector.log).toContain("the buffer is full: no logs are read");
  expect(collector.log).toContain("files of a log were removed or damaged before they were read");
}, 300_000);
