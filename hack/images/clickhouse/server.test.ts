import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Access } from "./access.ts";
import { sha256 } from "./config.ts";
import { Connections } from "./connections.ts";
import { engineMemory } from "./memory.ts";
import type { Connection, Native } from "./native.ts";
import { acceptedEncoding, contentType, handler } from "./server.ts";

let server: Server;
let folder: string;
let url: string;
let open: Set<Connection>;
let asked: string[];
/** What the engine gives: pieces of rows, or a failure. */
let rows: (string | Error)[];
let broken: string[];

const bytes = (text: string) => new Uint8Array(Buffer.from(text));
const failIf = (piece: string | Error | undefined): string => {
  if (piece instanceof Error) {
    throw piece;
  }
  return piece ?? "";
};

/** An engine that remembers what it was asked, and that its connections are used as they must be. */
function engine(): Native {
  const left = new Map<object, (string | Error)[]>();
  return {
    CreateConnection: () => {
      const connection = {} as Connection;
      open.add(connection);
      return connection;
    },
    CloseConnection: (connection) => {
      if (!open.delete(connection)) {
        throw new Error("closed twice");
      }
    },
    QueryAsyncConnection: async (_, sql, format) => {
      asked.push(`${sql} | ${format}`);
      if (/^(SET|USE)/.test(sql)) {
        return { bytes: bytes(""), elapsed: 0, rowsRead: 0, bytesRead: 0 };
      }
      const whole = rows.map(failIf).join("");
      return { bytes: bytes(whole), elapsed: 0, rowsRead: 7, bytesRead: 8 };
    },
    InsertRawAsyncConnection: async (_, sql, data) => {
      asked.push(`${sql} < ${Buffer.from(data)}`);
      return { rowsWritten: 2, bytesWritten: data.length, elapsed: 0 };
    },
    StreamQuery: (_, sql, format) => {
      asked.push(`${sql} | ${format}`);
      const cursor = {} as ReturnType<Native["StreamQuery"]>;
      left.set(cursor, [...rows]);
      return cursor;
    },
    StreamFetch: async (cursor) => {
      const pieces = left.get(cursor) ?? [];
      const done = pieces.length === 0;
      return { done, bytes: bytes(failIf(pieces.shift())), numRows: 1 };
    },
    StreamCancel: (cursor) => {
      if (!left.delete(cursor)) {
        throw new Error("cancelled twice");
      }
    },
  };
}

