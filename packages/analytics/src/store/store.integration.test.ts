import { rm } from "node:fs/promises";
import { join, relative } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { waitFor } from "../../../../hack/lib/wait.ts";
import {
  ADDRESSES,
  PATHS,
  pick,
  random,
  randomEvent,
  STATUSES,
} from "../../../../test/kit/analytics/store/events.ts";
import { counts, groups, p95, selected, shares } from "../../../../test/kit/analytics/store/expected.ts";
import { startClickHouse, type TestClickHouse } from "../../../../test/kit/servers/clickhouse.ts";
import type { AccessEvent, EventBatch } from "../event.ts";
import { OTHER } from "./bounds.ts";
import { insertEvents } from "./insert.ts";
import { appliedVersions, migrate } from "./migrate.ts";
import * as queries from "./queries.ts";
import { rowsOf } from "./rows.ts";
import { migrations, name, rollups } from "./schema.ts";
import type { Filter, Selection } from "./statement.ts";
import { openStore, type Store, StoreUnavailable } from "./store.ts";

/** The engine takes a while to come up on a busy machine, and longer when its image has to be made. */
const START_MS = 900_000;
const HOUR = 3_600_000;
const MINUTE = 60_000;

let server: TestClickHouse;
const open: Store[] = [];

const connect = (database: string): Store => {
  const { url, username, passwordFile } = server;
  const store = openStore({ url, username, passwordFile, database, caFile: undefined, cluster: undefined });
  open.push(store);
  return store;
};

beforeAll(async () => {
  server = await startClickHouse();
}, START_MS);

afterAll(async () => {
  for (const { client } of open) {
    await client.close();
  }
  await server?.stop();
});

const inBatches = (events: AccessEvent[], size: number): EventBatch[] =>
  Array.from({ length: Math.ceil(events.length / size) }, (_, at) => ({
    id: `file-1:${at * size}-${(at + 1) * size}`,
    events: events.slice(at * size, (at + 1) * size),
  }));

/** What {@link countedBy} gives when every table counts them all. */
const everywhere = (n: number): number[] => [n, ...rollups.map(() => n)];

/** Events that each table has. */
async function countedBy(store: Store): Promise<number[]> {
  const tables = rollups.map(({ table }) => `SELECT sum(requests) AS n FROM ${name(store, table)}`);
  const asked = [`SELECT count() AS n FROM ${name(store, "events")}`, ...tables];
  const found = await Promise.all(
    asked.map((query) => rowsOf<{ n: number }>(store, { query, parameters: {} })),
  );
  return found.map(({ rows }) => rows[0]?.n ?? 0);
}

// Shows: docs/analytics.md#the-api: migrations run once, also concurrently and again
test("the schema is applied once, by two processes concurrently and again", async () => {
  const store = connect("twice");
  const versions = migrations.map(({ version }) => version);
  const both = await Promise.all([migrate(store), migrate(store)]);
  expect(new Set(both.flat())).toEqual(new Set(versions));
  expect(await migrate(store)).toEqual([]);
  expect(await appliedVersions(store)).toEqual(versions);
  const next = { version: 1_000, name: "next", statements: () => ["SELECT 1"] };
  expect(await migrate(store, [...migrations, next])).toEqual([1_000]);
});

