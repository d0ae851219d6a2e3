import { randomBytes } from "node:crypto";
import { afterAll, expect, test } from "vitest";
import { lostRows, Writer } from "../../e2e/support/acknowledged.ts";
import { apiClient, deleteProjects } from "../../e2e/support/api.ts";
import { exec } from "../../e2e/support/cluster.ts";
import {
  createDatabase,
  databaseProject,
  patchDatabase,
  readDatabase,
  untilReady,
} from "../../e2e/support/databases.ts";
import { eventually } from "../../e2e/support/eventually.ts";
import { connectPostgresql, createRows, readRows, rowsOver } from "../../e2e/support/postgresql.ts";

/** A database whose volume is full reports it, and continues with every row once the volume is larger. */

const call = apiClient();
const made: string[] = [];
afterAll(() => deleteProjects(call, made));

const MIB = 1_048_576;
const BALLAST_MIB = 600;

test("PostgreSQL on a full volume of 1 GB reports DiskFull, and accepts writes again once it has 2 GB", {
  timeout: 600_000,
}, async () => {
  const project = await createDatabase(
    call,
    databaseProject("db-basic", { type_project: "postgresql", version: "17" }),
  );
  made.push(project.id);
  await untilReady(project);
  const client = await eventually(() => connectPostgresql(project));
  await createRows(client);
  await client.query("CREATE TABLE ballast (bytes bytea)");
  await client.query("ALTER TABLE ballast ALTER bytes SET STORAGE EXTERNAL");
  const writer = new Writer(async () => rowsOver(await connectPostgresql(project), "outside"));
  const readyReason = async () =>
    (await readDatabase(project)).status?.conditions?.find(({ type }) => type === "Ready")?.reason;
  try {
    await writer.untilWrites();
    // Most of it is taken by a file beside the data: the rest is written by the server.
    const reserve = ["fallocate", "-l", `${BALLAST_MIB}MiB`, "/var/lib/postgresql/data/ballast"];
    expect(await exec(project.namespace, `${project.id}-0`, "database", reserve)).toMatchObject({
      exitCode: 0,
    });
    const block = randomBytes(8 * MIB);
    let failed: unknown;
    for (let written = 0; failed === undefined && written < 2_048; written += 8) {
      failed = await client.query("INSERT INTO ballast VALUES ($1)", [block]).then(
        () => undefined,
        (error: unknown) => error,
      );
    }
    expect(failed).toBeDefined();
    await client.end().catch(() => undefined);
    await eventually(async () => expect(await readyReason()).toBe("DiskFull"), { within: 180_000 });
    expect((await readDatabase(project)).status?.phase).toBe("failing");
    await patchDatabase(project, [{ op: "replace", path: "/spec/storage/capacity", value: 2 }]);
    await untilReady(project, 300_000);
    await writer.untilWrites();
  } finally {
    await writer.stop();
  }
  const again = await eventually(() => connectPostgresql(project));
  const rows = await readRows(again).finally(() => again.end());
  expect(lostRows(writer.acknowledged, rows)).toEqual([]);
});
