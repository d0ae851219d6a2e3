import type pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { apiClient, deleteProjects } from "./support/api.ts";
import {
  askForBackup,
  backupFiles,
  deleteBackup,
  listBackups,
  podsOfBackup,
  untilBackup,
} from "./support/backups.ts";
import { cluster } from "./support/cluster.ts";
import { createDatabase, type DatabaseProject, databaseProject, untilReady } from "./support/databases.ts";
import { eventually } from "./support/eventually.ts";
import { acquireExclusive } from "./support/exclusive.ts";
import { replaceLeader } from "./support/operator.ts";
import { connectPostgresql, untilBlocked } from "./support/postgresql.ts";
import { namespaceOf, stack } from "./support/stack.ts";

/** Backups whose operator or pods are killed in the middle: they end once, and leave nothing but what they have made. */

const call = apiClient();
const namespace = namespaceOf(stack.organization);
const ROWS = 5_000;
let project: DatabaseProject;
let client: pg.Client;
let release: (() => void) | undefined;

beforeAll(async () => {
  project = await createDatabase(
    call,
    databaseProject("db-basic", { type_project: "postgresql", version: "17" }),
  );
  await untilReady(project);
  client = await eventually(() => connectPostgresql(project));
  await client.query("CREATE TABLE kept (id int PRIMARY KEY, said text NOT NULL)");
  await client.query(`INSERT INTO kept SELECT i, md5(i::text) FROM generate_series(1, ${ROWS}) i`);
  // Where backups are kept stays the same meanwhile.
  release = await acquireExclusive("backups");
}, 1_500_000);

afterAll(async () => {
  try {
    await client?.end();
    if (!project) {
      return;
    }
    await deleteProjects(call, [project.id]);
    for (const { id } of await listBackups(call, project.id)) {
      await deleteBackup(call, project.id, id);
    }
    expect(await backupFiles(project.id)).toEqual([]);
  } finally {
    release?.();
  }
}, 400_000);

/** Begins a backup whose dump waits at its first read of the table until `ROLLBACK`. */
async function beginBlocked(): Promise<string> {
  await client.query("BEGIN; LOCK TABLE kept IN ACCESS EXCLUSIVE MODE");
  const id = await askForBackup(call, project.id);
  await untilBlocked(client);
  return id;
}

/** The pod that works on a backup now. */
async function podOf(id: string): Promise<string> {
  const names = await podsOfBackup(id, namespace);
  expect(names).toHaveLength(1);
  return names[0] ?? "";
}

const jobsOf = async (id: string): Promise<unknown[]> => {
  const labelSelector = `slipway.dev/backup=${id}`;
  const list = await cluster.objects.list(
    "batch/v1",
    "Job",
    namespace,
    undefined,
    undefined,
    undefined,
    undefined,
    labelSelector,
  );
  return list.items;
};

test("a backup whose operator is killed and whose pod is deleted is made once", async () => {
  const id = await beginBlocked();
  const pod = await podOf(id);
  await replaceLeader();
  // An attempt is abandoned; the next one begins again.
  await cluster.core.deleteNamespacedPod({ namespace, name: pod });
  // In its last seconds it could still succeed, unobserved.
  await eventually(async () => expect(await podsOfBackup(id, namespace)).not.toContain(pod));
  await client.query("ROLLBACK");
  const backup = await untilBackup(call, project.id, id);
  expect(backup.contents).toEqual({ tables: 1, rows: ROWS, keys: null });
  expect((await listBackups(call, project.id)).map((one) => one.id)).toEqual([id]);
  expect(await backupFiles(project.id)).toEqual([`${id}.dump`]);
  await eventually(async () => {
    expect(await podsOfBackup(id, namespace)).toEqual([]);
    expect(await jobsOf(id)).toEqual([]);
  });
}, 300_000);

test("a backup whose pods are all deleted fails in words, leaves nothing, and the next scheduled one goes", async () => {
  const before = await backupFiles(project.id);
  const id = await beginBlocked();
  const pod = await podOf(id);
  // Its first try is its last: three take a minute of pauses.
  const job = { apiVersion: "batch/v1", kind: "Job", metadata: { name: `${id}-dump`, namespace } };
  await cluster.objects.patch({ ...job, spec: { backoffLimit: 0 } });
  // Of a minute that has passed: it is due immediately, and has to wait for its turn.
  const policy = { enabled: true, schedule: "* * * * *", verify_schedule: "* * * * *", retention_days: 1 };
  expect((await call("PUT", `/v1/project/${project.id}/backups/policy`, policy)).status).toBe(200);
  await cluster.core.deleteNamespacedPod({ namespace, name: pod });
  const failed = await untilBackup(call, project.id, id, "failed");
  expect(failed.message).toBe("Its pods were killed, or taken away, before they could say how they ended.");
  const left = await backupFiles(project.id);
  expect(left.filter((file) => file.startsWith(id))).toEqual([]);
  expect(left).toEqual(expect.arrayContaining(before));
  await client.query("ROLLBACK");

  const scheduled = await eventually(async () => {
    const all = (await listBackups(call, project.id)).filter(({ trigger }) => trigger === "schedule");
    const done = all.filter(({ status }) => status === "succeeded");
    expect(done.length, JSON.stringify(all)).toBeGreaterThan(0);
    return all;
  });
  // One for each minute.
  expect(new Set(scheduled.map((one) => one.requested_at)).size).toBe(scheduled.length);
  // The schedule of verifications was due immediately, too: the newest backup of that time is verified.
  await eventually(async () => {
    const verified = (await listBackups(call, project.id)).filter(
      ({ verification }) => verification?.status === "succeeded",
    );
    expect(verified.map((backup) => backup.last_verified_at)).toContainEqual(expect.any(String));
  });
  const off = { enabled: false };
  expect((await call("PUT", `/v1/project/${project.id}/backups/policy`, off)).status).toBe(200);
  expect((await untilBackup(call, project.id, id, "failed")).message).toBe(failed.message);
}, 400_000);
