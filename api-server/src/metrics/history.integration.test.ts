import { type InstanceSample, insertSamples, migrate, openStore, type Store } from "@slipway/analytics";
import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { labels, organizationNamespace } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databaseSpec } from "../../../test/kit/api-server/databases.ts";
import { type FakeHarness, jobSpec, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { startClickHouse, type TestClickHouse } from "../../../test/kit/servers/clickhouse.ts";
import { Analytics } from "../analytics/analytics.ts";
import { projectMetrics } from "./routes.ts";

/** The API over a real store, whose samples are known. */

/** Its image may have to be built. */
const START_MS = 900_000;
const MINUTE = 60_000;

let server: TestClickHouse;
let store: Store;
let harness: FakeHarness;
let headers: Record<string, string>;
let now = 0;

/** Samples of every half minute, of an instance that uses a quarter of a core. */
function samples(project: string, instance: string, minutes: number, until: number): InstanceSample[] {
  return Array.from({ length: minutes * 2 }, (_, index) => {
    const at = now - until * MINUTE - index * 30_000;
    return {
      ...{ organization: "acme", project, instance, pod: `uid-${instance}`, at },
      bootedAt: now - 11 * 86_400_000,
      ...{ startedAt: now - 10 * 86_400_000, cpuMicroseconds: at * 250, memoryBytes: 1_000_000 },
      ...{ networkAt: at, receivedBytes: at, transmittedBytes: at * 2, restarts: 1 },
      ...{ volumeUsedBytes: 3, volumeCapacityBytes: 10 },
    };
  });
}

beforeAll(async () => {
  server = await startClickHouse();
  const { url, username, passwordFile } = server;
  const place = { database: "slipway", caFile: undefined, cluster: undefined };
  store = openStore({ url, username, passwordFile, ...place }, { timeoutMs: 12_000 });
  await migrate(store);
  now = Math.floor(Date.now() / 1000) * 1000;
  const events = [
    ...samples("papp", "papp-new", 20, 0),
    ...samples("papp", "papp-gone", 20, 30),
    ...Array.from({ length: 115 }, (_, index) => samples("pmany", `pmany-${index}`, 1, 1)).flat(),
    ...samples("pworker", "pworker-1", 5, 0),
    ...samples("pdata", "pdata-0", 5, 0),
    ...samples("pdata", "pdata-1", 5, 10),
    ...samples("pcache", "pcache-1", 5, 10),
  ];
  await insertSamples(store, { id: "known", events });
  harness = await startFakeHarness({ analytics: new Analytics(store) });
  headers = harness.key("acme", "* on project:*");
  await harness.project("acme", "papp", { plan: "basic" });
  await harness.project("acme", "pmany", { plan: "basic", name: "many" });
  await harness.project("acme", "pfree", { name: "free" });
  await harness.project("acme", "pworker", { plan: "basic", name: "worker", type: "worker" });
  await harness.project("acme", "pdata", databaseSpec("postgresql", { name: "data" }));
  await harness.project("acme", "pcache", databaseSpec("valkey", { name: "cache" }));
  await harness.project("acme", "pjob", jobSpec);
  await harness.kube.create<KubernetesObject>(resources.pods, {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...{ name: "papp-new", namespace: organizationNamespace("acme") },
      labels: { [labels.project]: "papp" },
    },
  });
}, START_MS);

afterAll(async () => {
  await harness?.close();
  await store?.client.close();
  await server?.stop();
});

async function get(id: string, query: string, credential = headers) {
  const response = await harness.app.inject({
    url: `/v1/project/${id}/metrics?${query}`,
    headers: credential,
  });
  return { status: response.statusCode, body: response.json() };
}

/** A success, which fits the schema that the document has of it. */
async function metrics(id: string, query: string) {
  const { status, body } = await get(id, query);
  expect([status, body.message]).toEqual([200, undefined]);
  expect(projectMetrics.responses[200]?.schema?.safeParse(body).error).toBeUndefined();
  return body.data;
}

const instancesOf = (history: { instances: { instance: string }[] }) =>
  history.instances.map(({ instance }) => instance);

