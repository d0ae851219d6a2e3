import { statfs } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { random, randomEvent } from "../../../../test/kit/analytics/store/events.ts";
import { startClickHouse, type TestClickHouse } from "../../../../test/kit/servers/clickhouse.ts";
import { insertEvents } from "./insert.ts";
import { omittedLogs, omittedOf } from "./log-search.ts";
import { insertLogs } from "./logs.ts";
import { migrate } from "./migrate.ts";
import { freeBytes, rowsOf } from "./rows.ts";
import {
  foundation,
  LOGS_KEEP_FREE_BYTES,
  migrations,
  name,
  RETENTION_DAYS,
  type Rollup,
  rollups,
} from "./schema.ts";
import { openStore, type Store } from "./store.ts";

/** The engine takes a while to come up on a busy machine, and longer when its image has to be made. */
const START_MS = 900_000;
const DAY = 86_400_000;
const PER_DAY = 20;

let server: TestClickHouse;
const open: Store[] = [];
beforeAll(async () => {
  server = await startClickHouse();
}, START_MS);
afterAll(async () => {
  for (const { client } of open) {
    await client.close();
  }
  await server?.stop();
});

function connect(database: string, cluster?: string): Store {
  const { url, username, passwordFile } = server;
  const store = openStore({ url, username, passwordFile, database, caFile: undefined, cluster });
  open.push(store);
  return store;
}

/** Requests of each day (UTC) that a table still has, as `2026-11-22`. */
async function days(store: Store, table: string, time: string, count: string): Promise<Map<string, number>> {
  const query = `SELECT toString(toDate(${time}, 'UTC')) AS day, ${count} AS n FROM ${name(store, table)}
    GROUP BY day ORDER BY day`;
  const { rows } = await rowsOf<{ day: string; n: number }>(store, { query, parameters: {} });
  return new Map(rows.map(({ day, n }) => [day, n]));
}

const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);
/** Which partition of a table a moment belongs to: a day (UTC), of hours a week that begins on Monday. */
function partitionOf(at: number, unit: Rollup["unit"] | "event"): number {
  const day = Math.floor(at / DAY);
  // The epoch was a Thursday.
  return unit === "hour" ? Math.floor((day + 3) / 7) : day;
}

// Shows: docs/analytics.md#the-api: rows older than eight days are deleted
test("rows that are older than eight days go, of every table with its partition, and no younger one does", async () => {
  const store = connect("ttl");
  await migrate(store);
  const next = random(8);
  const now = Date.now();
  const events = Array.from({ length: 30 * PER_DAY }, (_, index) => {
    const at = now - Math.floor(index / PER_DAY) * DAY - 60_000;
    return { ...randomEvent(next, ["o1/p1"], at - 3_600_000, at), at };
  });
  // Merges take what is too old as they come to it: held back, so that all of it is there once.
  const tables = [
    { table: "events", time: "at", count: "count()", unit: "event" as const },
    ...rollups.map(({ table, unit }) => ({ table, time: unit, count: "sum(requests)", unit })),
  ];
  for (const { table } of tables) {
    await store.client.command({ query: `SYSTEM STOP TTL MERGES ${name(store, table)}` });
  }
  await insertEvents(store, { id: "old", events });
  for (const { table, time, count } of tables) {
    const found = await days(store, table, time, count);
    expect([...found.values()], table).toEqual(Array.from({ length: 30 }, () => PER_DAY));
  }
  for (const { table } of tables) {
    await store.client.command({ query: `SYSTEM START TTL MERGES ${name(store, table)}` });
    await store.client.command({ query: `OPTIMIZE TABLE ${name(store, table)} FINAL` });
  }
  for (const { table, time, count, unit } of tables) {
    const found = await days(store, table, time, count);
    const newest = new Map<number, number>();
    for (const { at } of events) {
      const partition = partitionOf(at, unit);
      newest.set(partition, Math.max(newest.get(partition) ?? 0, at));
    }
    // The oldest may go at once, or with the last of their partition.
    const must = events.filter(({ at }) => at + RETENTION_DAYS * DAY >= now).map(({ at }) => dayOf(at));
    const may = events.filter(
      ({ at }) => (newest.get(partitionOf(at, unit)) ?? 0) + RETENTION_DAYS * DAY >= now,
    );
    expect([...found.keys()], table).toEqual(expect.arrayContaining([...new Set(must)]));
    const allowed = may.map(({ at }) => dayOf(at));
    expect(allowed, table).toEqual(expect.arrayContaining([...found.keys()]));
    expect(
      [...found.values()].every((n) => n === PER_DAY),
      table,
    ).toBe(true);
  }
});

test("lines of logs go once they are as old as their days say, and no younger one does", async () => {
  const store = connect("logs");
  await migrate(store);
  await store.client.command({ query: `SYSTEM STOP TTL MERGES ${name(store, "logs")}` });
  const now = Date.now();
  const lines = (project: string, days: number) =>
    Array.from({ length: 10 }, (_, day) => ({
      ...{ organization: "o1", project, instance: "i", container: "app", stream: "stdout" as const },
      at: `${now - day * DAY - 60_000}000000`,
      ...{ level: null, text: "x", continues: false, file: "0123456789abcdef", offset: day },
      ...{ omittedLines: 0, omittedBytes: 0, lostFiles: 0, days },
    }));
  await insertLogs(store, { id: "short", events: lines("short", 3) });
  await insertLogs(store, { id: "long", events: lines("long", 7) });
  // Another batch of the same lines is another one; the same is left out.
  await insertLogs(store, { id: "long", events: lines("long", 7) });
  const left = async () => {
    const query = `SELECT project, count() AS n FROM ${name(store, "logs")} GROUP BY project ORDER BY project`;
    return (await rowsOf<{ project: string; n: number }>(store, { query, parameters: {} })).rows;
  };
  expect(await left()).toEqual([
    { project: "long", n: 10 },
    { project: "short", n: 10 },
  ]);
  await store.client.command({ query: `SYSTEM START TTL MERGES ${name(store, "logs")}` });
  await store.client.command({ query: `OPTIMIZE TABLE ${name(store, "logs")} FINAL` });
  expect(await left()).toEqual([
    { project: "long", n: 7 },
    { project: "short", n: 3 },
  ]);
});

