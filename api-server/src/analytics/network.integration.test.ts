import { type AccessEvent, insertEvents, migrate, openStore, type Store } from "@slipway/analytics";
import { customResource, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { labels, organizationNamespace } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databaseSpec } from "../../../test/kit/api-server/databases.ts";
import { type FakeHarness, jobSpec, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { startClickHouse, type TestClickHouse } from "../../../test/kit/servers/clickhouse.ts";
import { routes } from "../routes.ts";
import { Analytics } from "./analytics.ts";

/** The API over a real store, whose events are known. */

/** Its image may have to be built. */
const START_MS = 900_000;
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

let server: TestClickHouse;
let store: Store;
let harness: FakeHarness;
let headers: Record<string, string>;

/** When the store was there: its image may have taken a while. */
let now = 0;
const ago = (ms: number): string => new Date(now - ms).toISOString();
const event = (change: Partial<AccessEvent>): AccessEvent => ({
  organization: "acme",
  project: "pnet",
  at: now - 10 * MINUTE,
  status: 200,
  method: "GET",
  route: "/orders/:id",
  path: "/orders/1",
  userAgent: "curl/8",
  sourceIp: "192.0.2.1",
  bytesReceived: 10,
  bytesSent: 100,
  latencyUs: 2_000,
  ...change,
});

const knownEvents = (): AccessEvent[] => [
  // Within five minutes.
  ...Array.from({ length: 20 }, (_, one) => event({ at: now - SECOND - one, latencyUs: 1_000 * (one + 1) })),
  event({ at: now - SECOND, status: 404, path: "/none", route: "/none", userAgent: "", latencyUs: 500 }),
  // Within the hour.
  event({ status: 503, sourceIp: "2001:db8::1", method: "POST", bytesReceived: 5_000 }),
  event({ status: 301, path: "/", route: "/", userAgent: "__proto__", sourceIp: "192.0.2.9" }),
  event({ status: 204, path: "/orders/2", bytesSent: 0 }),
  // Earlier on the same day and in the same week.
  event({ at: now - 5 * HOUR, path: "/early" }),
  event({ at: now - 6 * 24 * HOUR, path: "/long-ago" }),
  // Others'.
  event({ project: "pother", path: "/secret" }),
  event({ organization: "globex", path: "/secret" }),
];

beforeAll(async () => {
  server = await startClickHouse();
  const { url, username, passwordFile } = server;
  const settings = {
    url,
    username,
    passwordFile,
    database: "slipway",
    caFile: undefined,
    cluster: undefined,
  };
  store = openStore(settings, { timeoutMs: 12_000 });
  await migrate(store);
  now = Date.now();
  await insertEvents(store, { id: "known", events: knownEvents() });
  harness = await startFakeHarness({ analytics: new Analytics(store) });
  headers = harness.key("acme", "* on project:*");
  const put = (id: string, change: Parameters<FakeHarness["project"]>[2]) =>
    harness.project("acme", id, { name: `the-${id}`, ...change });
  await put("pnet", { plan: "basic" });
  await put("pquiet", { plan: "basic" });
  await put("pfree", { plan: "free" });
  await put("pjob", jobSpec);
  await put("pdata", databaseSpec("postgresql"));
}, START_MS);

afterAll(async () => {
  await harness?.close();
  await store?.client.close();
  await server?.stop();
});

const get = async (path: string, id = "pnet", credential = headers) => {
  const response = await harness.app.inject({ url: `/v1/project/${id}/metrics${path}`, headers: credential });
  return { status: response.statusCode, body: response.json() };
};
const network = (path: string, id?: string) => get(`/network/${path}`, id);

/** `data` of a success, which fits the schema that the document has of it. */
async function data(path: string, id?: string) {
  const { status, body } = await get(path, id);
  expect([status, body.message, body.code]).toEqual([200, undefined, undefined]);
  const [name = ""] = path.split("?");
  const schema = routes.find((one) => one.path === `/v1/project/:id/metrics${name}`)?.responses[200]?.schema;
  expect(schema?.safeParse(body).error).toBeUndefined();
  return body.data;
}

const LISTS = ["status-codes", "routes", "user-agents", "request-events", "source-ips"];

describe("network analytics", () => {
  // Shows: docs/analytics.md#the-api: `GET /v1/project/:id/metrics/network/summary`
  it("sum up the requests of a window", async () => {
    const { window, ...rest } = await data("/network/summary?range_seconds=3600");
    const total = (210_000 + 500 + 3 * 2_000) / 24;
    expect(rest).toEqual({
      project_id: "pnet",
      summary: {
        requests: 24,
        bytes_received: 23 * 10 + 5_000,
        bytes_sent: 23 * 100,
        avg_latency_ms: Math.round(total) / 1000,
        p95_latency_ms: expect.closeTo(19, 0),
      },
      status_classes: { "2xx": 21, "3xx": 1, "4xx": 1, "5xx": 1 },
    });
    expect(window.seconds).toBe(3_600);
    expect(Date.parse(window.to) - Date.parse(window.from)).toBe(HOUR);
  });

  // Shows: docs/analytics.md#the-api: `GET /v1/project/:id/metrics/network/status-codes`
  it("list statuses with their user agents and routes", async () => {
    const { data: items, pagination } = await data("/network/status-codes?range_seconds=3600&limit=50");
    expect(pagination).toEqual({ page: 1, limit: 50, total: 5, total_pages: 1 });
    expect(items.map((item: { status_code: string }) => item.status_code)).toEqual([
      ...["200", "204", "301", "404", "503"],
    ]);
    expect(items[0]).toEqual({
      status_code: "200",
      requests: 20,
      user_agents: { "curl/8": 20 },
      routes: { "/orders/:id": 20 },
      bytes_received: 200,
      bytes_sent: 2_000,
      avg_latency_ms: 10.5,
      p95_latency_ms: expect.closeTo(19, 0),
    });
    expect(JSON.stringify(items[2].user_agents)).toBe('{"__proto__":1}');
    expect(items[3]).toMatchObject({ user_agents: { "": 1 }, routes: { "/none": 1 }, avg_latency_ms: 0.5 });
  });

  // Shows: docs/analytics.md#the-api: `GET /v1/project/:id/metrics/network/routes`
  // Shows: docs/analytics.md#the-api: `GET /v1/project/:id/metrics/network/user-agents`
  // Shows: docs/analytics.md#the-api: `GET /v1/project/:id/metrics/network/source-ips`
  it.each([
    ["routes", "route", "/orders/:id", 22, { "200": 20, "204": 1, "503": 1 }],
    ["user-agents", "user_agent", "curl/8", 22, { "200": 20, "204": 1, "503": 1 }],
    ["source-ips", "source_ip", "192.0.2.1", 22, { "200": 20, "204": 1, "404": 1 }],
  ])("list %s, those with the most requests first", async (name, key, value, requests, status_codes) => {
    const { data: items, pagination } = await data(`/network/${name}?range_seconds=3600`);
    expect(pagination).toEqual({ page: 1, limit: 5, total: 3, total_pages: 1 });
    expect(items[0]).toMatchObject({ [key]: value, requests, status_codes });
  });

  // Shows: docs/analytics.md#the-api: `GET /v1/project/:id/metrics/network/request-events`
  it("list requests one by one, the newest first", async () => {
    const { data: items, pagination } = await data("/network/request-events?range_seconds=3600&limit=2");
    expect(pagination).toEqual({ page: 1, limit: 2, total: 24, total_pages: 12 });
    expect(items).toHaveLength(2);
    expect(new Set(items.map((item: { timestamp: string }) => item.timestamp))).toEqual(
      new Set([ago(SECOND)]),
    );
    const { data: one } = await data("/network/request-events?range_seconds=3600&status_code=503");
    expect(one).toEqual([
      {
        timestamp: ago(10 * MINUTE),
        method: "POST",
        path: "/orders/1",
        route: "/orders/:id",
        status_code: "503",
        user_agent: "curl/8",
        source_ip: "2001:db8::1",
        bytes_received: 5_000,
        bytes_sent: 100,
        latency_ms: 2,
      },
    ]);
  });

  // Shows: docs/analytics.md#the-api: `range_seconds`: 300, 3600, 21600, 86400, 604800
  // Shows: docs/analytics.md#the-api: `from`, `to`: ISO 8601 with a zone, to the millisecond; `to` is
  // Shows: docs/analytics.md#the-api: `status_code`, `status_class`
  // Shows: docs/analytics.md#the-api: `source_ip`: any text of the address
  // Shows: docs/analytics.md#the-api: `path`: a path or a route; any text is a value and never SQL
  it.each([
    ["range_seconds=300", 21],
    ["range_seconds=21600", 25],
    ["range_seconds=86400", 25],
    ["range_seconds=604800", 26],
    ["from=<18000000>&to=<14400000>", 1],
    ["from=<17999999>&to=<14400000>", 0],
    ["status_code=404", 1],
    ["status_code=418", 0],
    ["status_class=2xx", 21],
    ["status_class=5xx", 1],
    ["status_class=4xx&status_code=200", 0],
    ["source_ip=192.0.2.1", 22],
    ["source_ip=2001:DB8:0::1", 1],
    ["source_ip=192.0.2.1&status_class=4xx", 1],
    ["path=/orders/1", 21],
    ["path=/orders/:id", 22],
    [`path=${encodeURIComponent("' OR 1 = 1 --")}`, 0],
    [`path=${encodeURIComponent("{p1:String}\\")}`, 0],
  ])("with %s are of %i requests, in every operation", async (text, requests) => {
    const query = text.replace(/<(\d+)>/g, (_, ms) => ago(Number(ms)));
    const { summary } = await data(`/network/summary?${query}`);
    expect(summary.requests).toBe(requests);
    if (requests === 0) {
      expect(summary).toMatchObject({ avg_latency_ms: null, p95_latency_ms: null });
    }
    for (const name of LISTS) {
      const { data: items, pagination } = await data(`/network/${name}?${query}&limit=50`);
      const counted = items.map((item: { requests?: number }) => item.requests ?? 1);
      expect([name, counted.reduce((sum: number, one: number) => sum + one, 0)]).toEqual([name, requests]);
      expect(pagination.total).toBe(items.length);
    }
  });

  // Shows: docs/analytics.md#the-api: `page` from 1, `limit` 5, at most 50; a page after the last is
  it("give every item of every list on one page, and none behind the last", async () => {
    for (const name of LISTS) {
      const whole = await data(`/network/${name}?range_seconds=3600&limit=50`);
      const found: unknown[] = [];
      const { total } = whole.pagination;
      for (let page = 1; page <= Math.ceil(total / 2) + 1; page++) {
        const { data: items, pagination } = await data(
          `/network/${name}?range_seconds=3600&limit=2&page=${page}`,
        );
        expect(pagination).toEqual({ page, limit: 2, total, total_pages: Math.ceil(total / 2) });
        found.push(...items);
      }
      expect(found).toEqual(whole.data);
    }
  });

  it("are none of a project without requests, and never another's", async () => {
    expect((await data("/network/summary", "pquiet")).summary.requests).toBe(0);
    for (const name of LISTS) {
      expect((await data(`/network/${name}`, "pquiet")).data).toEqual([]);
    }
    const all = JSON.stringify(await data("/network/request-events?range_seconds=604800&limit=50"));
    expect(all).not.toContain("/secret");
  });

  // Shows: docs/analytics.md#the-api: an answer is reused for at most two seconds, and never for another
  it("are answered for each window, also concurrently", async () => {
    const ranges = ["300", "3600", "300", "604800", "3600"];
    const answers = await Promise.all(
      ranges.map((range) => data(`/network/summary?range_seconds=${range}&status_class=2xx`)),
    );
    expect(answers.map(({ window }) => String(window.seconds))).toEqual(ranges);
    expect(answers.map(({ summary }) => summary.requests)).toEqual([20, 21, 20, 23, 21]);
  });
});

describe("network analytics are refused", () => {
  // Shows: docs/analytics.md#the-api: 400 `PROJECT_TYPE_MISMATCH`: no HTTP project
  // Shows: docs/analytics.md#the-api: 402 `NETWORK_ANALYTICS_NOT_AVAILABLE_FOR_PLAN`: a plan without
  it.each(["summary", ...LISTS])(
    "as %s for other types, other plans and windows that are none",
    async (name) => {
      const failureOf = async (query: string, id?: string) => {
        const { status, body } = await network(name + query, id);
        return [status, body.code];
      };
      expect(await failureOf("", "pjob")).toEqual([400, "PROJECT_TYPE_MISMATCH"]);
      expect(await failureOf("", "pdata")).toEqual([400, "PROJECT_TYPE_MISMATCH"]);
      expect(await failureOf("", "pfree")).toEqual([402, "NETWORK_ANALYTICS_NOT_AVAILABLE_FOR_PLAN"]);
      expect(await failureOf("", "pnone")).toEqual([404, "PROJECT_NOT_FOUND"]);
      expect(await failureOf("?range_seconds=60")).toEqual([400, "VALIDATION_FAILED"]);
      const from = ago(9 * 24 * HOUR);
      expect(await failureOf(`?from=${from}&to=${ago(0)}`)).toEqual([400, "VALIDATION_FAILED"]);
      expect(await failureOf(`?from=${ago(0)}&to=${from}`)).toEqual([400, "VALIDATION_FAILED"]);
      const reader = harness.key("acme", "project.read on project:*");
      expect((await get(`/network/${name}`, "pnet", reader)).body.code).toBe("PERMISSION_DENIED");
    },
  );
});

describe("metrics of an application", () => {
  // Shows: docs/analytics.md#the-api: `GET /v1/project/:id/metrics` of an HTTP project: what all
  it("are what all its instances answered in the last hour", async () => {
    expect(await data("")).toEqual({
      type: "application",
      aggregate: true,
      network: {
        requests: 24,
        bytes_received: 23 * 10 + 5_000,
        bytes_sent: 23 * 100,
        status_codes: { "200": 20, "204": 1, "301": 1, "404": 1, "503": 1 },
        user_agents: JSON.parse('{"curl/8":22,"":1,"__proto__":1}'),
        window_seconds: 3_600,
      },
    });
  });

  // Shows: docs/analytics.md#the-api: the same with `instance`: `uptime` of the container, `cpu` in
  it("are what one instance uses, and since when its container runs", async () => {
    const namespace = organizationNamespace("acme");
    const pod = (name: string, project: string, state: object) =>
      harness.kube.create<KubernetesObject>(resources.pods, {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name, namespace, labels: { [labels.project]: project } },
        status: { containerStatuses: [{ name: "app", state }] },
      } as KubernetesObject);
    await pod("pnet-1", "pnet", { running: { startedAt: new Date(Date.now() - 90_500).toISOString() } });
    await pod("pnet-2", "pnet", { waiting: { reason: "CrashLoopBackOff" } });
    await pod("pother-1", "pother", {});
    const kind = customResource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics");
    await harness.kube.create(kind, {
      apiVersion: "metrics.k8s.io/v1beta1",
      kind: "PodMetrics",
      metadata: { name: "pnet-1", namespace },
      timestamp: "2026-11-21T08:05:00Z",
      containers: [
        { name: "other", usage: { cpu: "1", memory: "1Gi" } },
        { name: "app", usage: { cpu: "250m", memory: "64Mi" } },
      ],
    } as KubernetesObject);
    const first = await data("?instance=pnet-1");
    expect(first).toEqual({
      type: "application",
      aggregate: false,
      instance: "pnet-1",
      uptime: expect.any(Number),
      cpu: 0.25,
      memory: 64 * 2 ** 20,
      observed_at: "2026-11-21T08:05:00.000Z",
    });
    expect(first.uptime).toBeGreaterThanOrEqual(90);
    expect(await data("?instance=pnet-2")).toMatchObject({
      uptime: null,
      cpu: null,
      memory: null,
      observed_at: null,
    });
    for (const other of ["pother-1", "none"]) {
      const { status, body } = await get(`?instance=${other}`);
      expect([status, body.code]).toEqual([404, "INSTANCE_NOT_FOUND"]);
    }
  });

  // Shows: docs/analytics.md#the-api: 402 `NETWORK_ANALYTICS_NOT_AVAILABLE_FOR_PLAN`: a plan without
  it("are 402 on a plan without them", async () => {
    for (const query of ["", "?instance=pfree-1"]) {
      const { status, body } = await get(query, "pfree");
      expect([status, body.code]).toEqual([402, "NETWORK_ANALYTICS_NOT_AVAILABLE_FOR_PLAN"]);
    }
  });
});

describe("while the store is unavailable", () => {
  // Shows: docs/analytics.md#the-api: 503 `ANALYTICS_UNAVAILABLE`: the store does not answer; other
  it("network analytics are 503 and everything else answers; both do once it is back", async () => {
    await server.crash();
    const { status, body } = await network("summary?range_seconds=21600&status_code=200");
    expect([status, body.code]).toEqual([503, "ANALYTICS_UNAVAILABLE"]);
    const project = await harness.app.inject({ url: "/v1/project/pnet", headers });
    expect(project.statusCode).toBe(200);
    await server.restart();
    const again = await data("/network/summary?range_seconds=21600&status_code=200");
    expect(again.summary.requests).toBe(21);
  });
});
