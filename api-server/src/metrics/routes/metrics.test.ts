import {
  allNull,
  type MetricsSnapshot,
  mariadbMetrics,
  metricsSnapshot,
  postgresqlMetrics,
  snapshotResource,
  valkeyMetrics,
} from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databaseSpec } from "../../../../test/kit/api-server/databases.ts";
import { type FakeHarness, jobSpec, startFakeHarness } from "../../../../test/kit/api-server/harness.ts";
import { statusAndCode } from "../../../../test/kit/api-server/status-and-code.ts";
import { projectMetrics } from "../routes.ts";

/** Snapshots of databases, from samples in memory. */

const samples = new Map<string, MetricsSnapshot>();
const queried: object[] = [];
let harness: FakeHarness;
let headers: Record<string, string>;

beforeAll(async () => {
  harness = await startFakeHarness({
    snapshots: {
      newest: async (name) => {
        queried.push(name);
        return samples.get(name.instance);
      },
    },
  });
  headers = harness.key("acme", "* on project:*");
  const put = (id: string, ...[type, change]: Parameters<typeof databaseSpec>) =>
    harness.project("acme", id, databaseSpec(type, { name: `the-${id}`, ...change }));
  await harness.project("acme", "pshop", { plan: "basic" });
  await harness.project("acme", "pgratis");
  await harness.project("acme", "pcron", jobSpec);
  await put("ppg", "postgresql", { instances: 2 });
  await put("pmaria", "mariadb");
  await put("pkv", "valkey", { plan: "db-premium_plus" });
  await put("pcache", "valkey", { plan: "cache-business", profile: "cache", storage: undefined });
  await put("pfree", "valkey", { plan: "queue-free", profile: "queue" });
  await put("pbasic", "postgresql", { plan: "db-basic" });
  await put("pclick", "clickhouse");
});
afterAll(() => harness?.close());

const get = (path: string) => harness.app.inject({ url: `/v1/project/${path}`, headers });
const schema = projectMetrics.responses[200]?.schema;

const secondsAgo = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();
/** A sample with null in every field but these. */
function sample(
  type: "postgresql" | "mariadb" | "valkey",
  instance: string,
  change: Partial<MetricsSnapshot> = {},
): MetricsSnapshot {
  const { cache: _, key_value: __, ...valkey } = allNull(valkeyMetrics);
  const natives = {
    postgresql: allNull(postgresqlMetrics),
    mariadb: allNull(mariadbMetrics),
    valkey: {
      ...valkey,
      reliability: allNull(valkeyMetrics.shape.reliability),
    },
  };
  const snapshot = metricsSnapshot.parse({
    schema_version: 1,
    type,
    instance,
    observed_at: secondsAgo(10),
    collected_at: secondsAgo(9),
    availability: "available",
    resource: { ...allNull(snapshotResource), cpu_usage_cores: 0.25, memory_usage_bytes: 1_000_000 },
    native: natives[type],
    ...change,
  });
  samples.set(instance, snapshot);
  return snapshot;
}

const engineGroups = "resources connections activity cache storage locks latency reliability".split(" ");
const valkeyGroups = "resources capacity clients activity key_lifecycle profile reliability".split(" ");

describe("GET metrics/capabilities", () => {
  // Shows: docs/analytics.md#the-api: `metrics/capabilities` of an HTTP project: `snapshot` with the
  // Shows: docs/databases-api.md#endpoints: `GET /v1/project/:id/metrics/capabilities` | `access`
  // Shows: docs/databases-api.md#metrics: snapshots are for plans whose catalog entry has them
  it.each([
    ["ppg", "snapshot", engineGroups],
    ["pmaria", "snapshot", engineGroups],
    ["pkv", "snapshot", valkeyGroups],
    ["pcache", "snapshot", valkeyGroups],
    ["pfree", "none", []],
    ["pbasic", "none", []],
    ["pclick", "none", []],
    ["pshop", "snapshot", ["network", "resources"]],
    ["pgratis", "none", []],
    ["pcron", "none", []],
  ])("of %s is %s", async (id, access, groups) => {
    const response = await get(`${id}/metrics/capabilities`);
    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual({
      status: "success",
      data: { access, groups, refresh_seconds: 60, history: null },
    });
  });
});

