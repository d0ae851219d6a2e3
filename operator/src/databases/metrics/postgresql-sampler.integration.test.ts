import { chownSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startPostgres, type TestPostgres } from "../../../../test/kit/servers/postgresql.ts";
import { certify, makeAuthority } from "../tls/certificates.ts";
import { postgresqlNative } from "./postgresql.ts";
import { type Server, samplePostgresql } from "./postgresql-sampler.ts";
import type { Reading } from "./snapshot.ts";

/** On a real server of the machine's version, as an account that may do what the platform's may. */

let postgres: TestPostgres;
let app: pg.Client;

beforeAll(async () => {
  postgres = await startPostgres();
  app = new pg.Client({ connectionString: postgres.url });
  await app.connect();
  await app.query("create role slipway_monitor login; grant pg_read_all_stats to slipway_monitor");
  await app.query("create table notes (id int, secret text)");
});
afterAll(async () => {
  await app?.end();
  await postgres?.stop();
});

const server = (change: Partial<Server> = {}): Server => ({
  host: "127.0.0.1",
  port: postgres.port,
  serverName: "localhost",
  ca: undefined,
  user: "slipway_monitor",
  password: "",
  database: "slipway",
  container: "pod/start",
  ...change,
});
const { signal } = new AbortController();
const sample = () => samplePostgresql(server(), signal);
const native = (now: Reading, before?: Reading) => postgresqlNative(now.raw, before?.raw, { replicas: 0 });

/** Statistics come a moment after the transaction. */
const nextSecond = () => app.query("select pg_sleep(1.2)");

test("counters and rates are those of what was done", async () => {
  await nextSecond();
  const before = await sample();
  for (let i = 0; i < 300; i += 1) {
    await app.query("insert into notes values ($1, 'x')", [i]);
  }
  await nextSecond();
  const after = await sample();

  const [first, second] = [native(before), native(after, before)];
  expect(second.activity.rows_written_total).toBe((first.activity.rows_written_total ?? 0) + 300);
  const seconds = (after.raw.clockMs - before.raw.clockMs) / 1_000;
  // And the two waits.
  expect(second.activity.transactions_per_second ?? 0).toBeCloseTo(301 / seconds, -1);
  expect((second.reliability.wal_bytes_per_second ?? 0) * seconds).toBeCloseTo(
    (second.reliability.wal_bytes_total ?? 0) - (first.reliability.wal_bytes_total ?? 0),
    0,
  );
  expect(first.activity.transactions_per_second).toBeNull();
  expect(second.connections).toMatchObject({ current: 1, max: 50 });
  expect(second.storage.database_size_bytes).toBeGreaterThan(1_000_000);
  expect(second.cache.hit_ratio).toBeGreaterThan(0.5);
  expect(second.reliability).toMatchObject({
    up: true,
    role: "primary",
    replicas_available: 0,
    lag_bytes: null,
  });
  expect(second.reliability.checkpoints_total).not.toBeNull();
  expect(second.reliability.uptime_seconds).toBeGreaterThan(0);
  // The extension is not there: it has no source, and the sample is whole.
  expect([second.latency.average_query_latency_ms, after.incomplete]).toEqual([null, false]);
}, 240_000);

test("a session that waits for a lock is reported", async () => {
  const other = new pg.Client({ connectionString: postgres.url });
  await other.connect();
  await app.query("begin; lock table notes");
  const waiting = other.query("select count(*) from notes");
  await new Promise((done) => setTimeout(done, 300));
  expect(native(await sample()).locks.waiting).toBe(1);
  await app.query("rollback");
  await waiting;
  await other.end();
});

test("a reset of the statistics leaves no rate, nor anything negative", async () => {
  const before = await sample();
  await app.query("select pg_stat_reset()");
  await nextSecond();
  const after = native(await sample(), before);
  expect(after.activity.transactions_per_second).toBeNull();
  expect(after.reliability.wal_bytes_per_second).not.toBeNull();
});

test("of a database that is not there the sample is not whole", async () => {
  const reading = await samplePostgresql(server({ database: "nothing" }), signal);
  expect(reading.incomplete).toBe(true);
  expect(native(reading).storage.database_size_bytes).toBeNull();
  expect(native(reading).connections.max).toBe(50);
});

test("a server that does not answer is abandoned", async () => {
  const stop = AbortSignal.timeout(200);
  await expect(samplePostgresql(server({ port: 1 }), stop)).rejects.toThrow();
});

/** Lets the server speak TLS with a certificate of these names. */
async function offerTls(names: string[]): Promise<string> {
  const authority = await makeAuthority(new Date());
  const pair = await certify(authority, names, new Date());
  const { rows } = await app.query<{ data_directory: string }>("show data_directory");
  const data = rows[0]?.data_directory ?? "";
  const { uid, gid } = statSync(data);
  for (const [name, pem] of [
    ["server.crt", pair.certificate],
    ["server.key", pair.key],
  ] as const) {
    writeFileSync(join(data, name), pem, { mode: 0o600 });
    chownSync(join(data, name), uid, gid);
  }
  await app.query("alter system set ssl = on");
  await app.query("select pg_reload_conf()");
  await nextSecond();
  return authority.certificate;
}

test("over TLS the server must be the instance, whose address is in no certificate", async () => {
  const ca = await offerTls(["*.shop-nodes.slipway-org-alpha.svc"]);
  const own = server({ ca, serverName: "shop-0.shop-nodes.slipway-org-alpha.svc" });
  expect((await samplePostgresql(own, signal)).incomplete).toBe(false);
  const other = server({ ca, serverName: "till-0.till-nodes.slipway-org-alpha.svc" });
  await expect(samplePostgresql(other, signal)).rejects.toThrow(/altnames/);
  const { certificate } = await makeAuthority(new Date());
  await expect(samplePostgresql({ ...own, ca: certificate }, signal)).rejects.toThrow();
}, 240_000);
