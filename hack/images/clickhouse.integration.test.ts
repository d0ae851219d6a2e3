import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { ClickHouseLogLevel, createClient } from "@clickhouse/client";
import { expect, test } from "vitest";
import { freePorts } from "../lib/ports.ts";
import { waitFor } from "../lib/wait.ts";
import { BUILD_MS, opened, undoLater, versionsOf } from "./opened.ts";

test.each(versionsOf("clickhouse"))(
  "the substitute for ClickHouse %s serves ClickHouse's own client, with and without TLS, and keeps what it acknowledged",
  async (version) => {
    const { start, volume } = await opened("clickhouse", version);
    const [http = 0, https = 0] = await freePorts(2);
    await mkdir(join(volume, "users.d"));
    const server = { certificateFile: "/volume/tls.crt", privateKeyFile: "/volume/tls.key" };
    const config = { http_port: http, https_port: https, path: "/volume/data/", openSSL: { server } };
    await writeFile(join(volume, "config.yaml"), JSON.stringify(config));
    const platform = { password: { "@from_env": "PLATFORM_PASSWORD" }, access_management: 1 };
    await writeFile(join(volume, "users.d/users.yaml"), JSON.stringify({ users: { platform } }));
    const launch = () =>
      start(["/bin/env", "clickhouse-server", "--config-file=/volume/config.yaml"], {
        PATH: "/usr/local/bin:/usr/bin:/bin",
        PLATFORM_PASSWORD: "p'1",
      });
    const first = launch();
    const ready = () =>
      waitFor("the server", 30_000, async () => (await fetch(`http://127.0.0.1:${http}/ping`)).ok);
    await ready();
    const client = (url: string, username: string, password: string, database?: string) => {
      const made = createClient({
        url,
        username,
        password,
        database,
        tls: { ca_cert: certificate },
        // The failures below are meant.
        log: { level: ClickHouseLogLevel.OFF },
      });
      undoLater(() => made.close());
      return made;
    };
    const certificate = await readFile(join(volume, "tls.crt"));
    const admin = client(`http://127.0.0.1:${http}`, "platform", "p'1");
    await admin.command({ query: "CREATE DATABASE d" });
    await admin.command({ query: "CREATE USER app IDENTIFIED WITH sha256_password BY 'a'" });
    await admin.command({ query: "GRANT ALL ON d.* TO app" });

    const app = client(`https://127.0.0.1:${https}`, "app", "a", "d");
    await app.command({ query: "CREATE TABLE t (a UInt32, b String) ENGINE = MergeTree ORDER BY a" });
    const rows = Readable.from(
      (function* () {
        for (let a = 0; a < 50_000; a++) {
          yield { a, b: `row\n${a}` };
        }
      })(),
    );
    const { summary } = await app.insert({ table: "t", values: rows, format: "JSONEachRow" });
    expect(summary?.written_rows).toBe("50000");
    const query = "SELECT a, b FROM t WHERE a >= {from:UInt32} ORDER BY a";
    const all = await app.query({ query, query_params: { from: 10 }, format: "JSONEachRow" });
    let seen = 0;
    for await (const batch of all.stream<{ a: number; b: string }>()) {
      for (const row of batch) {
        expect(row.json()).toEqual({ a: 10 + seen, b: `row\n${10 + seen++}` });
      }
    }
    expect(seen).toBe(49_990);
    const settings = { max_threads: 1, wait_end_of_query: 1 } as const;
    const one = await app.query({ query: "SELECT count() AS n FROM t", clickhouse_settings: settings });
    expect((await one.json<{ n: number | string }>()).data.map(({ n }) => Number(n))).toEqual([50_000]);
    await expect(app.query({ query: "SELECT * FROM nope" })).rejects.toMatchObject({
      code: "60",
      type: "UNKNOWN_TABLE",
    });
    await expect(
      client(`http://127.0.0.1:${http}`, "app", "b").query({ query: "SELECT 1" }),
    ).rejects.toMatchObject({
      code: "516",
    });
    const late = await app.query({
      query: "SELECT throwIf(a = 45000) FROM t ORDER BY a SETTINGS max_threads = 1, max_block_size = 1000",
      format: "JSONEachRow",
    });
    await expect(late.stream().toArray()).rejects.toMatchObject({ code: "395" });

    const acknowledged: number[] = [];
    const writing = (async () => {
      for (let a = 100_000; ; a++) {
        await app.insert({ table: "t", values: [{ a, b: "" }], format: "JSONEachRow" });
        acknowledged.push(a);
      }
    })().catch(() => undefined);
    await waitFor("writes", 10_000, async () => acknowledged.length > 20);
    await first.stop("SIGKILL");
    await writing;
    const second = launch();
    await ready();
    const kept = await app.query({ query: "SELECT a FROM t WHERE a >= 100000", format: "JSONEachRow" });
    const there = new Set((await kept.json<{ a: number }>()).map(({ a }) => a));
    expect(acknowledged.filter((a) => !there.has(a))).toEqual([]);
    expect(await second.stop("SIGTERM")).toBe(0);
  },
  BUILD_MS,
);