// Shows: docs/analytics.md#the-api: every number is that of a plain computation over the same events
test("answers are those of a plain computation over the same events, whatever the window and the filter, and batches that come twice count once", async () => {
  const store = connect("exact");
  await migrate(store);
  const next = random(8);
  const end = Math.floor(Date.now() / HOUR) * HOUR;
  const [from, to] = [end - 3 * HOUR, end];
  const projects = ["o1/p1", "o1/p1", "o1/p2", "o2/p1"];
  const events = Array.from({ length: 6_000 }, () => randomEvent(next, projects, from, to));
  const batches = inBatches(events, 700);
  for (const batch of batches) {
    await insertEvents(store, batch);
    if (next() < 0.4) {
      await insertEvents(store, batch);
    }
  }
  await Promise.all([batches[3], batches[0], batches[3]].map((batch) => batch && insertEvents(store, batch)));
  expect(await countedBy(store)).toEqual(everywhere(events.length));

  const moment = (): number => {
    const at = Math.floor(from - MINUTE + next() * (to - from + 2 * MINUTE));
    return next() < 0.5 ? at : Math.floor(at / MINUTE) * MINUTE;
  };
  const windows = Array.from({ length: 7 }, () => {
    const [one, other] = [moment(), moment()];
    return { from: Math.min(one, other), to: Math.max(one, other) + 1 };
  });
  windows.push(
    { from, to },
    { from: from + 30_500, to: from + 30_501 },
    { from: from + 10_000, to: from + 50_000 },
    { from: from + MINUTE, to: from + 2 * MINUTE },
    { from: from + HOUR, to: from + 2 * HOUR },
    { from: from + HOUR - 1, to: from + 2 * HOUR + 1 },
    { from: to + HOUR, to: to + 2 * HOUR },
  );
  const filters: (() => Filter)[] = [
    () => ({}),
    () => ({ statusCode: pick(next, STATUSES) }),
    () => ({ statusClass: pick(next, [2, 3, 4, 5]) }),
    () => ({ sourceIp: pick(next, ADDRESSES) }),
    () => ({ path: pick(next, [...PATHS, "/a/:id", "/none"]) }),
    () => ({ statusCode: pick(next, STATUSES), statusClass: pick(next, [2, 4]), path: pick(next, PATHS) }),
  ];
  for (const [at, window] of windows.entries()) {
    const [organization = "", project = ""] = (at % 4 === 3 ? "o2/p1" : "o1/p1").split("/");
    const filter = (filters[at % filters.length] as () => Filter)();
    await compare(store, events, { organization, project, window, filter });
  }
});

async function compare(store: Store, events: AccessEvent[], selection: Selection): Promise<void> {
  const those = selected(events, selection);
  const about = JSON.stringify(selection);
  const agree = (actual: queries.Counts, list: AccessEvent[]): void => {
    const { p95LatencyMs, ...rest } = actual;
    expect(rest, about).toMatchObject(counts(list));
    const exact = p95(list);
    if (exact === null || p95LatencyMs === null) {
      expect(p95LatencyMs, about).toBe(exact);
    } else {
      expect(Math.abs(p95LatencyMs - exact), about).toBeLessThanOrEqual(exact * 0.004 + 0.001);
    }
  };
  const classes = Object.fromEntries(
    [2, 3, 4, 5].map((one) => [one, those.filter(({ status }) => Math.floor(status / 100) === one).length]),
  );
  const summary = await queries.summary(store, selection);
  agree(summary, those);
  expect(summary.classes, about).toEqual(classes);

  const byStatus = groups(those, ({ status }) => String(status));
  const actual = await queries.byStatus(store, selection);
  expect(actual.map(({ status }) => String(status)).sort(), about).toEqual(
    byStatus.map(([status]) => status).sort(),
  );
  expect(await queries.userAgents(store, selection), about).toEqual(
    shares(those, ({ userAgent }) => userAgent),
  );

  const paging = { page: 2, limit: 3 };
  const statuses = await queries.statusCodes(store, selection, paging);
  expect(statuses.total, about).toBe(byStatus.length);
  expect(
    statuses.items.map(({ status }) => String(status)),
    about,
  ).toEqual(byStatus.slice(3, 6).map(([key]) => key));
  for (const [at, [, list]] of byStatus.slice(3, 6).entries()) {
    const item = statuses.items[at] as queries.StatusCounts;
    agree(item, list);
    expect(item.routes, about).toEqual(shares(list, ({ route }) => route));
    expect(item.userAgents, about).toEqual(shares(list, ({ userAgent }) => userAgent));
  }

  const columns = { route: "route", user_agent: "userAgent", source_ip: "sourceIp" } as const;
  for (const [column, key] of Object.entries(columns) as [
    keyof typeof columns,
    (typeof columns)["route"],
  ][]) {
    const all = groups(those, (event) => event[key]);
    const page = await queries.named(store, selection, column, { page: 1, limit: 50 });
    expect(page.total, about).toBe(all.length);
    expect(
      page.items.map((item) => item.name),
      about,
    ).toEqual(all.map(([text]) => text));
    for (const [at, [, list]] of all.entries()) {
      const item = page.items[at] as queries.NamedCounts;
      agree(item, list);
      expect(item.statusCodes, about).toEqual(shares(list, ({ status }) => String(status)));
    }
  }

  const newest = await queries.requestEvents(store, selection, { page: 1, limit: 50 });
  expect(newest.total, about).toBe(those.length);
  const times = those.map(({ at }) => at).sort((one, other) => other - one);
  expect(
    newest.items.map(({ at }) => at),
    about,
  ).toEqual(times.slice(0, 50));
  for (const { latencyMs, ...item } of newest.items) {
    expect(those, about).toContainEqual(
      expect.objectContaining({ ...item, latencyUs: Math.round(latencyMs * 1000) }),
    );
  }
  const beyond = await queries.requestEvents(store, selection, { page: 1_000_000, limit: 50 });
  expect(beyond, about).toEqual({ items: [], total: those.length });
}

