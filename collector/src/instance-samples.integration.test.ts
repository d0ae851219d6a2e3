import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openStore, readRows, type Store } from "@slipway/analytics";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { ensureAuthority, ensureCertificate } from "../../hack/cluster/certificates.ts";
import { TestCollector } from "../../test/kit/analytics/test-collector.ts";
import { eventually } from "../../test/kit/processes/eventually.ts";
import { startClickHouse, type TestClickHouse } from "../../test/kit/servers/clickhouse.ts";

/** From a kubelet into a real store, by a process that is killed. */

/** The engine takes a while to come up on a busy machine, and longer when its image has to be made. */
const START_MS = 900_000;
const KILLS = 6;

let server: TestClickHouse;
let folder: string;
let authority: string;
let kubelet: Server;
let store: Store;
let collector: TestCollector;
/** Uids of the pods that the kubelet reports. */
let pods: string[] = [];
let requests: { url: string; token: string }[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "slipway-kubelet-"));
  const pair = await ensureAuthority(folder, "ca");
  authority = pair.cert;
  const serving = await ensureCertificate(folder, "kubelet", pair, {
    commonName: "system:node:node-1",
    altNames: ["IP:127.0.0.1"],
  });
  const [cert, key] = await Promise.all([readFile(serving.cert), readFile(serving.key)]);
  kubelet = createServer({ cert, key }, ({ url = "", headers }, response) => {
    requests.push({ url, token: headers.authorization ?? "" });
    response.end(summary());
  });
  await new Promise<void>((resolve) => kubelet.listen(0, "127.0.0.1", resolve));
  server = await startClickHouse();
}, START_MS);
afterAll(async () => {
  kubelet?.closeAllConnections();
  kubelet?.close();
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

beforeEach(async () => {
  [pods, requests] = [[], []];
  collector = await TestCollector.open();
});
afterEach(async () => {
  await collector.close();
  await store?.client.close();
});

/** Of the last answer, in milliseconds since the epoch. */
let measuredAt = 0;

/**
 * Half a core since the container's start. Each answer is measured a second after the last at least: what two processes read within one
 * second are two samples then, and a row that is there twice was stored twice.
 */
function summary(): string {
  const now = Math.max(Math.floor(Date.now() / 1000) * 1000, measuredAt + 1_000);
  measuredAt = now;
  const time = new Date(now).toISOString();
  const container = {
    ...{ name: "app", startTime: "2026-01-01T00:00:00Z" },
    cpu: { time, usageCoreNanoSeconds: (now - Date.parse("2026-01-01T00:00:00Z")) * 500_000 },
    memory: { time, workingSetBytes: 4_096 },
  };
  const network = { time, rxBytes: 1_000, txBytes: 2_000 };
  const reported = pods.map((uid) => ({ podRef: { uid }, containers: [container], network }));
  return JSON.stringify({ pods: [...reported, { podRef: { uid: "stranger" }, containers: [container] }] });
}

function start(database: string, more: Record<string, string> = {}): void {
  const { url, username, passwordFile } = server;
  collector.start({
    SLIPWAY_ANALYTICS_URL: url,
    SLIPWAY_ANALYTICS_USERNAME: username,
    SLIPWAY_ANALYTICS_PASSWORD_FILE: passwordFile,
    SLIPWAY_ANALYTICS_DATABASE: database,
    SLIPWAY_COLLECTOR_METRICS: "true",
    SLIPWAY_COLLECTOR_METRICS_SECONDS: "15",
    SLIPWAY_NODE_NAME: "node-1",
    SLIPWAY_NODE_ADDRESS: "127.0.0.1",
    SLIPWAY_KUBELET_PORT: String((kubelet.address() as AddressInfo).port),
    SLIPWAY_KUBELET_CA_FILE: authority,
    ...more,
  });
}

function connect(database: string): void {
  const { url, username, passwordFile } = server;
  store = openStore({ url, username, passwordFile, database, caFile: undefined, cluster: undefined });
}

const select = async <Row>(columns: string) =>
  (
    await readRows<Row>(store, {
      query: `SELECT ${columns} FROM ${store.database}.metrics`,
      parameters: {},
    }).catch(() => ({ rows: [] }))
  ).rows;
const count = async () => (await select<{ n: number }>("count() AS n"))[0]?.n ?? 0;
const uidOf = (podFolder: string) => podFolder.split("_")[2] ?? "";

// Shows: docs/metrics.md#what-is-promised: no sample counts twice
test("samples over a collector that is killed are each in the store once, of instances alone", async () => {
  connect("kills");
  pods = [
    uidOf(await collector.addPod("p1", "p1-abc-x1")),
    uidOf(await collector.addPod("p1", "p1-0", "postgresql")),
  ];
  for (let round = 0; round < KILLS; round += 1) {
    const before = requests.length;
    start("kills");
    await eventually("the kubelet is asked", () => requests.length > before, 120_000);
    // While the batch is written, sent, or removed.
    await sleep(Math.random() * 400);
    await collector.kill("SIGKILL");
  }
  const before = requests.length;
  start("kills");
  await eventually("the kubelet is asked", () => requests.length > before, 120_000);
  await eventually("it is ready", () => collector.isReady(), 120_000);
  await eventually("samples of several moments are in the store", async () => (await count()) > 1, 120_000);
  await eventually(
    "nothing waits",
    async () => (await collector.figure("slipway_collector_metrics_buffered_batches")) === 0,
    60_000,
  );
  await collector.kill("SIGTERM");
  const [row] = await select<Record<string, unknown>>(
    "count() AS n, uniqExact(pod, at) AS once, arraySort(groupUniqArray(instance)) AS instances, groupUniqArray((organization, project)) AS owners",
  );
  expect(row?.n).toBe(row?.once);
  expect(row).toMatchObject({ instances: ["p1-0", "p1-abc-x1"], owners: [["o1", "p1"]] });
  const [used] = await select<Record<string, unknown>>(
    "any(memory_bytes) AS memory, countIf(isNotNull(cpu_us) AND instance = 'p1-0') AS others, (max(cpu_us) - min(cpu_us)) / (max(toUnixTimestamp(at)) - min(toUnixTimestamp(at))) AS cpu",
  );
  // The container that is reported is not the database's own.
  expect(used).toMatchObject({ memory: 4_096, cpu: 500_000, others: 0 });
  expect(new Set(requests.map(({ url }) => url))).toEqual(new Set(["/stats/summary"]));
}, 600_000);

// Shows: docs/metrics.md#what-is-promised: samples wait on the node while the store is away, and are stored then
test("samples wait on the disk while the store is away, and what is there is sent after a restart without sampling", async () => {
  connect("away");
  pods = [uidOf(await collector.addPod("p1", "p1-abc-x1"))];
  start("away", { SLIPWAY_ANALYTICS_URL: "http://127.0.0.1:9" });
  await eventually("samples wait", async () => waiting(2), 120_000);
  await collector.kill("SIGKILL");
  const asked = requests.length;
  start("away", { SLIPWAY_COLLECTOR_METRICS: "false" });
  await eventually("they are in the store", async () => (await count()) >= 2, 120_000);
  expect(requests.length).toBe(asked);
}, 400_000);

const waiting = async (batches: number) =>
  (await collector.figure("slipway_collector_metrics_buffered_batches").catch(() => 0)) >= batches;

test("a kubelet with another certificate is not believed, and requests are collected all the same", async () => {
  connect("untrusted");
  pods = [uidOf(await collector.addPod("p1", "p1-abc-x1"))];
  const stranger = await ensureAuthority(folder, "stranger");
  start("untrusted", { SLIPWAY_KUBELET_CA_FILE: stranger.cert });
  await eventually("it reads requests", () => collector.isReady(), 120_000);
  await eventually(
    "failures are counted",
    async () => (await collector.figure('slipway_collector_metrics_failures_total{step="read"}')) > 0,
    60_000,
  );
  expect(requests).toEqual([]);
}, 300_000);