beforeEach(async () => {
  [open, asked, rows, broken] = [new Set(), [], ["1\n", "2\n"], []];
  folder = await mkdtemp(join(tmpdir(), "slipway-clickhouse-"));
  const users = [
    { name: "u", sha256: sha256("p"), readOnly: false, manages: true },
    { name: "reader", sha256: sha256("r"), readOnly: true, manages: false },
  ];
  const native = engine();
  const connections = new Connections(native, { path: "/data", limit: 2, settings: {} });
  server = createServer(
    handler({
      native,
      connections,
      access: await Access.open(users, join(folder, "users.json")),
      onError: (error) => broken.push(error.message),
      onBroken: (error) => broken.push(error.message),
    }),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(folder, { recursive: true });
});

const ask = (query: string, options: RequestInit = {}) =>
  fetch(`${url}/?${query}`, {
    method: "POST",
    ...options,
    headers: { "x-clickhouse-user": "u", "x-clickhouse-key": "p", ...options.headers },
  });

test("the server answers a ping without authentication", async () => {
  for (const path of ["/ping", "/replicas_status", "/"]) {
    const answer = await fetch(url + path);
    expect([answer.status, await answer.text()]).toEqual([200, "Ok.\n"]);
  }
  expect((await ask("", { headers: { "x-clickhouse-key": "q" } })).status).toBe(403);
  expect((await fetch(`${url}/else`)).status).toBe(400);
  expect(asked).toEqual([]);
});

test("rows come as they are, with what ClickHouse says of them", async () => {
  const answer = await ask("query=SELECT+1&query_id=q1&default_format=JSONEachRow");
  expect(answer.headers.get("x-clickhouse-format")).toBe("JSONEachRow");
  expect(answer.headers.get("x-clickhouse-query-id")).toBe("q1");
  expect(answer.headers.get("content-type")).toBe("application/x-ndjson; charset=UTF-8");
  expect(await answer.text()).toBe("1\n2\n");
  const whole = await ask("", { body: "SELECT 1 FORMAT JSON" });
  expect(JSON.parse(whole.headers.get("x-clickhouse-summary") ?? "")).toMatchObject({ read_rows: "7" });
  expect(asked).toEqual(["SELECT 1 | JSONEachRow", "SELECT 1 FORMAT JSON | JSON"]);
  expect(open.size).toBe(2);
});

test("database, settings and values are set where the statement runs, and nowhere else", async () => {
  await (await ask("database=d`&max_threads=2&param_x=a'b", { body: "SELECT {x:String}" })).text();
  const sets = ["USE `d\\``", "SET max_threads = '2', `param_x` = 'a\\'b'"].map((sql) => `${sql} | Null`);
  expect(asked).toEqual([...sets, "SELECT {x:String} | TabSeparated"]);
  expect(open.size).toBe(1);
});

test("an INSERT's data follow its statement, compressed or not", async () => {
  const inAddress = await ask("query=INSERT+INTO+t+FORMAT+CSV", { body: "1\n2\n" });
  expect(JSON.parse(inAddress.headers.get("x-clickhouse-summary") ?? "")).toMatchObject({
    written_rows: "2",
  });
  await ask("", { body: "INSERT INTO t VALUES (1, 'ä'), (2, ';')" });
  await ask("query=INSERT+INTO+t", {
    body: gzipSync(Buffer.from("FORMAT TSV\n3\n")),
    headers: { "content-encoding": "gzip" },
  });
  expect(asked).toEqual([
    "INSERT INTO t FORMAT CSV < 1\n2\n",
    "INSERT INTO t VALUES <  (1, 'ä'), (2, ';')",
    "INSERT INTO t\nFORMAT TSV < 3\n",
  ]);
  expect((await ask("", { body: "x", headers: { "content-encoding": "lzma" } })).status).toBe(501);
});

test("values may come in a form", async () => {
  const body = new FormData();
  body.set("query", "SELECT {x:String}");
  body.set("param_x", "y");
  await (await ask("", { body })).text();
  expect(asked).toEqual(["SET `param_x` = 'y' | Null", "SELECT {x:String} | TabSeparated"]);
});

test("who may not write does not", async () => {
  const get = await fetch(`${url}/?user=u&password=p&query=DROP+TABLE+t`);
  expect([get.status, get.headers.get("x-clickhouse-exception-code")]).toEqual([500, "164"]);
  const reader = { "x-clickhouse-user": "reader", "x-clickhouse-key": "r" };
  expect((await ask("", { body: "CREATE USER x", headers: reader })).status).toBe(403);
  await (await ask("", { body: "SELECT 1", headers: reader })).text();
  expect(asked).toEqual(["SET readonly = 1 | Null", "SELECT 1 | TabSeparated"]);
});

test("a failure is reported by the status, or behind the rows that came before it", async () => {
  const failure = new Error("Code: 60. DB::Exception: no t. (UNKNOWN_TABLE)");
  rows = [failure];
  for (const format of ["CSV", "JSON"]) {
    const answer = await ask(`default_format=${format}`, { body: "SELECT * FROM t" });
    expect([answer.status, await answer.text()]).toEqual([404, `${failure.message}\n`]);
  }
  rows = ["1\n", failure];
  const late = await ask("default_format=CSV", { body: "SELECT * FROM t" });
  const tag = late.headers.get("x-clickhouse-exception-tag");
  const block = `__exception__\r\n${tag}\r\n${failure.message}\n${failure.message.length + 1} ${tag}\r\n__exception__\r\n`;
  expect([late.status, await late.text()]).toEqual([200, `1\n\r\n${block}`]);
  // No connection on which something failed is used again.
  expect(open.size).toBe(1);
  expect(broken).toEqual([]);
  rows = [new Error("Code: 236. DB::Exception: The server is shutting down due to a fatal error. (ABORTED)")];
  await ask("", { body: "SELECT 1" });
  expect(broken).toHaveLength(1);
});

test("answers are compressed for clients that ask for it and can read it", async () => {
  const headers = { "accept-encoding": "gzip" };
  const answer = await ask("enable_http_compression=1", { body: "SELECT 1", headers });
  // fetch has decompressed it.
  expect([answer.headers.get("content-encoding"), await answer.text()]).toEqual(["gzip", "1\n2\n"]);
  expect((await ask("", { body: "SELECT 1", headers })).headers.get("content-encoding")).toBeNull();
  expect(acceptedEncoding("br;q=0, zstd;q=0.5, deflate")).toBe("zstd");
  expect(acceptedEncoding("lzma")).toBeUndefined();
});

test("formats have ClickHouse's types", () => {
  expect(["CSV", "CSVWithNames", "JSON", "JSONEachRow", "Native", "Pretty"].map(contentType)).toEqual([
    "text/csv; charset=UTF-8; header=absent",
    "text/csv; charset=UTF-8; header=present",
    "application/json; charset=UTF-8",
    "application/x-ndjson; charset=UTF-8",
    "application/octet-stream",
    "text/plain; charset=UTF-8",
  ]);
});

test("statements take what a container's limit leaves to them", () => {
  const mib = 1024 * 1024;
  expect([undefined, 512 * mib, 2048 * mib].map(engineMemory)).toEqual([undefined, 256 * mib, 1664 * mib]);
});
