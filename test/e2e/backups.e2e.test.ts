import { afterAll, expect, test, vi } from "vitest";
import { isLong } from "../kit/long.ts";
import { apiClient, deleteProjects, uniqueName } from "./support/api.ts";
import { backUp, backupFiles, deleteBackup, readBackup, restore, verify } from "./support/backups.ts";
import { createDatabase, databaseProject, untilReady } from "./support/databases.ts";
import { waitAsDocumented } from "./support/documented.ts";
import { eventually } from "./support/eventually.ts";
import { connectMariadb } from "./support/mariadb.ts";
import { connectPostgresql } from "./support/postgresql.ts";
import { connectValkey, valkeyProject } from "./support/valkey.ts";

/** A database's backup, from its making to its deletion; it outlives the database that it is of. */

// Three databases are made one after the other, on a machine that may do much else.
vi.setConfig({ testTimeout: 400_000 });

const FUNCTION = "#!lua name=greetings\nserver.register_function('greet', function() return 'hello' end)";

const call = apiClient();
const made: string[] = [];
afterAll(() => deleteProjects(call, made));

test("a Valkey service is restored with all its keys, their expiry and its functions", async () => {
  const source = await createDatabase(call, valkeyProject("db-basic", "key_value"));
  made.push(source.id);
  await untilReady(source);
  const client = await connectValkey(source);
  const lines = Array.from({ length: 5_000 }, (_, index) => [`key:${index}`, `value ${index}`]).flat();
  await client.mset(lines);
  await client.set(Buffer.from([10, 0, 255]), "a name that is no text");
  await client.set("soon", "gone", "EX", 3_600);
  await client.zadd("scores", 1.5, "one", 2, "two");
  await client.call("FUNCTION", "LOAD", FUNCTION);
  await client.select(3);
  await client.set("apart", "in another database");

  const backup = await backUp(call, source.id);
  await waitAsDocumented("backup", backup.id);
  expect(backup.contents).toEqual({ tables: null, rows: null, keys: 5_004 });
  client.disconnect();
  const tried = await verify(call, source.id, backup.id);
  expect(tried.verification).toMatchObject({ status: "succeeded" });

  const restored = await restore(call, source.id, backup.id, uniqueName("restored"));
  made.push(restored.id);
  const again = await connectValkey(restored);
  expect(await again.dbsize()).toBe(5_003);
  expect(await again.get("key:4999")).toBe("value 4999");
  expect(await again.get(Buffer.from([10, 0, 255]))).toBe("a name that is no text");
  expect(await again.ttl("soon")).toBeGreaterThan(0);
  expect(await again.zrange("scores", 0, -1, "WITHSCORES")).toEqual(["one", "1.5", "two", "2"]);
  expect(await again.call("FCALL", "greet", "0")).toBe("hello");
  await again.select(3);
  expect(await again.get("apart")).toBe("in another database");
  again.disconnect();
  expect((await call("DELETE", `/v1/project/${source.id}/backups/${backup.id}`)).status).toBe(202);
});

// Shows: docs/backups.md#over-v1: `DELETE /v1/project/:id/backups/:backupId` | 202: deleted with its
// Shows: docs/backups.md#over-v1: `POST /v1/project/:id/backups/:backupId/restore` | 201, as a
test("a PostgreSQL database is restored from its backup after it was deleted", async () => {
  const source = await createDatabase(
    call,
    databaseProject("db-basic", { type_project: "postgresql", version: "17" }),
  );
  made.push(source.id);
  await untilReady(source);
  const client = await eventually(() => connectPostgresql(source));
  await client.query("CREATE TABLE kept (id int PRIMARY KEY, said text NOT NULL)");
  await client.query("INSERT INTO kept SELECT i, md5(i::text) FROM generate_series(1, 20000) i");
  await client.query('CREATE TABLE "another one" (at timestamptz DEFAULT now())');
  const SUM = "SELECT count(*)::int AS rows, md5(string_agg(said, ',' ORDER BY id)) AS all FROM kept";
  const before = (await client.query(SUM)).rows;

  const backup = await backUp(call, source.id);
  expect(backup.contents).toEqual({ tables: 2, rows: 20_000, keys: null });
  expect(await backupFiles(source.id)).toEqual([`${backup.id}.dump`]);
  // What is written later is not in it.
  await client.query("DELETE FROM kept WHERE id > 10");
  await client.end();

  const tried = await verify(call, source.id, backup.id);
  expect(tried).toMatchObject({
    verification: { status: "succeeded" },
    last_verified_at: expect.any(String),
  });

  await deleteProjects(call, [source.id]);
  const restored = await restore(call, source.id, backup.id, uniqueName("restored"));
  made.push(restored.id);
  const again = await eventually(() => connectPostgresql(restored));
  expect((await again.query(SUM)).rows).toEqual(before);
  // It is the new user's own.
  await again.query("INSERT INTO kept VALUES (0, 'new')");
  await again.end();

  expect((await call("DELETE", `/v1/project/${source.id}/backups/${backup.id}`)).status).toBe(202);
  await eventually(async () => {
    const { status } = await call("GET", `/v1/project/${source.id}/backups/${backup.id}`);
    expect(status).toBe(404);
  });
  expect(await backupFiles(source.id)).toEqual([]);
  await expect(readBackup(call, source.id, backup.id)).rejects.toThrow();
});

// A group takes a minute to be made, and there are two.
for (const version of isLong ? ["10", "11"] : []) {
  test(`a MariaDB ${version} database is restored from its backup`, { timeout: 900_000 }, async () => {
    const source = await createDatabase(
      call,
      databaseProject("db-basic", { type_project: "mariadb", version, instances: 3 }),
    );
    made.push(source.id);
    await untilReady(source);
    const client = await connectMariadb(source);
    await client.query(
      "CREATE TABLE kept (id INT PRIMARY KEY, said VARCHAR(64) NOT NULL, raw VARBINARY(16))",
    );
    await client.query("INSERT INTO kept SELECT seq, MD5(seq), UNHEX(MD5(seq)) FROM seq_1_to_20000");
    await client.query("CREATE VIEW few AS SELECT id FROM kept WHERE id <= 10");
    const SUM = "SELECT COUNT(*) AS n, SUM(CRC32(CONCAT(id, said, HEX(raw)))) AS hash FROM kept";
    const before = await client.query(SUM);

    const backup = await backUp(call, source.id);
    expect(backup.contents).toEqual({ tables: 1, rows: 20_000, keys: null });
    expect(await backupFiles(source.id)).toEqual([`${backup.id}.dump`]);
    await client.query("DELETE FROM kept WHERE id > 10");
    await client.end();

    expect(await verify(call, source.id, backup.id)).toMatchObject({ verification: { status: "succeeded" } });
    const restored = await restore(call, source.id, backup.id, uniqueName("restored"));
    made.push(restored.id);
    const again = await connectMariadb(restored);
    expect(await again.query(SUM)).toEqual(before);
    expect(await again.query("SELECT COUNT(*) AS n FROM few")).toMatchObject([{ n: 10 }]);
    await again.end();
    await deleteBackup(call, source.id, backup.id);
    expect(await backupFiles(source.id)).toEqual([]);
  });
}
