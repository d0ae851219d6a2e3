import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startClickHouse, type TestClickHouse } from "../../../../test/kit/servers/clickhouse.ts";
import type { InstanceSample } from "../instance-sample.ts";
import { ALERTS_READ_LIMIT, projectRequests, projectUsage } from "./alerts.ts";
import { insertEvents } from "./insert.ts";
import { type HistoryPoint, metricHistory, sampledInstances } from "./metric-history.ts";
import { insertSamples } from "./metrics.ts";
import { migrate } from "./migrate.ts";
import { rowsOf } from "./rows.ts";
import { openStore, type Store } from "./store.ts";

/** Samples whose counters are known, in a real store. */

/** The engine takes a while to come up on a busy machine, and longer when its image has to be made. */
const START_MS = 900_000;
/** A whole hour, so that steps begin at it. */
const BASE = Math.floor(Date.now() / 3_600_000) * 3_600 - 7_200;

let server: TestClickHouse;
let store: Store;
/** Rows after the same batch came twice. */
let ofOneBatch = 0;
beforeAll(async () => {
  server = await startClickHouse();
  const { url, username, passwordFile } = server;
  store = openStore({
    ...{ url, username, passwordFile, database: "slipway", caFile: undefined },
    cluster: undefined,
  });
  await migrate(store);
  // Histories are read of rows as they were inserted, each twice.
  await store.client.command({ query: `SYSTEM STOP MERGES ${store.database}.metrics` });
  await insertSamples(store, { id: "known", events: known() });
  // The same batch once more.
  await insertSamples(store, { id: "known", events: known() });
  ofOneBatch = await rowCount();
  // The same samples in another one.
  await insertSamples(store, { id: "again", events: known() });
}, START_MS);
afterAll(async () => {
  await store?.client.close();
  await server?.stop();
});

const about = { organization: "acme", project: "pshop" };

function sample(instance: string, at: number, change: Partial<InstanceSample> = {}): InstanceSample {
  return {
    ...{
      ...about,
      instance,
      pod: `uid-${instance}`,
      at: (BASE + at) * 1000,
      bootedAt: (BASE - 90_000) * 1000,
    },
    ...{ startedAt: (BASE - 1_000) * 1000, cpuMicroseconds: null, memoryBytes: null },
    ...{ networkAt: null, receivedBytes: null, transmittedBytes: null, restarts: 0 },
    ...{ volumeUsedBytes: null, volumeCapacityBytes: null },
    ...change,
  };
}

const seconds = (count: number): number => count * 1_000_000;
const started = (at: number) => ({ startedAt: (BASE + at) * 1000 });
const network = (at: number, received: number, transmitted: number) => ({
  ...{ networkAt: (BASE + at) * 1000, receivedBytes: received, transmittedBytes: transmitted },
});

/** Half a core, and a hundred bytes each way a second, when `at` seconds have passed. */
const counted = (passed: number, at = passed) => ({
  cpuMicroseconds: seconds(1_000 + passed / 2),
  ...network(at, 1_000_000 + passed * 100, 1_000_000 + passed * 100),
});
/** The clock of a node, set by so many seconds. */
const clockOf = (by: number) => ({ bootedAt: (BASE - 90_000 + by) * 1000 });

