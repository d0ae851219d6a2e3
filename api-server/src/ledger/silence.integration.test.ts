import { KubeClient } from "@slipway/controller-runtime";
import { connectLedger, insertOrganization, type Ledger, migrateToLatest } from "@slipway/ledger";
import { sql } from "kysely";
import { pino } from "pino";
import { afterAll, beforeAll, expect, it } from "vitest";
import { exampleBody, type Harness, startHarness } from "../../../test/kit/api-server/harness.ts";
import { FakeApiserver } from "../../../test/kit/apiserver/fake-apiserver.ts";
import { TcpProxy } from "../../../test/kit/processes/tcp-proxy.ts";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import { LedgerAuditLog } from "../audit/log.ts";

/** A network between the API server and the ledger that drops everything and says nothing of it. */

const ORGANIZATION = "acme";
/** Connections of the pool. */
const CONNECTIONS = 3;
/** Of a statement, which waits for a processor, too; an answer is waited for a second longer. */
const STATEMENT_MS = 2_000;
/** Of a creation: a connection is waited for six seconds. */
const IN_TIME_MS = 9_000;

let postgres: TestPostgres;
let apiserver: FakeApiserver;
let proxy: TcpProxy;
let ledger: Ledger;
let audit: LedgerAuditLog;
let harness: Harness;
let headers: Record<string, string>;

beforeAll(async () => {
  [postgres, apiserver] = await Promise.all([startPostgres(), FakeApiserver.start()]);
  proxy = new TcpProxy({ host: "127.0.0.1", port: postgres.port });
  await proxy.up();
  ledger = connectLedger({
    url: postgres.url.replace(String(postgres.port), String(proxy.port)),
    applicationName: "test",
    maxConnections: CONNECTIONS,
    statementTimeoutMs: STATEMENT_MS,
  });
  await migrateToLatest(ledger);
  await insertOrganization(ledger, { id: ORGANIZATION, name: "Acme" });
  audit = new LedgerAuditLog(ledger, pino({ level: "silent" }), { lost: () => {}, unrecorded: () => {} });
  harness = await startHarness(KubeClient.forUrl(apiserver.url), { ledger, audit });
  await harness.namespace(ORGANIZATION);
  headers = {
    ...harness.key(ORGANIZATION, "* on organization:*", "* on project:*"),
    "content-type": "application/json",
  };
});
afterAll(async () => {
  proxy?.stall(false);
  await harness?.close();
  await audit?.close();
  await ledger?.destroy();
  await proxy?.down();
  await postgres?.stop();
  await apiserver?.stop();
});

/** What a function of the database answers. */
const query = (name: string, ...given: number[]) =>
  ledger
    .selectNoFrom((eb) =>
      eb
        .fn(
          name,
          given.map((value) => eb.val(value)),
        )
        .as("answer"),
    )
    .executeTakeFirst()
    .then((row) => row?.answer);

const create = async () => {
  const payload = exampleBody({ plan: "basic" });
  const started = performance.now();
  const answer = await harness.app.inject({ method: "POST", url: "/v1/project", headers, payload });
  return { code: answer.json().code ?? answer.statusCode, ms: performance.now() - started };
};
const rush = (times: number) => Promise.all(Array.from({ length: times }, create));

it("answers 503 in time on every connection, and serves as soon as the ledger answers again", async () => {
  // All connections are in use once, and idle.
  await Promise.all(Array.from({ length: CONNECTIONS }, () => query("pg_sleep", 0.2)));
  expect((await create()).code).toBe(201);
  proxy.stall(true);
  for (const times of [CONNECTIONS, 1, CONNECTIONS + 2]) {
    for (const { code, ms } of await rush(times)) {
      expect(code).toBe("LEDGER_UNAVAILABLE");
      expect(ms).toBeLessThan(IN_TIME_MS);
    }
  }
  proxy.stall(false);
  for (const { code } of await rush(CONNECTIONS + 2)) {
    expect(code).toBe(201);
  }
});

it("gives no connection out again on which something may still be under way", async () => {
  const pid = () => query("pg_backend_pid");
  const before = new Set(await Promise.all(Array.from({ length: CONNECTIONS }, pid)));
  proxy.stall(true);
  const lost = await Promise.allSettled(Array.from({ length: CONNECTIONS }, pid));
  expect(lost.map(({ status }) => status)).toEqual(lost.map(() => "rejected"));
  proxy.stall(false);
  const after = await Promise.all(Array.from({ length: CONNECTIONS }, pid));
  for (const each of after) {
    expect(before).not.toContain(each);
  }
  // What the server itself refuses costs no connection, whichever it was sent on.
  await expect(query("sqrt", -1)).rejects.toThrow("square root");
  const { rows } = await sql<{ pid: number }>`select pid from pg_stat_activity`.execute(ledger);
  expect(rows.map((row) => row.pid)).toEqual(expect.arrayContaining(after));
});
