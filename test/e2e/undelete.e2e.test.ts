import { afterAll, expect, test } from "vitest";
import { isLong } from "../kit/long.ts";
import type { WriteSession } from "./support/acknowledged.ts";
import {
  apiClient,
  type CreatedProject,
  createProject,
  deleteProjects,
  httpProject,
  retried,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { connectClickhouse, createIds, idsOver, readIds } from "./support/clickhouse.ts";
import { cluster, exec } from "./support/cluster.ts";
import { createDatabase, type DatabaseProject, databaseProject, untilReady } from "./support/databases.ts";
import { eventually } from "./support/eventually.ts";
import { throughIngress } from "./support/ingress.ts";
import * as mariadb from "./support/mariadb.ts";
import { connectPostgresql, createRows, readRows, rowsOver } from "./support/postgresql.ts";
import { namespaceOf, stack } from "./support/stack.ts";
import * as valkey from "./support/valkey.ts";

/** Projects on plans whose volumes the stack of these tests retains (`values.yaml`), deleted by mistake. */

const call = apiClient();
const namespace = namespaceOf(stack.organization);
const made: string[] = [];
afterAll(async () => {
  await deleteProjects(call, made);
  await Promise.all(made.map(expire));
});

interface RecordObject {
  metadata: { name: string };
  spec: { projectRef: { name: string }; volumes: { volumeName: string }[] };
}
const records = { group: "slipway.dev", version: "v1alpha1", namespace, plural: "deletedprojects" };
async function recordsOf(id: string): Promise<RecordObject[]> {
  const { items } = (await cluster.custom.listNamespacedCustomObject(records)) as { items: RecordObject[] };
  return items.filter(({ spec }) => spec.projectRef.name === id);
}
/** As if its time were over. @returns the volumes that it retained */
async function expire(id: string): Promise<string[]> {
  const expired = await recordsOf(id);
  const body = [{ op: "replace", path: "/spec/expiresAt", value: new Date().toISOString() }];
  for (const { metadata } of expired) {
    await cluster.custom.patchNamespacedCustomObject({ ...records, name: metadata.name, body });
  }
  return expired.flatMap(({ spec }) => spec.volumes.map(({ volumeName }) => volumeName));
}
const volumeNames = async () =>
  (await cluster.core.listPersistentVolume()).items.map(({ metadata }) => metadata?.name);

/** Runs a shell script beside an application, where its volume is. @returns what it prints */
async function inVolume({ project_id: id }: CreatedProject, script: string): Promise<string> {
  const name = `volume-${id}`;
  const { spec } = (
    await cluster.core.listNamespacedPod({ namespace, labelSelector: `slipway.dev/project=${id}` })
  ).items[0] ?? { spec: undefined };
  await cluster.core.createNamespacedPod({
    namespace,
    body: {
      metadata: { name },
      spec: {
        automountServiceAccountToken: false,
        terminationGracePeriodSeconds: 0,
        securityContext: spec?.securityContext,
        volumes: [{ name: "data", persistentVolumeClaim: { claimName: id } }],
        containers: [
          {
            name: "shell",
            image: stack.imageJob,
            command: ["/bin/sh", "-c", "sleep 600"],
            volumeMounts: [{ name: "data", mountPath: "/data" }],
          },
        ],
      },
    },
  });
  await eventually(async () => {
    const pod = await cluster.core.readNamespacedPod({ namespace, name });
    expect(pod.status?.phase).toBe("Running");
  });
  const { exitCode, output } = await exec(namespace, name, "shell", ["/bin/sh", "-c", script]);
  await cluster.core.deleteNamespacedPod({ namespace, name });
  expect([exitCode, output]).toEqual([0, output]);
  await eventually(async () => {
    const { items } = await cluster.core.listNamespacedPod({ namespace });
    expect(items.map(({ metadata }) => metadata?.name)).not.toContain(name);
  });
  return output.trim();
}

const application = (name: string) => ({
  ...httpProject(name, {
    storage: { persistent: true, capacity: 1, dir_path_to_persist: "/data" },
    envs: [{ name: "GREETING", value: "before" }],
  }),
  plan: "premium_plus",
});
async function createApplication(name: string): Promise<CreatedProject> {
  const project = await createProject(call, application(name));
  made.push(project.project_id);
  await untilStatus(call, project.project_id, "running");
  return project;
}
const remove = async (id: string) =>
  expect((await retried(() => call("DELETE", `/v1/project/${id}`))).status).toBe(200);
async function undelete(id: string): Promise<void> {
  const { status, body } = await call("POST", `/v1/project/${id}/undelete`);
  if (body.code !== "UNDELETE_PENDING") {
    expect([status, body]).toEqual([200, body]);
    return;
  }
  // It goes on, longer than the answer waits.
  await eventually(async () => expect(await call("GET", `/v1/project/${id}`)).toMatchObject({ status: 200 }));
}
const restorable = async () => {
  const { body } = await call<{ projects: { project_id: string }[] }>(
    "GET",
    "/v1/organization/deleted-projects",
  );
  return body.data?.projects.map(({ project_id }) => project_id) ?? [];
};

const timeout = 240_000;

// Shows: docs/undelete.md#what-comes-back: volumes with all that is in them, number of instances, paused or not
// Shows: docs/undelete.md#what-comes-back: id, name, settings, variables, registry credentials, deployments
// Shows: docs/undelete.md#what-comes-back: default domain, subdomain, custom domains | claimed again
test.concurrent("an application comes back with its files, and a new one of its name has none", {
  timeout,
}, async () => {
  const name = uniqueName("undelete");
  const project = await createApplication(name);
  const { project_id: id, domain } = project;
  await inVolume(project, "echo kept > /data/file");
  await remove(id);
  expect(await restorable()).toContain(id);

  const namesake = await createApplication(name);
  expect(await inVolume(namesake, "ls /data | grep -v lost+found || true")).toBe("");

  await undelete(id);
  await untilStatus(call, id, "running");
  expect(await restorable()).not.toContain(id);
  expect(await inVolume(project, "cat /data/file")).toBe("kept");
  await eventually(async () =>
    expect(await throughIngress(domain, "/env/GREETING")).toMatchObject({ status: 200, text: "before" }),
  );

  await remove(id);
  const volumes = await expire(id);
  expect(volumes).toHaveLength(1);
  await eventually(async () => expect(await volumeNames()).not.toContain(volumes[0]));
  await eventually(async () => expect(await recordsOf(id)).toEqual([]));
  expect(await call("POST", `/v1/project/${id}/undelete`)).toMatchObject({
    status: 404,
    body: { code: "DELETED_PROJECT_NOT_FOUND" },
  });
});

// Shows: docs/undelete.md#what-comes-back: user, password and database name; port of the nodes
test.concurrent("a PostgreSQL comes back with its rows, its password and its address", {
  timeout,
}, async () => {
  const config = { type_project: "postgresql", version: "17" };
  const project: DatabaseProject = await createDatabase(call, databaseProject("db-business", config));
  made.push(project.id);
  await untilReady(project);
  const before = await eventually(() => connectPostgresql(project));
  await createRows(before);
  await before.query("INSERT INTO rows SELECT generate_series(1, 1000), 'before'");
  await before.end();
  await remove(project.id);
  await undelete(project.id);
  await untilReady(project);
  // With the host, port, user and password of its creation.
  const after = await eventually(() => connectPostgresql(project));
  expect((await readRows(after)).size).toBe(1_000);
  await after.query("INSERT INTO rows VALUES (1001, 'after')");
  await after.end();
});

/** How rows of an engine are written and read. */
interface Engine<Client> {
  connect(project: DatabaseProject): Promise<Client>;
  prepare?(client: Client): Promise<unknown>;
  rowsOver(client: Client, by: string): WriteSession;
  readRows(client: Client): Promise<Set<number>>;
}
function rowsOf<Client>({ connect, prepare, rowsOver: over, readRows: read }: Engine<Client>) {
  const withSession = async <T>(
    project: DatabaseProject,
    use: (client: Client, session: WriteSession) => Promise<T>,
  ): Promise<T> => {
    const client = await eventually(() => connect(project));
    const session = over(client, "before");
    try {
      return await use(client, session);
    } finally {
      await session.close();
    }
  };
  return {
    write: (project: DatabaseProject) =>
      withSession(project, async (client, session) => {
        await prepare?.(client);
        for (const id of [1, 2, 3]) {
          await session.insert(id);
        }
      }),
    read: (project: DatabaseProject) => withSession(project, (client) => read(client)),
  };
}

const groups = [
  {
    name: "a PostgreSQL of three instances",
    body: databaseProject("db-business", { type_project: "postgresql", version: "17", instances: 3 }),
    rows: rowsOf({ connect: connectPostgresql, prepare: createRows, rowsOver, readRows }),
  },
  {
    name: "a MariaDB group",
    body: databaseProject("db-business", { type_project: "mariadb", version: "11", instances: 3 }),
    rows: rowsOf({
      connect: mariadb.connectMariadb,
      prepare: mariadb.createRows,
      rowsOver: mariadb.rowsOver,
      readRows: mariadb.readRows,
    }),
  },
  {
    name: "a Valkey",
    body: valkey.valkeyProject("db-business", "key_value"),
    rows: rowsOf({ connect: valkey.connectValkey, rowsOver: valkey.rowsOver, readRows: valkey.readRows }),
  },
  {
    name: "a ClickHouse",
    body: databaseProject("analytics-business", { type_project: "clickhouse", version: "26.8.6.5" }),
    rows: rowsOf({
      connect: async ({ connection }: DatabaseProject) => connectClickhouse(connection),
      prepare: createIds,
      rowsOver: idsOver,
      readRows: readIds,
    }),
  },
] as const;

test.skipIf(!isLong).each(groups)(
  "$name comes back with all that it had acknowledged (--long)",
  { timeout: 600_000 },
  async ({ body, rows }) => {
    const project = await createDatabase(call, body);
    made.push(project.id);
    await untilReady(project);
    await rows.write(project);
    // 202: a Valkey is deleted in the background.
    expect((await retried(() => call("DELETE", `/v1/project/${project.id}`))).status).toBeLessThan(203);
    await eventually(async () => expect((await call("GET", `/v1/project/${project.id}`)).status).toBe(404));
    await undelete(project.id);
    await untilReady(project);
    expect(await rows.read(project)).toEqual(new Set([1, 2, 3]));
  },
);