// Shows: docs/analytics.md#the-api: also when the server is killed while it inserts batches
test("a server that is killed while it inserts batches has each of them once, in every table, after they were tried again", async () => {
  const store = connect("crashes");
  await migrate(store);
  const next = random(20);
  const end = Date.now();
  const events = Array.from({ length: 7_000 }, () => randomEvent(next, ["o1/p1"], end - HOUR, end));
  const batches = inBatches(events, 200);
  let crashes = 0;
  let taken = 0;
  const crashAfter = [5, 17, 30];
  for (const batch of batches) {
    const dies = taken === crashAfter[crashes];
    const sent = insertEvents(store, batch).catch((error: unknown) => error);
    if (dies) {
      crashes += 1;
      // Not before it has begun, and often not before it is done.
      await new Promise((resolve) => setTimeout(resolve, next() * 40));
      await server.crash();
      const failed = await sent;
      if (failed !== undefined) {
        expect(failed).toBeInstanceOf(StoreUnavailable);
      }
      await server.restart();
    } else {
      expect(await sent).toBeUndefined();
    }
    // The one that may have been lost, as a collector does that had no answer.
    if (dies) {
      await waitFor("the batch to be taken", 30_000, () => insertEvents(store, batch).then(() => true));
    }
    taken += 1;
  }
  // And once more everything, as a collector does that lost its memory of it.
  for (const batch of batches) {
    await insertEvents(store, batch);
  }
  expect(crashes).toBe(crashAfter.length);
  expect(await countedBy(store)).toEqual(everywhere(events.length));
});

// Shows: docs/analytics.md#the-api: also when the server is killed after it has noted a batch and before it has it
test("a batch that a killed server had noted, and not stored yet, is stored when it is tried again", async () => {
  const store = connect("noted");
  await migrate(store);
  const next = random(21);
  const end = Date.now();
  const events = Array.from({ length: 600 }, () => randomEvent(next, ["o1/p1"], end - MINUTE, end));
  const batches = inBatches(events, 200);
  for (const batch of batches) {
    await insertEvents(store, batch);
  }
  // The last two of each table, as of concurrent inserts, unless they were merged already.
  const { rows } = await rowsOf<{ path: string }>(store, {
    query: `SELECT path FROM system.parts
      WHERE database = 'noted' AND active AND table != 'schema_migrations' AND min_block_number = max_block_number
      ORDER BY max_block_number DESC LIMIT 2 BY table`,
    parameters: {},
  });
  expect(rows.length).toBeGreaterThan(0);
  await server.crash();
  for (const { path } of rows) {
    await rm(join(server.data, relative("/media/data", path)), { recursive: true });
  }
  await server.restart();
  expect((await countedBy(store))[0]).toBeLessThan(events.length);
  for (const _ of ["restored", "taken once more"]) {
    for (const batch of batches) {
      await insertEvents(store, batch);
    }
    expect(await countedBy(store)).toEqual(everywhere(events.length));
    await server.crash();
    await server.restart();
  }
});