const known = (): InstanceSample[] => [
  // Half a core from before the window on.
  ...[-30, 0, 30, 60].map((at) =>
    sample("steady", at, {
      cpuMicroseconds: seconds(1_000 + at / 2),
      memoryBytes: 1_000 + at,
      ...network(at + 2, 50_000 + 100 * at, 90_000 + 200 * at),
      ...{ volumeUsedBytes: 5, volumeCapacityBytes: 10 },
    }),
  ),
  // The container starts again: CPU counts from zero, the network of the pod goes on.
  sample("steady", 90, {
    ...{ ...started(75), cpuMicroseconds: seconds(3), restarts: 1 },
    ...network(92, 59_000, 108_000),
  }),
  // The network begins again: what it had before is not known.
  sample("steady", 120, {
    ...{ ...started(75), cpuMicroseconds: seconds(33), restarts: 1 },
    ...network(122, 3, 3),
  }),
  // No sample for ten minutes.
  sample("steady", 720, {
    ...{ ...started(75), cpuMicroseconds: seconds(63), restarts: 1 },
    ...network(722, 90, 90),
  }),
  // A pod, and another one of the same name.
  sample("data-0", 40, { pod: "first", ...started(10), cpuMicroseconds: seconds(15) }),
  sample("data-0", 70, { pod: "first", startedAt: null, restarts: 3 }),
  sample("data-0", 130, { pod: "second", ...started(100), cpuMicroseconds: seconds(30) }),
  // A row without CPU, and one without network, between those that have them.
  sample("mixed", 0, { cpuMicroseconds: seconds(10), ...network(0, 100, 100) }),
  sample("mixed", 20, { ...network(20, 300, 300), restarts: 1 }),
  sample("mixed", 30, { cpuMicroseconds: seconds(25) }),
  sample("mixed", 40, network(40, 700, 700)),
  // The clock was set back by ten minutes: what came before and after it lies in the same minutes.
  ...Array.from({ length: 20 }, (_, index) => [
    sample("back", index * 30, { ...counted(index * 30), ...clockOf(0) }),
    sample("back", index * 30 + 7, { ...counted(index * 30 + 607, index * 30 + 7), ...clockOf(-600) }),
  ]).flat(),
  // And forward, by two minutes.
  sample("forth", 0, { ...counted(0), ...clockOf(0) }),
  sample("forth", 150, { ...counted(30, 150), ...clockOf(120) }),
  sample("forth", 180, { ...counted(60, 180), ...clockOf(120) }),
  // A counter that is lower without a start.
  sample("odd", 0, { cpuMicroseconds: seconds(500) }),
  sample("odd", 30, { cpuMicroseconds: seconds(400) }),
  // Others'.
  sample("others", 0, { project: "pother", cpuMicroseconds: seconds(1) }),
  sample("others", 0, { organization: "globex", cpuMicroseconds: seconds(1) }),
];

const nothing = {
  ...{ cpuCores: null, memoryBytes: null, receivedBytesPerSecond: null, transmittedBytesPerSecond: null },
  ...{ restarts: 0, volumeUsedBytes: null, volumeCapacityBytes: null },
};

async function history(instance: string): Promise<(Partial<HistoryPoint> & { at: number })[]> {
  const window = { from: BASE, to: BASE + 900, stepSeconds: 60 };
  const [found] = await metricHistory(store, { ...about, ...window, instances: [instance] });
  return found?.points.map((point) => ({ ...point, at: point.at - BASE })) ?? [];
}