// Shows: docs/logs.md#over-v1: requests are stored while lines wait for room on the store's disk
test("lines wait while the store's disk is short of room, and requests do not", async () => {
  const store = connect("short");
  await migrate(store);
  const keepFree = "min_free_disk_bytes_to_perform_insert";
  const kept = `SELECT create_table_query AS text FROM system.tables WHERE database = 'short' AND name = 'logs'`;
  const [table] = (await rowsOf<{ text: string }>(store, { query: kept, parameters: {} })).rows;
  expect(table?.text).toContain(`${keepFree} = ${LOGS_KEEP_FREE_BYTES}`);
  const keep = (bytes: number) =>
    store.client.command({
      query: `ALTER TABLE ${name(store, "logs")} MODIFY SETTING ${keepFree} = ${bytes}`,
    });
  const at = Date.now();
  const line = {
    ...{ organization: "o1", project: "p1", instance: "i", container: "app", stream: "stdout" as const },
    ...{ at: `${at}000000`, level: null, text: "x", continues: false, file: "0123456789abcdef", offset: 2 },
    ...{ omittedLines: 0, omittedBytes: 0, lostFiles: 0, days: 8 },
  };
  // More than any disk has.
  await keep(1e18);
  await expect(insertLogs(store, { id: "line", events: [line] })).rejects.toMatchObject({
    name: "StoreUnavailable",
    busy: false,
  });
  await insertEvents(store, { id: "request", events: [randomEvent(random(1), ["o1/p1"], at - 60_000, at)] });
  const counted = async (table: string) => [...(await days(store, table, "at", "count()")).values()];
  expect([await counted("events"), await counted("logs")]).toEqual([[1], []]);
  const { bavail, bsize } = await statfs(server.data);
  const free = (await freeBytes(store)) ?? 0;
  // Others use the disk meanwhile.
  expect(free / (bavail * bsize)).toBeCloseTo(1, 1);
  // Sent again once there is room, it is there once.
  await keep(0);
  for (let time = 0; time < 2; time += 1) {
    await insertLogs(store, { id: "line", events: [line] });
  }
  expect(await counted("logs")).toEqual([1]);
});

test("what a long log lacks is read without its lines", async () => {
  const store = connect("lacking");
  await migrate(store);
  const now = Date.now();
  const GRANULE = 8_192;
  const events = Array.from({ length: 10 * GRANULE }, (_, offset) => ({
    ...{ organization: "o1", project: "p1", instance: "i", container: "app", stream: "stdout" as const },
    ...{ at: `${now - 60_000}${String(offset).padStart(6, "0")}`, level: null, text: "", continues: false },
    ...{ file: "0123456789abcdef", offset, days: 8 },
    ...{ omittedLines: 0, omittedBytes: offset === 50_000 ? 7 : 0, lostFiles: offset === 3 ? 2 : 0 },
  }));
  await insertLogs(store, { id: "long", events });
  const selection = { organization: "o1", project: "p1", window: { from: now - 120_000, to: now } };
  const { query, parameters } = omittedOf(store, selection);
  const answer = await store.client.query({ query, query_params: parameters, format: "JSON" });
  const { statistics } = await answer.json();
  expect(statistics?.rows_read).toBeGreaterThan(0);
  // Two of ten; the last of a part may be half as long again.
  expect(statistics?.rows_read).toBeLessThanOrEqual(2.5 * GRANULE);
  expect(await omittedLogs(store, selection)).toEqual({ lines: 0, bytes: 7, files: 2 });
});

// Shows: docs/analytics.md#the-api: replicated tables differ from those of a single server only in their
test("the statements of replicated tables are the engine's own language, and run but for the replication", async () => {
  const store = connect("replicated", "main");
  const statements = [...foundation(store), ...migrations.flatMap(({ statements }) => statements(store))];
  const run = (query: string) =>
    store.client.command({ query }).then(
      () => "done",
      (error: { code?: string }) => error.code,
    );
  const alone = statements.map((statement) => statement.replaceAll(" ON CLUSTER `main`", ""));
  // The same columns, keys, TTL and settings where nothing is replicated.
  for (const statement of alone) {
    const plain = statement.replace(/Replicated(\w*MergeTree)\('[^']*', '[^']*'(?:, )?/, "$1(");
    expect(await run(plain), plain).toBe("done");
  }
  for (const statement of statements) {
    const query = "SELECT formatQuery({statement:String}) AS text";
    const { rows } = await rowsOf<{ text: string }>(store, { query, parameters: { statement } });
    expect(rows[0]?.text).toContain("ON CLUSTER main");
    // All that the engine misses is the cluster of that name; of a change of a table it says that there is none before it reads the name.
    expect(await run(statement), statement).toBe(/^\s*ALTER/.test(statement) ? "392" : "701");
  }
  await run("CREATE DATABASE alone");
  for (const statement of alone.filter((one) => one.includes("ENGINE = Replicated"))) {
    const elsewhere = statement.replaceAll("`replicated`", "`alone`");
    // And of a replicated table the macros, and then its Keeper.
    expect(await run(elsewhere), statement).toBe("139");
    expect(await run(elsewhere.replace("{shard}", "1").replace("{replica}", "a")), statement).toBe("225");
  }
});
