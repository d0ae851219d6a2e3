import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { exampleCredentials } from "../../../../test/kit/databases/examples.ts";
import { startPostgres, type TestPostgres } from "../../../../test/kit/servers/postgresql.ts";
import { setupScript } from "../../databases/postgresql/sql.ts";
import { WORK } from "../agent/protocol.ts";
import { postgresqlScripts } from "./index.ts";

/** The scripts of the containers against a real server, in folders of the test's own. */

let postgres: TestPostgres;
const folder = mkdtempSync(join(tmpdir(), "slipway-backup-"));
let runs = 0;

beforeAll(async () => {
  postgres = await startPostgres();
  const made =
    "CREATE ROLE postgres SUPERUSER LOGIN; CREATE ROLE slipway_replication; CREATE ROLE slipway_rewind;";
  await query("slipway", "slipway", made);
});
afterAll(async () => {
  await postgres?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function query(user: string, database: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ host: "127.0.0.1", port: postgres.port, user, database });
  await client.connect();
  try {
    const results = (await client.query(text)) as unknown as pg.QueryResult | pg.QueryResult[];
    return (Array.isArray(results) ? results.at(-1) : results)?.rows ?? [];
  } finally {
    await client.end();
  }
}

async function sh(script: string, env: Record<string, string>, stdin = ""): Promise<string> {
  const child = spawn("sh", ["-c", script], { env: { PATH: process.env.PATH ?? "", HOME: folder, ...env } });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  // A command that ends early closes its input; its exit code explains more than EPIPE.
  child.stdin.on("error", () => undefined);
  child.stdin.end(stdin);
  const [code] = (await once(child, "close")) as [number];
  return code === 0 ? "" : `${code}: ${output}`;
}

/** Makes user and database, as the operator does. */
async function setUp(names: { username: string; database: string }): Promise<Record<string, string>> {
  const credentials = { ...exampleCredentials, ...names };
  const script = setupScript({
    credentials,
    setPassword: true,
    reference: "slipway_reference_1",
    statements: false,
  });
  const env = {
    PGHOST: "127.0.0.1",
    PGPORT: String(postgres.port),
    PGUSER: "slipway",
    PGDATABASE: "postgres",
  };
  expect(await sh("psql -X -q -t -A -f -", env, script)).toBe("");
  return credentials;
}

/**
 * Runs a script as its container does, beside an agent that reads or fills the pipe.
 * @returns what is in the dump, as the script reports it
 */
async function work(
  what: "dump" | "load",
  credentials: Record<string, string>,
  file: string,
): Promise<string> {
  runs += 1;
  const exchange = mkdtempSync(join(folder, `${runs}-`));
  const { variables, credentials: keys } = postgresqlScripts;
  const named = Object.entries(keys).map(([name, key]) => [name, credentials[key] ?? ""]);
  const local = { PGHOST: "127.0.0.1", PGPORT: String(postgres.port), PGSSLMODE: "disable" };
  const env = { ...variables, ...Object.fromEntries(named), ...local };
  const pipe = `${exchange}/data`;
  const agent = `until [ -p ${pipe} ]; do sleep 0.1; done; cat ${what === "dump" ? `${pipe} >${file}` : `${file} >${pipe}`}`;
  const [ended] = await Promise.all([
    sh(postgresqlScripts[what].replaceAll(WORK, exchange), env),
    sh(agent, {}),
  ]);
  expect(ended).toBe("");
  return readFileSync(`${exchange}/contents`, "utf8");
}

test("a backup has everything, whatever the user has done to its password and rights, and is loaded as the new user's", async () => {
  const source = await setUp({ username: "app", database: "app" });
  await query(
    "app",
    "app",
    `CREATE TABLE orders (id serial PRIMARY KEY, who text);
     INSERT INTO orders (who) SELECT 'somebody' FROM generate_series(1, 7);
     CREATE TABLE hidden (id int); INSERT INTO hidden VALUES (1), (2);
     ALTER TABLE hidden ENABLE ROW LEVEL SECURITY; ALTER TABLE hidden FORCE ROW LEVEL SECURITY;
     CREATE TABLE kept_from_itself (id int); INSERT INTO kept_from_itself VALUES (1);
     REVOKE ALL ON kept_from_itself FROM app;
     CREATE SCHEMA other; CREATE VIEW other.seen AS SELECT count(*) AS n FROM orders;
     SELECT lo_from_bytea(4711, 'large');
     ALTER ROLE app PASSWORD 'nobody else knows it'; ALTER ROLE app SET statement_timeout TO '1ms';`,
  );
  const file = join(folder, "stored");
  const reported = await work("dump", source, file);
  expect(reported.trim().split("\n").toSorted()).toEqual([
    "public.hidden\t2",
    "public.kept_from_itself\t1",
    "public.orders\t7",
  ]);

  const target = await setUp({ username: "another", database: "restored" });
  // A try that was killed has left something.
  await query("another", "restored", "CREATE TABLE orders (left_over int)");
  expect((await work("load", target, file)).trim().split("\n").toSorted()).toEqual(
    reported.trim().split("\n").toSorted(),
  );
  await query(
    "another",
    "restored",
    "INSERT INTO orders (who) VALUES ('new'); DROP VIEW other.seen; DROP TABLE hidden",
  );
  expect(await query("another", "restored", "SELECT max(id) AS newest FROM orders")).toEqual([{ newest: 8 }]);
  const text = "SELECT convert_from(lo_get(4711), 'UTF8') AS text";
  expect(await query("another", "restored", text)).toEqual([{ text: "large" }]);
  const owners = `SELECT DISTINCT pg_get_userbyid(relowner) AS owner FROM pg_class
    WHERE relnamespace IN ('public'::regnamespace, 'other'::regnamespace)`;
  expect(await query("slipway", "restored", owners)).toEqual([{ owner: "another" }]);
});

test("its account reads no other database, and is nobody's but the platform's", async () => {
  const attributes =
    "SELECT rolsuper, rolcreaterole, rolreplication FROM pg_roles WHERE rolname = 'slipway_backup'";
  expect(await query("slipway", "slipway", attributes)).toEqual([
    { rolsuper: false, rolcreaterole: false, rolreplication: false },
  ]);
  const may = "SELECT has_database_privilege('slipway_backup', 'postgres', 'CONNECT') AS may";
  expect(await query("slipway", "slipway", may)).toEqual([{ may: false }]);
  // Of the test before: a busy machine takes longer than that to refuse.
  await query("slipway", "slipway", "ALTER ROLE app RESET statement_timeout");
  await expect(query("app", "app", "SET ROLE slipway_backup")).rejects.toThrow("permission denied");
  await expect(query("app", "app", "ALTER ROLE slipway_backup PASSWORD 'x'")).rejects.toThrow(
    /permission denied|must/,
  );
});
