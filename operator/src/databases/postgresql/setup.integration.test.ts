import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exampleCredentials } from "../../../../test/kit/databases/examples.ts";
import { startPostgres, type TestPostgres } from "../../../../test/kit/servers/postgresql.ts";
import { accounts } from "./names.ts";
import { hasReferenceAccounts, parseSetup, scramVerifier, setupScript } from "./sql.ts";

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
  // A command that ends early closes its input; its exit code explains more than EPIPE.
  child.stdin.on("error", () => undefined);
  child.stdin.end(script);
  const [exitCode] = (await once(child, "close")) as [number];
  return { exitCode, stdout, stderr };
}

/** Everybody but the superuser of these tests logs in with a password. */
async function requirePasswords(): Promise<void> {
  const file = await ask("SHOW hba_file");
  const rules = await readFile(file, "utf8");
  const names = ["app", ...accounts.references].map((name) => `host all ${name} 127.0.0.1/32 scram-sha-256`);
  await writeFile(file, [...names, rules].join("\n"));
  await psql("SELECT pg_reload_conf();");
  await expect
    .poll(() => ask("SELECT count(*) FROM pg_hba_file_rules WHERE 'app' = ANY (user_name)"))
    .toBe("1");
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

  const loginAs = async (user: string, password: string, sql = "SELECT current_user") => {
    const client = new pg.Client({ host: "127.0.0.1", port: postgres.port, database: "app", user, password });
    try {
      await client.connect();
      const { rows } = await client.query({ text: sql, rowMode: "array" });
      return String(rows[0]?.[0] ?? "");
    } catch (error) {
      return (error as { code?: string }).code ?? (error as Error).message;
    } finally {
      await client.end();
    }
  };
  const CURRENT = exampleCredentials.password ?? "";

  test("for references act as the user, whatever a session does, and own nothing", async () => {
    await psql("ALTER SYSTEM SET password_encryption TO 'scram-sha-256';");
    await requirePasswords();
    await psql(setup());
    const [first = "", second = ""] = accounts.references;
    expect(hasReferenceAccounts(await ask("SELECT split_part(version(), ' ', 2)"))).toBe(true);
    for (const user of [first, second]) {
      expect(await loginAs(user, CURRENT)).toBe("app");
      expect(await loginAs(user, CURRENT, `CREATE TABLE of_${user} (id int)`)).toBe("");
      expect(await loginAs(user, CURRENT, "DISCARD ALL")).toBe("");
      const owner = `SELECT tableowner FROM pg_tables WHERE tablename = 'of_${user}'`;
      expect(await loginAs(user, CURRENT, owner)).toBe("app");
      // As themselves they may do nothing, so that no object is theirs.
      const asItself = `DO $$ BEGIN SET ROLE NONE; CREATE TABLE own_${user} (id int); END $$`;
      expect(await loginAs(user, CURRENT, asItself)).toBe("42501");
    }
    const client = new pg.Client({
      host: "127.0.0.1",
      port: postgres.port,
      database: "app",
      user: first,
      password: CURRENT,
    });
    await client.connect();
    await client.query("DISCARD ALL");
    const { rows } = await client.query("SELECT current_user, session_user");
    expect(rows).toEqual([{ current_user: "app", session_user: first }]);
    await client.end();
    expect(await loginAs("app", CURRENT, `DROP TABLE of_${first}, of_${second}`)).toBe("");
  });

  test("for references have the settings of the user, and are written only where those are others", async () => {
    await psql(`ALTER ROLE app SET search_path TO "$user", "Mixed, ""quoted""", public;
      ALTER ROLE app SET "my.setting" TO 'it''s "so", = \\ ';
      ALTER ROLE app SET statement_timeout TO '7s';
      ALTER ROLE app IN DATABASE app SET search_path TO '';
      ALTER ROLE app IN DATABASE app SET "TimeZone" TO 'America/Sao_Paulo';`);
    expect((await psql(setup())).stderr).toBe("");
    const [first = "", second = ""] = accounts.references;
    expect(await loginAs(first, CURRENT, "SHOW statement_timeout")).toBe("7s");
    expect(await loginAs(second, CURRENT, "SHOW timezone")).toBe("America/Sao_Paulo");
    expect(await loginAs(first, CURRENT, "SELECT current_setting('my.setting')")).toBe('it\'s "so", = \\ ');
    const rows = (role: string) =>
      ask(`SELECT string_agg(setdatabase || one, ';' ORDER BY setdatabase, one) FROM pg_db_role_setting, unnest(setconfig) one
        WHERE setrole = '${role}'::regrole AND one NOT LIKE 'role=%'`);
    expect(await rows("app")).toContain("Mixed");
    const versions = () =>
      ask(`SELECT string_agg(ctid || ' ' || xmin, ';' ORDER BY setrole, setdatabase) FROM pg_db_role_setting
        WHERE setdatabase <> 0`);
    const before = await versions();
    await psql(setup());
    expect(await versions()).toBe(before);
    for (const account of [first, second]) {
      expect(await rows(account)).toBe(await rows("app"));
    }
    await psql("ALTER ROLE app RESET ALL; ALTER ROLE app IN DATABASE app RESET ALL;");
    await psql(setup());
    expect(await rows(first)).toBe("");
    expect(await loginAs(first, CURRENT)).toBe("app");
  });

  test("for references keep a previous password on the one that is not given any more, until it ends", async () => {
    const [first = "", second = ""] = accounts.references;
    const renewed = { ...exampleCredentials, password: "renewed", "previous-password": CURRENT };
    await psql(setup({ credentials: renewed, reference: second }));
    expect(await loginAs(first, CURRENT)).toBe("app");
    expect(await loginAs(second, "renewed")).toBe("app");
    expect(await loginAs("app", "renewed")).toBe("app");
    for (const [user, password] of [
      [first, "renewed"],
      [second, CURRENT],
      ["app", CURRENT],
    ] as const) {
      expect(await loginAs(user, password), user).toBe("28P01");
    }
    const settled = { ...exampleCredentials, password: "renewed" };
    await psql(setup({ credentials: settled, reference: second, setPassword: false }));
    expect(await loginAs(first, CURRENT)).toBe("28P01");
    for (const user of ["app", first, second]) {
      expect(await loginAs(user, "renewed"), user).toBe("app");
    }
    await psql(setup());
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