describe("the history of an instance", () => {
  // Shows: docs/metrics.md#what-is-promised: counters go on over restarts, and what is not known is a gap
  it("has rates of counters over restarts, and gaps where nothing is known", async () => {
    const volume = { volumeUsedBytes: 5, volumeCapacityBytes: 10 };
    const rates = { receivedBytesPerSecond: 100, transmittedBytesPerSecond: 200 };
    expect(await history("steady")).toEqual([
      { at: 0, cpuCores: 0.5, memoryBytes: 1_030, ...rates, restarts: 0, ...volume },
      { at: 60, cpuCores: 0.3, memoryBytes: 1_060, ...rates, restarts: 1, ...volume },
      { ...nothing, at: 120, cpuCores: 1, restarts: 1 },
      { ...nothing, at: 720, restarts: 1 },
    ]);
  });

  it("is that of all pods of its name", async () => {
    expect(await history("data-0")).toEqual([
      { ...nothing, at: 0, cpuCores: 0.5 },
      { ...nothing, at: 60, restarts: 3 },
      { ...nothing, at: 120, cpuCores: 1 },
    ]);
  });

  it("has rates between readings of a counter, whatever rows without it lie between them", async () => {
    const rates = { receivedBytesPerSecond: 15, transmittedBytesPerSecond: 15 };
    expect(await history("mixed")).toEqual([{ ...nothing, at: 0, cpuCores: 0.5, ...rates, restarts: 1 }]);
  });

  it("has no rate over a clock that was set, in either direction", async () => {
    const back = await history("back");
    expect(back).toHaveLength(10);
    const used = [...back, ...(await history("forth"))].flatMap((point) => [
      (point.cpuCores ?? 0.5) * 200,
      point.receivedBytesPerSecond ?? 100,
    ]);
    expect(new Set(used)).toEqual(new Set([100]));
    expect(await history("forth")).toMatchObject([
      { at: 0, cpuCores: null },
      { at: 120, cpuCores: null, receivedBytesPerSecond: null },
      { at: 180, cpuCores: 0.5, receivedBytesPerSecond: 100 },
    ]);
  });

  it("has no use where a counter is lower without a start", async () => {
    expect(await history("odd")).toEqual([{ ...nothing, at: 0 }]);
  });

  it("is that of its own project, and names are values", async () => {
    expect(await history("others")).toEqual([]);
    expect(await history("' OR 1=1 --")).toEqual([]);
  });
});

// Shows: docs/metrics.md#what-is-promised: no sample counts twice
it("stores a batch that comes again once, and reads a sample that is in two batches as one", async () => {
  expect(ofOneBatch).toBe(known().length);
  expect(await rowCount()).toBe(2 * known().length);
  expect(await rowCount("FINAL")).toBe(known().length);
});

async function rowCount(final = ""): Promise<number> {
  const query = `SELECT count() AS n FROM ${store.database}.metrics ${final}`;
  const { rows } = await rowsOf<{ n: number }>(store, { query, parameters: {} });
  return rows[0]?.n ?? 0;
}

it("names the instances with samples in a window, the newest first, and how many there are", async () => {
  const window = { from: BASE, to: BASE + 900 };
  const all = { instances: ["steady", "back", "forth", "data-0", "mixed", "odd"], total: 6 };
  expect(await sampledInstances(store, { ...about, ...window }, 10)).toEqual(all);
  expect(await sampledInstances(store, { ...about, ...window }, 1)).toEqual({
    ...all,
    instances: ["steady"],
  });
  expect(await sampledInstances(store, { ...about, from: BASE - 900, to: BASE - 60 }, 10)).toEqual({
    instances: [],
    total: 0,
  });
});

// Shows: docs/alerts.md#metrics: `cpu`, `memory`
// Shows: docs/alerts.md#metrics: `volume`
it("reads what the instances that use most of many projects used, in one query", async () => {
  const watched = [
    sample("first", 0, { project: "palert", cpuMicroseconds: seconds(100), memoryBytes: 100 }),
    sample("first", 30, { project: "palert", cpuMicroseconds: seconds(115), memoryBytes: 900 }),
    sample("second", 0, { project: "palert", cpuMicroseconds: seconds(100), memoryBytes: 500 }),
    sample("second", 30, {
      ...{ project: "palert", cpuMicroseconds: seconds(103), memoryBytes: 500 },
      ...{ volumeUsedBytes: 9, volumeCapacityBytes: 10 },
    }),
    // Less in the same step.
    sample("first", 45, { project: "palert", memoryBytes: 300 }),
    sample("second", 45, { project: "palert", volumeUsedBytes: 1, volumeCapacityBytes: 10 }),
    // Of which nothing is requested.
    sample("third", 30, { project: "punwatched", memoryBytes: 10_000 }),
  ];
  await insertSamples(store, { id: "alerts", events: watched });
  const projects = [
    { organization: "acme", project: "palert" },
    { organization: "acme", project: "pnothing" },
    { organization: "globex", project: "pshop" },
  ];
  const usage = await projectUsage(store, { projects, from: BASE, to: BASE + 60 }, 30);
  expect(usage.filter(({ project }) => project !== "pshop")).toEqual([
    {
      organization: "acme",
      project: "palert",
      points: [
        {
          ...{ at: BASE, cpuCores: null, memoryBytes: 500, leastMemoryBytes: 500 },
          ...{ volumePercent: null, leastVolumePercent: null },
        },
        {
          ...{ at: BASE + 30, cpuCores: 0.5, memoryBytes: 900, leastMemoryBytes: 500 },
          ...{ volumePercent: 90, leastVolumePercent: 10 },
        },
      ],
    },
  ]);
});