// Shows: docs/analytics.md#the-api: the number of distinct names is bounded
test("a batch that is too long for one insert counts once, and names beyond the bound are counted together", async () => {
  const store = connect("long");
  await migrate(store);
  const at = Math.floor(Date.now() / MINUTE) * MINUTE - 10 * MINUTE;
  const events = Array.from(
    { length: 20_000 },
    (_, one): AccessEvent => ({
      ...randomEvent(random(one), ["o1/p1"], at, at + 1),
      route: `/${one % 1_000}`,
      path: `/${"x".repeat(500)}`,
      userAgent: `agent ${one % 150}`,
    }),
  );
  const batch = { id: "long", events };
  await insertEvents(store, batch);
  await insertEvents(store, batch);
  expect(await countedBy(store)).toEqual(everywhere(20_000));
  const selection = { organization: "o1", project: "p1", window: { from: at, to: at + MINUTE }, filter: {} };
  const routes = await queries.named(store, selection, "route", { page: 1, limit: 50 });
  expect(routes.total).toBe(201);
  expect(routes.items[0]).toMatchObject({ name: OTHER, requests: 800 * 20 });
  const agents = await queries.userAgents(store, selection);
  expect(Object.keys(agents)).toHaveLength(queries.MOST_NAMED);
  expect(Object.values(agents).reduce((total, one) => total + one, 0)).toBe(20_000);
});

// Shows: docs/analytics.md#the-api: an event that no column can hold delays no other
test("events of all times and of numbers that no column can store delay nothing", async () => {
  const store = connect("odd");
  await migrate(store);
  const event = { ...randomEvent(random(1), ["o1/p1"], 0, 1), at: Date.now() };
  const odd = [
    { ...event, latencyUs: -5.5, bytesSent: Number.NaN, bytesReceived: 2 ** 70 },
    { ...event, path: "/\ud800", userAgent: "\udfff" },
    ...[Number.NaN, -1e16, 1e16, 1e28, 8e12].map((at) => ({ ...event, at })),
    ...Array.from({ length: 101 }, (_, day) => ({ ...event, at: event.at - day * 86_400_000 })),
  ];
  await insertEvents(store, { id: "odd", events: odd });
  const window = { from: event.at - HOUR, to: event.at + 1 };
  const actual = await queries.summary(store, { organization: "o1", project: "p1", window, filter: {} });
  expect(actual.requests).toBe(3);
});

// Shows: docs/analytics.md#the-api: 503 `ANALYTICS_BUSY`: the query needs too much time or memory, or
test("an unavailable store and a wrong query fail with different errors", async () => {
  const gone = openStore({
    ...{ url: "http://127.0.0.1:1", username: "u", passwordFile: undefined },
    ...{ database: "d", caFile: undefined, cluster: undefined },
  });
  open.push(gone);
  await expect(appliedVersions(gone)).rejects.toBeInstanceOf(StoreUnavailable);
  const store = connect("exact");
  await expect(rowsOf(store, { query: "SELEC 1", parameters: {} })).rejects.toMatchObject({ code: "62" });
  const long = (rows: number) => `SELECT repeat('x', 1000000) AS text FROM numbers(${rows})`;
  expect((await rowsOf(store, { query: long(7), parameters: {} })).rows).toHaveLength(7);
  await expect(rowsOf(store, { query: long(9), parameters: {} })).rejects.toMatchObject({
    name: "StoreUnavailable",
    cause: { message: expect.stringContaining("more than 8388608 bytes") },
  });
  const endless = { query: "SELECT sum(sipHash64(number)) FROM numbers(1000000000000)", parameters: {} };
  await expect(rowsOf(store, endless, { seconds: 1 })).rejects.toMatchObject({
    name: "StoreUnavailable",
    busy: true,
  });
  const cancelled = new AbortController();
  const began = performance.now();
  setTimeout(() => cancelled.abort(), 100);
  await expect(rowsOf(store, endless, { signal: cancelled.signal })).rejects.toMatchObject({
    name: "StoreUnavailable",
    busy: false,
  });
  expect(performance.now() - began).toBeLessThan(5_000);
});
