import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exampleCredentials } from "../../../../test/kit/databases/examples.ts";
import { startPostgres, type TestPostgres } from "../../../../test/kit/servers/postgresql.ts";
import { parseSetup, scramVerifier, setupScript } from "./sql.ts";

let postgres: TestPostgres;

/** Runs a script with `psql`, as it is run in a container. */
async function psql(script: string, database = "postgres") {
  const url = new URL(postgres.url);
  url.pathname = `/${database}`;
  const child = spawn("psql", ["-X", "-q", "-t", "-A", "-f", "-", url.href]);
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  child.stdin.end(script);
  const [exitCode] = (await once(child, "close")) as [number];
  return { exitCode, stdout, stderr };
}

const ask = async (sql: string, database?: string) => (await psql(`${sql};`, database)).stdout.trim();
const setup = (more: Partial<Parameters<typeof setupScript>[0]> = {}) =>
  setupScript({
    credentials: exampleCredentials,
    setPassword: true,
    reference: "slipway_reference_1",
    statements: false,
    ...more,
  });

beforeAll(async () => {
  postgres = await startPostgres();
  // What Patroni makes when it initializes a database.
  await psql(
    "CREATE ROLE postgres SUPERUSER LOGIN; CREATE ROLE slipway_replication REPLICATION LOGIN; CREATE ROLE slipway_rewind LOGIN;",
  );
});
afterAll(() => postgres.stop());

describe("the accounts of a database", () => {
  test("are created, however often the script runs", async () => {
    for (let i = 0; i < 2; i += 1) {
      const { exitCode, stdout, stderr } = await psql(setup());
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
      const identity = await ask("SELECT system_identifier FROM pg_control_system()");
      expect(parseSetup(stdout)).toEqual({
        version: expect.stringMatching(/^\d+\.\d+$/) as string,
        identity,
      });
    }
    expect(await ask("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'app'")).toBe("app");
  });

  test("have verifiers that PostgreSQL would have computed itself", async () => {
    const stored = await ask("SELECT rolpassword FROM pg_authid WHERE rolname = 'app'");
    const [, salt = ""] = /^SCRAM-SHA-256\$4096:([^$]+)\$/.exec(stored) ?? [];
    expect(stored).toBe(scramVerifier("password-of-the-user", Buffer.from(salt, "base64")));
    await psql(
      "SET password_encryption TO 'scram-sha-256'; CREATE ROLE made_here PASSWORD 'Grüße, $1 ''and'' all';",
    );
    const own = await ask("SELECT rolpassword FROM pg_authid WHERE rolname = 'made_here'");
    const [, ownSalt = ""] = /^SCRAM-SHA-256\$4096:([^$]+)\$/.exec(own) ?? [];
    expect(own).toBe(scramVerifier("Grüße, $1 'and' all", Buffer.from(ownSalt, "base64")));
  });

  test("permit the monitoring account to read statistics and no table", async () => {
    const as = "SET SESSION AUTHORIZATION slipway_monitor;";
    expect((await psql(`${as} SELECT count(*) FROM pg_stat_activity;`)).stderr).toBe("");
    expect((await psql(`${as} SELECT * FROM pg_authid;`)).stderr).toContain("permission denied");
    await psql("CREATE TABLE orders (id int); ALTER TABLE orders OWNER TO app;", "app");
    expect((await psql(`${as} SELECT * FROM orders;`, "app")).stderr).toContain("permission denied");
    const may = "SELECT has_database_privilege('slipway_monitor', 'app', 'CONNECT')";
    expect(await ask(may)).toBe("f");
  });

  test("keep a password that the user has set itself, until it is to be another", async () => {
    const stored = () => ask("SELECT rolpassword FROM pg_authid WHERE rolname = 'app'");
    await psql("ALTER ROLE app PASSWORD 'its own';");
    const own = await stored();
    await psql(setup({ setPassword: false }));
    expect(await stored()).toBe(own);
    await psql(setup());
    expect(await stored()).not.toBe(own);
  });

  test("never have a verifier in an error", async () => {
    const { exitCode, stderr } = await psql(
      setup({ credentials: { ...exampleCredentials, username: "app", database: "x".repeat(70) } }),
    );
    expect(exitCode === 0 ? "" : stderr).not.toContain("SCRAM");
    await psql("ALTER ROLE slipway_rewind RENAME TO renamed;");
    const failed = await psql(setup());
    await psql("ALTER ROLE renamed RENAME TO slipway_rewind;");
    expect(failed.exitCode).not.toBe(0);
    expect(failed.stderr).toMatch(/ERROR: {2}42704$/m);
    expect(failed.stderr).not.toContain("SCRAM");
  });
});