it("reads requests and those that failed of many projects, by minute", async () => {
  const request = (at: number, status: number, project = "palert") => ({
    ...{ ...about, project, at: (BASE + at) * 1_000, status, method: "GET" as const, route: "/", path: "/" },
    ...{ userAgent: "", sourceIp: "192.0.2.1", bytesReceived: 0, bytesSent: 0, latencyUs: 1 },
  });
  const events = [
    request(0, 200),
    request(59, 500),
    request(60, 503),
    request(61, 404),
    request(61, 500, "pother"),
  ];
  await insertEvents(store, { id: "alerts", events });
  const projects = [{ organization: "acme", project: "palert" }];
  expect(await projectRequests(store, { projects, from: BASE, to: BASE + 120 })).toEqual([
    {
      ...projects[0],
      minutes: [
        { at: BASE, requests: 2, errors: 1 },
        { at: BASE + 60, requests: 2, errors: 1 },
      ],
    },
  ]);
});

// Shows: docs/alerts.md#bounds: A query reads 20 million rows and 4 GB of the store at most
it("reads no more for alerts than a query may, and says that it was too much", async () => {
  const projects = [{ organization: "acme", project: "pshop" }];
  const selection = { projects, from: BASE, to: BASE + 120 };
  const most = ALERTS_READ_LIMIT;
  for (const read of [
    { ...most, rows: 1 },
    { ...most, bytes: 10 },
  ]) {
    await expect(projectUsage(store, selection, 30, { read })).rejects.toMatchObject({ busy: true });
  }
  const requested = { ...selection, projects: [{ organization: "acme", project: "palert" }] };
  await expect(projectRequests(store, requested, { read: { ...most, rows: 1 } })).rejects.toMatchObject({
    busy: true,
  });
  expect(await projectUsage(store, selection, 30)).toHaveLength(1);
});

it("counts whole granules of what lies between the projects, in each part, which the limit leaves room for", async () => {
  const [parts, projectsOfPart, rowsOfProject] = [3, 100, 300];
  for (let part = 0; part < parts; part += 1) {
    await store.client.command({
      query: `INSERT INTO ${store.database}.metrics (organization, project, instance, pod, at, booted_at, memory_bytes)
        SELECT 'crowd', concat('p', leftPad(toString(number % ${projectsOfPart}), 3, '0')), 'i${part}', 'pod',
          toDateTime(${BASE} + intDiv(number, ${projectsOfPart}), 'UTC'), toDateTime(${BASE - 90_000}, 'UTC'), 1
        FROM numbers(${projectsOfPart * rowsOfProject})`,
    });
  }
  const projects = ["p010", "p040", "p070"].map((project) => ({ organization: "crowd", project }));
  const selection = { projects, from: BASE, to: BASE + rowsOfProject };
  const own = parts * projects.length * rowsOfProject;
  const read = { ...ALERTS_READ_LIMIT, rows: 5 * own };
  await expect(projectUsage(store, selection, 60, { read })).rejects.toMatchObject({ busy: true });
  const usage = await projectUsage(store, selection, 60);
  expect(usage.map(({ project }) => project).sort()).toEqual(["p010", "p040", "p070"]);
});
