import { allNull, type MetricsSnapshot, postgresqlMetrics, snapshotResource } from "@slipway/crds";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import {
  connectLedger,
  type Ledger,
  listMetricSamples,
  type MetricSampleRow,
  migrateToLatest,
  newestMetricSample,
  recordMetricSamples,
  retireMetricSamples,
} from "./index.ts";

let postgres: TestPostgres;
let ledger: Ledger;
let other: Ledger;

beforeAll(async () => {
  postgres = await startPostgres();
  ledger = connectLedger({ url: postgres.url, applicationName: "test" });
  other = connectLedger({ url: postgres.url, applicationName: "test" });
  await migrateToLatest(ledger);
});
afterAll(async () => {
  await ledger?.destroy();
  await other?.destroy();
  await postgres?.stop();
});
beforeEach(async () => {
  await sql`truncate metric_samples`.execute(ledger);
});

const minute = (count: number) => new Date(Date.UTC(2026, 0, 1, 0, count)).toISOString();
const instanceOf = (instance = "pshop-0", projectUid = "u1") => ({
  organizationId: "acme",
  projectId: "pshop",
  projectUid,
  instance,
});

function snapshot(at: string, instance: string): MetricsSnapshot {
  return {
    schema_version: 1,
    type: "postgresql",
    instance,
    observed_at: at,
    collected_at: at,
    availability: "available",
    resource: { ...allNull(snapshotResource), cpu_usage_cores: 0.25 },
    native: allNull(postgresqlMetrics),
  };
}

const row = (count: number, instance = "pshop-0", projectUid = "u1"): MetricSampleRow => ({
  ...instanceOf(instance, projectUid),
  snapshot: snapshot(minute(count), instance),
  raw: { count },
});

const kept = async () =>
  (await listMetricSamples(ledger)).map(({ instance, newest, previous }) => [
    instance,
    newest.raw,
    previous?.raw,
  ]);

describe("samples of metrics", () => {
  it("are the latest two of every instance", async () => {
    for (const count of [1, 2, 3]) {
      expect(await recordMetricSamples(ledger, [row(count), row(count, "pshop-1")])).toBe(2);
    }
    expect(await kept()).toEqual([
      ["pshop-0", { count: 3 }, { count: 2 }],
      ["pshop-1", { count: 3 }, { count: 2 }],
    ]);
    expect(await newestMetricSample(ledger, instanceOf())).toEqual(snapshot(minute(3), "pshop-0"));
  });

  it("change nothing when they come again, or late", async () => {
    await recordMetricSamples(ledger, [row(1)]);
    await recordMetricSamples(ledger, [row(3)]);
    expect(await recordMetricSamples(ledger, [row(3)])).toBe(0);
    expect(await recordMetricSamples(ledger, [row(2)])).toBe(0);
    expect(await kept()).toEqual([["pshop-0", { count: 3 }, { count: 1 }]]);
  });

  it("are recorded by two processes concurrently", async () => {
    const instances = Array.from({ length: 50 }, (_, index) => `pshop-${index}`);
    const batch = (count: number) => instances.map((instance) => row(count, instance));
    for (let count = 1; count <= 6; count += 1) {
      const changed = await Promise.all([
        recordMetricSamples(ledger, batch(count)),
        recordMetricSamples(other, batch(count).reverse()),
      ]);
      expect(changed[0] + changed[1]).toBe(50);
    }
    const found = await listMetricSamples(ledger);
    expect(found).toHaveLength(50);
    expect(found.map(({ previous }) => previous?.raw)).toEqual(found.map(() => ({ count: 5 })));
  });

  it("of a project that was created again are separate from those of its predecessor", async () => {
    await recordMetricSamples(ledger, [row(1)]);
    expect(await newestMetricSample(ledger, instanceOf("pshop-0", "u2"))).toBeUndefined();
    await recordMetricSamples(ledger, [row(2, "pshop-0", "u2")]);
    expect(await newestMetricSample(ledger, instanceOf())).toBeUndefined();
    expect(await kept()).toEqual([["pshop-0", { count: 2 }, undefined]]);
  });

  it("of more instances than one statement takes are all kept", async () => {
    const many = Array.from({ length: 1_200 }, (_, index) => row(1, `pshop-${index}`));
    expect(await recordMetricSamples(ledger, many)).toBe(1_200);
    expect(await listMetricSamples(ledger)).toHaveLength(1_200);
  });

  it("are forgotten once nobody has sampled an instance for long", async () => {
    await recordMetricSamples(ledger, [row(1), row(5, "pshop-1")]);
    expect(await retireMetricSamples(ledger, new Date(minute(5)))).toBe(1);
    expect(await newestMetricSample(ledger, instanceOf())).toBeUndefined();
    expect(await newestMetricSample(ledger, instanceOf("pshop-1"))).toBeDefined();
  });

  it("whose shape nobody knows are not read", async () => {
    await recordMetricSamples(ledger, [row(1)]);
    await sql`update metric_samples set snapshot = '{}'`.execute(ledger);
    expect(await listMetricSamples(ledger)).toEqual([]);
    await expect(newestMetricSample(ledger, instanceOf())).rejects.toThrow();
  });
});
