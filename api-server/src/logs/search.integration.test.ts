import { insertLogs, type LogEvent, migrate, openStore, type Store, searchLogs } from "@slipway/analytics";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databaseSpec } from "../../../test/kit/api-server/databases.ts";
import { type FakeHarness, jobSpec, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { startClickHouse, type TestClickHouse } from "../../../test/kit/servers/clickhouse.ts";
import { Analytics } from "../analytics/analytics.ts";
import { routes } from "../routes.ts";
import { MAX_PAGE_BYTES } from "./search.ts";

/** The API over a real store, whose lines are known. */

/** Its image may have to be built. */
const START_MS = 900_000;
const HOUR = 3_600_000;

let server: TestClickHouse;
let store: Store;
let harness: FakeHarness;
let headers: Record<string, string>;
let now = 0;

const line = (change: Partial<LogEvent> & { ago?: number; nanosecond?: number }): LogEvent => {
  const { ago = 60_000, nanosecond = 0, ...rest } = change;
  return {
    ...{ organization: "acme", project: "plog", instance: "plog-abc-1", container: "app" },
    at: `${now - ago}${String(nanosecond).padStart(6, "0")}`,
    ...{ stream: "stdout", level: "info", text: "", continues: false, file: "00000000000000aa", offset: 0 },
    ...{ omittedLines: 0, omittedBytes: 0, lostFiles: 0, days: 8 },
    ...rest,
  } as LogEvent;
};

/** Pages have to separate lines that have one nanosecond in common. */
const SAME = 250;
const knownLines = (): LogEvent[] => [
  ...Array.from({ length: SAME }, (_, offset) =>
    line({ ago: 30_000, text: `burst ${offset}`, offset, instance: `plog-abc-${offset % 3}` }),
  ),
  line({ text: "Connection REFUSED by 10.0.0.1", level: "error", stream: "stderr", nanosecond: 2 }),
  line({ text: "100%_sure' OR 1=1 --\\", level: null, nanosecond: 1, continues: true }),
  line({ text: "é\u0000\u001b[31m", level: "fatal", nanosecond: 3, instance: "gone-1" }),
  line({ ago: 5 * HOUR, text: "earlier", level: "warn" }),
  line({ ago: 6 * 24 * HOUR, text: "days ago" }),
  line({ ago: 40_000, omittedLines: 12, omittedBytes: 3_400 }),
  // A line that was over the bounds in part.
  line({ ago: 42_000, omittedBytes: 5 }),
  line({ ago: 41_000, lostFiles: 1, instance: "gone-1" }),
  // Others'.
  line({ project: "pother", text: "secret" }),
  line({ organization: "globex", text: "secret" }),
];

beforeAll(async () => {
  server = await startClickHouse();
  const { url, username, passwordFile } = server;
  const place = { database: "slipway", caFile: undefined, cluster: undefined };
  store = openStore({ url, username, passwordFile, ...place }, { timeoutMs: 12_000 });
  await migrate(store);
  now = Date.now();
  // Once, however often it comes.
  for (let time = 0; time < 3; time += 1) {
    await insertLogs(store, { id: "known", events: knownLines() });
  }
  harness = await startFakeHarness({ analytics: new Analytics(store) });
  headers = harness.key("acme", "* on project:*");
  await harness.project("acme", "plog", { name: "the-log" });
  await harness.project("acme", "plong", { name: "long-lines" });
  await harness.project("acme", "pdata", databaseSpec("postgresql"));
  await harness.project("acme", "pjob", jobSpec);
}, START_MS);

afterAll(async () => {
  await harness?.close();
  await store?.client.close();
  await server?.stop();
});

const get = async (query: string, id = "plog", credential = headers) => {
  const url = `/v1/project/${id}/logs/search${query === "" ? "" : `?${query}`}`;
  const response = await harness.app.inject({ url, headers: credential });
  return { status: response.statusCode, body: response.json() };
};

/** A success, which fits the schema that the document has of it. */
async function search(query: string, id?: string) {
  const { status, body } = await get(query, id);
  expect([status, body.message, body.code]).toEqual([200, undefined, undefined]);
  const schema = routes.find(({ operationId }) => operationId === "searchProjectLogs")?.responses[200]
    ?.schema;
  expect(schema?.safeParse(body).error).toBeUndefined();
  return body;
}

const messages = async (query: string) =>
  (await search(query)).data.map(({ message }: { message: string }) => message);
const ago = (ms: number) => encodeURIComponent(new Date(now - ms).toISOString());

describe("search of logs", () => {
  // Shows: docs/logs.md#over-v1: text, levels, instance and time leave out lines, and what is given is never SQL
  it.each([
    ["q=refused", ["Connection REFUSED by 10.0.0.1"]],
    ["q=%25_sure", ["100%_sure' OR 1=1 --\\"]],
    [`q=${encodeURIComponent("' OR 1=1 --\\")}`, ["100%_sure' OR 1=1 --\\"]],
    [`q=${encodeURIComponent("{p0:String}")}`, []],
    ["q=secret", []],
    ["level=fatal", ["é\u0000\u001b[31m"]],
    ["level=error,fatal", ["é\u0000\u001b[31m", "Connection REFUSED by 10.0.0.1"]],
    ["level=error,fatal&order=oldest", ["Connection REFUSED by 10.0.0.1", "é\u0000\u001b[31m"]],
    ["level=none", ["100%_sure' OR 1=1 --\\"]],
    ["instance=gone-1", ["é\u0000\u001b[31m"]],
    ["instance=none-such", []],
    ["q=earlier", []],
    ["q=ear&from=<6>", ["earlier"]],
    ["from=<5>&to=<4>", ["earlier"]],
    ["from=<5-1>&to=<4>", []],
    ["from=<6>&to=<5>", []],
    ["to=<144-1>", ["days ago"]],
    ["q=days&from=2020-01-01T00:00:00Z&to=9999-12-31T23:59:59.999Z", ["days ago"]],
  ])("%s", async (text, want) => {
    // Hours ago, and milliseconds less.
    const query = text.replace(/<(\d+)(?:-(\d+))?>/g, (_, hours, less) => ago(hours * HOUR - (less ?? 0)));
    expect(await messages(query)).toEqual(want);
  });

  // Shows: docs/logs.md#over-v1: pages are stable, in both orders
  it.each(["newest", "oldest"])("all pages together have each line once, %s first", async (order) => {
    const project = `p${order}`;
    await harness.project("acme", project, { name: `pages-${order}` });
    const burst = Array.from({ length: SAME }, (_, offset) =>
      line({ project, ago: 30_000, text: `burst ${offset}`, offset, instance: `i-${offset % 3}` }),
    );
    const others = [1, 2, 3].map((nanosecond) => line({ project, text: `other ${nanosecond}`, nanosecond }));
    await insertLogs(store, { id: `pages-${order}`, events: [...burst, ...others] });
    const found: string[] = [];
    let next: string | null = "";
    let pages = 0;
    for (; next !== null && pages < 100; pages += 1) {
      const page: { data: { message: string; timestamp: string }[]; next_cursor: string | null } =
        await search(`order=${order}&limit=7${next === "" ? "" : `&cursor=${next}`}`, project);
      found.push(...page.data.map(({ timestamp, message }) => `${timestamp} ${message}`));
      next = page.next_cursor;
      if (pages === 2) {
        // Lines of the window that come meanwhile, on either side of where the pages are.
        const late = [
          line({ project, ago: 10_000, text: "late" }),
          line({ project, ago: 90_000, text: "late" }),
        ];
        await insertLogs(store, { id: `late-${order}`, events: late });
      }
    }
    expect(pages).toBe(Math.ceil((SAME + 4) / 7));
    expect(new Set(found).size).toBe(SAME + 4);
    expect(found.length).toBe(SAME + 4);
    // The one whose place had been passed is on none of the pages that follow, nor does it move them.
    expect(found.at(-1)).toMatch(/ late$/);
    const times = found.map((one) => one.slice(0, 30));
    expect(times).toEqual(order === "oldest" ? [...times].sort() : [...times].sort().reverse());
  });

  // Shows: docs/logs.md#over-v1: 400 `VALIDATION_FAILED`: each wrong parameter is named
  it("a cursor goes on in its own search alone, without another window", async () => {
    const { next_cursor: next } = await search("limit=1&level=info&q=burst");
    const own = `limit=2&level=info&q=burst&cursor=${next}`;
    expect((await search(own)).data).toHaveLength(2);
    for (const query of [
      own.replace("level=info", "level=info,warn"),
      own.replace("&q=burst", ""),
      `${own}&order=oldest`,
      `${own}&instance=plog-abc-1`,
      `${own}&from=${ago(HOUR)}`,
      `${own}&to=${ago(0)}`,
    ]) {
      const { status, body } = await get(query);
      expect([query, status, body.code]).toEqual([query, 400, "VALIDATION_FAILED"]);
      expect(JSON.stringify(body)).toContain(`"cursor"`);
    }
    expect((await get(own, "plong")).status).toBe(400);
  });

  // Shows: docs/logs.md#over-v1: a page has at most 1 MiB of text as JSON
  it.each(["newest", "oldest"])("pages end by their bytes as JSON, %s first", async (order) => {
    // Six bytes of JSON for each, so that 10 of them fill a page.
    const text = "\u0001".repeat(16 * 1024);
    const rows = Array.from({ length: 60 }, (_, offset) =>
      line({ project: "plong", ago: 20_000, nanosecond: offset % 7, text, offset, file: "00000000000000bb" }),
    );
    await insertLogs(store, { id: "long", events: rows });
    const seen: string[] = [];
    let next: string | null = "";
    for (let pages = 0; next !== null && pages < 100; pages += 1) {
      const query: string = `order=${order}&limit=200${next === "" ? "" : `&cursor=${next}`}`;
      const page: { data: { timestamp: string }[]; next_cursor: string | null } = await search(
        query,
        "plong",
      );
      expect(JSON.stringify(page).length).toBeLessThan(1_100_000);
      expect(page.data).toHaveLength(10);
      seen.push(...page.data.map(({ timestamp }) => timestamp));
      next = page.next_cursor;
    }
    expect(seen).toHaveLength(rows.length);
    // And no more than the line that begins the next page comes from the store.
    const window = { from: now - HOUR, to: now };
    const about = { organization: "acme", project: "plong", window, order: order as "newest" | "oldest" };
    expect(await searchLogs(store, { ...about, limit: 201, maxSize: MAX_PAGE_BYTES })).toHaveLength(11);
    expect(seen).toEqual(order === "oldest" ? seen.toSorted() : seen.toSorted().reverse());
  });

  it("says of each line what is known, and of the window what it lacks", async () => {
    const { data, omitted, next_cursor } = await search("level=none,error");
    expect(data[1]).toEqual({
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}000001Z$/),
      ...{ instance: "plog-abc-1", container: "app", stream: "stdout", level: null },
      ...{ message: "100%_sure' OR 1=1 --\\", continues: true },
    });
    expect([omitted, next_cursor]).toEqual([{ lines: 12, bytes: 3_405, files: 1 }, null]);
    expect((await search("instance=gone-1")).omitted).toEqual({ lines: 0, bytes: 0, files: 1 });
    expect((await search(`to=${ago(HOUR)}`)).omitted).toEqual({ lines: 0, bytes: 0, files: 0 });
  });

  // Shows: docs/logs.md#over-v1: 400 `PROJECT_TYPE_MISMATCH`: a job
  it("is for databases, and not for jobs, whose runs have logs of their own", async () => {
    expect((await search("", "pdata")).data).toEqual([]);
    expect(await get("", "pjob")).toMatchObject({ status: 400, body: { code: "PROJECT_TYPE_MISMATCH" } });
  });

  it("needs project.logs.read, and another organization's key finds no project", async () => {
    const { status } = await get("", "plog", harness.key("acme", "project.read on project:*"));
    expect(status).toBe(403);
    expect((await get("", "plog", harness.key("globex", "* on project:*"))).status).toBe(404);
  });

  // Shows: docs/logs.md#over-v1: 400 `VALIDATION_FAILED`: each wrong parameter is named
  it.each([
    ["level=loud", "level"],
    ["limit=0", "limit"],
    ["limit=201", "limit"],
    ["q=", "q"],
    [`q=${"x".repeat(257)}`, "q"],
    ["order=up", "order"],
    ["cursor=abc", "cursor"],
    ["from=yesterday", "from"],
    ["from=2036-01-01T00:00:00Z", "from"],
    ["to=2020-01-01T00:00:00Z", "to"],
    ["from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z", "to"],
  ])("%s is refused", async (query, field) => {
    const { status, body } = await get(query);
    expect([status, body.code]).toEqual([400, "VALIDATION_FAILED"]);
    expect(JSON.stringify(body)).toContain(`"${field}"`);
  });

  // Shows: docs/logs.md#over-v1: 503 `ANALYTICS_UNAVAILABLE`
  it("answers 503 while the store is away, and again when it is back", async () => {
    await server.crash();
    expect(await get("")).toMatchObject({ status: 503, body: { code: "ANALYTICS_UNAVAILABLE" } });
    await server.restart();
    expect((await search("level=fatal")).data).toHaveLength(1);
  }, 240_000);
});