describe("a snapshot that there is none of", () => {
  // Shows: docs/databases-api.md#metrics: no sample: `unavailable`, Valkey as the specification has it
  it("of Valkey is unavailable, exactly as the specification says", async () => {
    const response = await get("pkv/metrics");
    expect(response.json()).toEqual({
      status: "success",
      data: {
        instance: "pkv-0",
        type: "valkey",
        cpu: 0,
        memory: 0,
        observed_at: null,
        availability: "unavailable",
        valkey: null,
      },
    });
    expect(schema?.safeParse(response.json()).error).toBeUndefined();
  });

  // Shows: docs/databases-api.md#metrics: no sample: `unavailable`, Valkey as the specification has it
  it.each([
    ["ppg", "postgresql", postgresqlMetrics],
    ["pmaria", "mariadb", mariadbMetrics],
  ])("of %s is unavailable with null in every field", async (id, type, native) => {
    const response = await get(`${id}/metrics`);
    expect(response.json().data).toEqual({
      schema_version: 1,
      project_id: id,
      instance: `${id}-0`,
      type,
      observed_at: null,
      collected_at: null,
      availability: "unavailable",
      resource: allNull(snapshotResource),
      native: allNull(native),
    });
    expect(schema?.safeParse(response.json()).error).toBeUndefined();
  });
});

describe("a snapshot", () => {
  // Shows: docs/databases-api.md#endpoints: `GET /v1/project/:id/metrics` | the newest snapshot of an
  // Shows: docs/databases-api.md#metrics: without `instance`: the primary; 404 `INSTANCE_NOT_FOUND` for
  it("of PostgreSQL is what was sampled, of the requested instance", async () => {
    const { native, resource, observed_at, collected_at } = sample("postgresql", "ppg-1");
    const { data } = (await get("ppg/metrics?instance=ppg-1")).json();
    expect(data).toEqual({
      schema_version: 1,
      project_id: "ppg",
      instance: "ppg-1",
      type: "postgresql",
      observed_at,
      collected_at,
      availability: "available",
      resource,
      native,
    });
    expect(queried.at(-1)).toEqual({
      organizationId: "acme",
      projectId: "ppg",
      projectUid: expect.stringMatching(/./),
      instance: "ppg-1",
    });
  });

  // Shows: docs/databases-api.md#endpoints: `GET /v1/project/:id/metrics` | the newest snapshot of an
  it("of Valkey has its profile, and the legacy members", async () => {
    const { native, observed_at } = sample("valkey", "pcache-2");
    const { data } = (await get("pcache/metrics?instance=pcache-2")).json();
    expect(data).toEqual({
      instance: "pcache-2",
      type: "valkey",
      cpu: 0.25,
      memory: 1_000_000,
      observed_at,
      availability: "available",
      valkey: { schema_version: 1, profile: "cache", availability: "available", ...native },
    });
  });

  // Shows: docs/databases-api.md#metrics: `partial` as it was sampled; `stale` 150 seconds after it was
  it.each([
    ["partial", { availability: "partial" }, "partial"],
    ["that has not been renewed for a while", { observed_at: secondsAgo(200) }, "stale"],
    ["that is one sample late", { observed_at: secondsAgo(110) }, "available"],
  ] as const)("%s says so, with its own timestamps", async (_about, change, availability) => {
    const { observed_at } = sample("mariadb", "pmaria-2", change);
    const { data } = (await get("pmaria/metrics?instance=pmaria-2")).json();
    expect([data.availability, data.observed_at]).toEqual([availability, observed_at]);
    expect(schema?.safeParse({ status: "success", data }).error).toBeUndefined();
  });

  it("of another engine under the same name is none", async () => {
    sample("mariadb", "ppg-0");
    const { data } = (await get("ppg/metrics?instance=ppg-0")).json();
    expect([data.availability, data.type]).toEqual(["unavailable", "postgresql"]);
  });
});

describe("a snapshot is refused", () => {
  // Shows: docs/databases-api.md#metrics: 403 `METRICS_NOT_AVAILABLE_FOR_PLAN` where `access` is `none`
  it.each(["pfree", "pbasic"])("of %s, whose plan has none", async (id) => {
    expect(statusAndCode(await get(`${id}/metrics`))).toEqual([403, "METRICS_NOT_AVAILABLE_FOR_PLAN"]);
  });

  // Shows: docs/databases-api.md#metrics: without `instance`: the primary; 404 `INSTANCE_NOT_FOUND` for
  it.each(["ppg-2", "ppg", "pmaria-0", "ppg-01", "ppg--1"])("of an instance %s that is none", async (one) => {
    expect(statusAndCode(await get(`ppg/metrics?instance=${one}`))).toEqual([404, "INSTANCE_NOT_FOUND"]);
  });

  // Shows: docs/databases-api.md#metrics: 400 `PROJECT_TYPE_MISMATCH` for ClickHouse and jobs
  it("of a type that has none", async () => {
    expect(statusAndCode(await get("pclick/metrics"))).toEqual([400, "PROJECT_TYPE_MISMATCH"]);
    expect(statusAndCode(await get("pcron/metrics"))).toEqual([400, "PROJECT_TYPE_MISMATCH"]);
  });

  it("for a name of no length", async () => {
    expect(statusAndCode(await get("ppg/metrics?instance="))).toEqual([400, "VALIDATION_FAILED"]);
  });
});
