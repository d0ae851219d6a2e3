import { Readable } from "node:stream";
import type { ClickHouseClient } from "@clickhouse/client";
import { expect, it } from "vitest";
import { ALERTS_READ_LIMIT, projectRequests, projectUsage } from "./alerts.ts";
import type { Store } from "./store.ts";

// Shows: docs/alerts.md#bounds: A query reads 20 million rows and 4 GB of the store at most
it("asks the store to read no more for an evaluation than a query may", async () => {
  const settings: unknown[] = [];
  const exec = async (params: { clickhouse_settings?: object }) => {
    settings.push(params.clickhouse_settings);
    return { stream: Readable.from([Buffer.from('{"data": []}')]) };
  };
  const client = { exec } as unknown as ClickHouseClient;
  const store: Store = { client, database: "slipway", cluster: undefined };
  const selection = { projects: [{ organization: "acme", project: "pshop" }], from: 0, to: 60 };
  await projectUsage(store, selection, 30);
  await projectRequests(store, selection);
  const limits = {
    max_rows_to_read: String(ALERTS_READ_LIMIT.rows),
    max_bytes_to_read: String(ALERTS_READ_LIMIT.bytes),
    max_execution_time: 10,
    max_memory_usage: "1000000000",
  };
  expect(settings).toEqual([expect.objectContaining(limits), expect.objectContaining(limits)]);
  expect(ALERTS_READ_LIMIT).toEqual({ rows: 20_000_000, bytes: 4_000_000_000 });
});

it("lets a full group of projects be read, of a large store's many parts", () => {
  const [projects, granule, largeParts, rowBytes] = [200, 8_192, 10, 200];
  const rows = projects * granule * largeParts;
  expect(ALERTS_READ_LIMIT.rows).toBeGreaterThan(rows);
  expect(ALERTS_READ_LIMIT.bytes).toBeGreaterThan(rows * rowBytes);
});