describe("the history of a project", () => {
  // Shows: docs/metrics.md#over-v1: `GET /v1/project/:id/metrics` with `range_seconds`, `project.metrics.read`
  // Shows: docs/metrics.md#what-is-promised: what an instance used is there after it is gone
  it("has its instances, also those that are gone, beside what the answer had", async () => {
    const plain = await metrics("papp", "");
    expect(plain).not.toHaveProperty("history");
    const { history, ...data } = await metrics("papp", "range_seconds=3600&resolution_seconds=300");
    expect(Object.keys(data)).toEqual(Object.keys(plain));
    expect(instancesOf(history)).toEqual(["papp-gone", "papp-new"]);
    expect(history).toMatchObject({ resolution_seconds: 300, other_instances: [], omitted_instances: 0 });
    expect(Date.parse(history.to) - Date.parse(history.from)).toBe(3_900_000);
    expect(Date.parse(history.from)).toBeLessThanOrEqual(Date.now() - 3_600_000);
    const [gone] = history.instances;
    // Twenty minutes of the hour: what was before and after is a gap.
    expect(gone.points.length).toBeGreaterThanOrEqual(4);
    expect(gone.points.length).toBeLessThanOrEqual(5);
    expect(gone.points.at(-1)).toEqual({
      at: expect.any(String),
      ...{ cpu: 0.25, memory: 1_000_000, restarts: 1 },
      ...{ received_bytes_per_second: 1_000, transmitted_bytes_per_second: 2_000 },
      ...{ volume_used_bytes: 3, volume_capacity_bytes: 10 },
    });
  });

  it("of one instance is its own, and of one that is gone what it uses now is not known", async () => {
    const there = await metrics("papp", "range_seconds=3600&instance=papp-new");
    expect(instancesOf(there.history)).toEqual(["papp-new"]);
    const gone = await metrics("papp", "range_seconds=3600&instance=papp-gone");
    expect(gone).toMatchObject({ instance: "papp-gone", uptime: null, cpu: null, observed_at: null });
    expect(instancesOf(gone.history)).toEqual(["papp-gone"]);
    for (const query of [
      "instance=papp-gone",
      "range_seconds=3600&instance=none",
      "range_seconds=60&instance=papp-gone",
    ]) {
      const { status, body } = await get("papp", query);
      expect([status, body.code]).toEqual([404, "INSTANCE_NOT_FOUND"]);
    }
  });

  // Shows: docs/metrics.md#what-is-promised: an answer is bounded, whatever is requested
  it("of many instances has ten, and names others", async () => {
    const { history } = await metrics("pmany", "range_seconds=3600");
    expect(history.instances).toHaveLength(10);
    expect(history.other_instances).toHaveLength(100);
    expect(history.omitted_instances).toBe(105);
    const other = history.other_instances[99];
    const more = await get("pmany", `range_seconds=3600&instance=${other}`);
    expect(instancesOf(more.body.data.history)).toEqual([other]);
  });

  it("of a worker needs no instance, and of a database is beside its snapshot", async () => {
    const worker = await metrics("pworker", "range_seconds=3600");
    expect(worker).toMatchObject({ type: "application", aggregate: true, network: { requests: 0 } });
    expect(instancesOf(worker.history)).toEqual(["pworker-1"]);
    expect((await get("pworker", "")).status).toBe(400);
    const database = await metrics("pdata", "range_seconds=3600");
    expect(database).toMatchObject({ type: "postgresql", instance: "pdata-0" });
    expect(instancesOf(database.history)).toEqual(["pdata-0", "pdata-1"]);
  });

  it("of a database's instance that is gone has no snapshot beside it", async () => {
    const nothing = { availability: "unavailable", observed_at: null };
    const gone = await metrics("pdata", "range_seconds=3600&instance=pdata-1");
    expect(gone).toMatchObject({ type: "postgresql", instance: "pdata-1", ...nothing });
    expect(instancesOf(gone.history)).toEqual(["pdata-1"]);
    const cached = await metrics("pcache", "range_seconds=3600&instance=pcache-1");
    expect(cached).toMatchObject({ type: "valkey", instance: "pcache-1", valkey: null, ...nothing });
    for (const query of ["instance=pdata-1", "range_seconds=3600&instance=pdata-2"]) {
      const { status, body } = await get("pdata", query);
      expect([status, body.code]).toEqual([404, "INSTANCE_NOT_FOUND"]);
    }
  });

  // Shows: docs/metrics.md#over-v1: 400 `VALIDATION_FAILED`: a range or resolution out of its bounds
  it.each([
    ["papp", "range_seconds=59", 400, "VALIDATION_FAILED"],
    ["papp", "range_seconds=86400&resolution_seconds=60", 400, "VALIDATION_FAILED"],
    ["papp", "resolution_seconds=60", 400, "VALIDATION_FAILED"],
    ["pfree", "range_seconds=3600", 402, "NETWORK_ANALYTICS_NOT_AVAILABLE_FOR_PLAN"],
    ["pjob", "range_seconds=3600", 400, "PROJECT_TYPE_MISMATCH"],
    ["none", "range_seconds=3600", 404, "PROJECT_NOT_FOUND"],
  ])("of %s with %s is refused", async (id, query, status, code) => {
    const answer = await get(id, query);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
  });

  it("is not another organization's", async () => {
    expect((await get("papp", "range_seconds=3600", harness.key("globex", "* on project:*"))).status).toBe(
      404,
    );
  });
});

// Shows: docs/metrics.md#over-v1: 503 `ANALYTICS_NOT_CONFIGURED`: the platform has no store, or does not sample instances
it("is 503 where instances are not sampled, and the answer without it stays", async () => {
  const without = await startFakeHarness({ analytics: new Analytics(store, { keepsMetrics: false }) });
  try {
    const key = without.key("acme", "* on project:*");
    await without.project("acme", "papp", { plan: "basic" });
    const url = "/v1/project/papp/metrics";
    const refused = await without.app.inject({ url: `${url}?range_seconds=3600`, headers: key });
    expect([refused.statusCode, refused.json().code]).toEqual([503, "ANALYTICS_NOT_CONFIGURED"]);
    expect((await without.app.inject({ url, headers: key })).statusCode).toBe(200);
  } finally {
    await without.close();
  }
});

// Shows: docs/metrics.md#over-v1: 503 `ANALYTICS_UNAVAILABLE`: the store does not answer
it("is 503 while the store is away, and the answer without it stays where it counts no requests", async () => {
  const { username, passwordFile } = server;
  const place = { database: "slipway", caFile: undefined, cluster: undefined };
  const away = openStore({ url: "http://127.0.0.1:9", username, passwordFile, ...place });
  const without = await startFakeHarness({ analytics: new Analytics(away) });
  try {
    const key = without.key("acme", "* on project:*");
    await without.project("acme", "pdata", databaseSpec("postgresql", { name: "data" }));
    const url = "/v1/project/pdata/metrics";
    const refused = await without.app.inject({ url: `${url}?range_seconds=3600`, headers: key });
    expect([refused.statusCode, refused.json().code]).toEqual([503, "ANALYTICS_UNAVAILABLE"]);
    expect((await without.app.inject({ url, headers: key })).statusCode).toBe(200);
  } finally {
    await without.close();
  }
});
