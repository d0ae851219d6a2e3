import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { KubernetesObject } from "@kubernetes/client-node";
import { afterAll, expect, test } from "vitest";
import { parse } from "yaml";
import {
  apiClient,
  deleteProjects,
  type Project,
  readProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { answerOf, connectClickhouse, readRows, withClickhouse, writeRows } from "./support/clickhouse.ts";
import { cluster } from "./support/cluster.ts";
import {
  type Connection,
  createDatabase,
  type DatabaseObject,
  type DatabaseProject,
  databaseProject,
  deletePod,
  podsOfDatabase,
  readDatabase,
  untilReady,
} from "./support/databases.ts";
import { eventually } from "./support/eventually.ts";
import { namespaceOf, stack } from "./support/stack.ts";

/** Analytics over the API, by ClickHouse's own client, from outside the cluster. */

const call = apiClient();
const made: string[] = [];
afterAll(() => deleteProjects(call, made));

// Every step waits for a database to be whole again, on a machine that may do much else.
const timeout = 400_000;

interface Analytics extends Project {
  readonly database: { engine: string; version: string; running_version: string };
  readonly additional_info: { max_memory: string };
  readonly plan_change?: { status: string; to_plan: string; started_at?: string };
}

const clickhouse = (plan: string, config: Readonly<Record<string, unknown>> = {}) =>
  databaseProject(plan, { type_project: "clickhouse", version: "26.8.6.5", ...config });

async function create(): Promise<DatabaseProject> {
  const project = await createDatabase(call, clickhouse("analytics-basic"));
  made.push(project.id);
  await untilReady(project);
  return project;
}

const ROWS = 5_000;
const WRITTEN = `${ROWS} ${(ROWS * (ROWS - 1)) / 2}`;

/** Reads all rows, as soon as the database is reached again. */
const readBack = (connection: Connection): Promise<string> =>
  eventually(() => withClickhouse(connection, readRows));

test.concurrent("rows outlive the pod, a new password, and a pause", { timeout }, async () => {
  const project = await create();
  await withClickhouse(project.connection, (client) => writeRows(client, ROWS));
  const { database } = (await readProject(call, project.id)) as Analytics;
  const version = await withClickhouse(project.connection, (client) => answerOf(client, "SELECT version()"));
  // The substitute reports what it is.
  expect(database).toMatchObject({ version: "26.8.6.5", running_version: version });
  expect(database.engine === "clickhouse").toBe(version.startsWith("26.8.6.5"));

  await deletePod(project, `${project.id}-0`);
  expect(await readBack(project.connection)).toBe(WRITTEN);

  const open = connectClickhouse(project.connection);
  const renewed = await call("POST", `/v1/project/${project.id}/database/credentials/renew`);
  expect(renewed).toMatchObject({ status: 200 });
  const { connection } = renewed.body.data as { connection: Connection };
  // Every request of this protocol has the password.
  await expect(readRows(open)).rejects.toMatchObject({ type: "AUTHENTICATION_FAILED" });
  await open.close();
  expect(await readBack(connection)).toBe(WRITTEN);

  expect(await call("POST", `/v1/project/${project.id}/pause`)).toMatchObject({ status: 200 });
  await untilStatus(call, project.id, "stopped");
  await eventually(async () => expect(await podsOfDatabase(project)).toEqual([]));
  expect(await call("POST", `/v1/project/${project.id}/resume`)).toMatchObject({ status: 200 });
  await untilReady(project);
  expect(await readBack(connection)).toBe(WRITTEN);
});

// Shows: docs/databases-api.md#change-of-plan: of ClickHouse: one instance after the other in the
test.concurrent("a plan changes in the background, and the one before is in force until then", {
  timeout,
}, async () => {
  const project = await create();
  await withClickhouse(project.connection, (client) => writeRows(client, ROWS));
  const path = `/v1/project/${project.id}/plan`;
  const asked = await call("PATCH", path, { plan: "analytics-premium" });
  const change = { status: "in_progress", to_plan: "analytics-premium" };
  expect(asked).toMatchObject({
    status: 202,
    body: { data: { plan: "analytics-basic", plan_change: change } },
  });
  const again = await call("PATCH", path, { plan: "analytics-business" });
  expect(again).toMatchObject({ status: 409, body: { code: "PLAN_CHANGE_IN_PROGRESS" } });

  const { plan_change: begun } = asked.body.data as Analytics;
  const read = async () => (await readProject(call, project.id)) as Analytics;
  let now = await read();
  while (now.plan_change) {
    expect(now).toMatchObject({ plan: "analytics-basic", additional_info: { max_memory: "2Gi" } });
    expect(now.plan_change).toEqual(begun);
    await sleep(200);
    now = await read();
  }
  // Not read again: another replica may not have received the operator's write yet.
  expect(now).toMatchObject({ plan: "analytics-premium", additional_info: { max_memory: "4Gi" } });
  const [pod] = await podsOfDatabase(project);
  expect(pod?.spec?.containers[0]?.resources?.limits?.memory).toBe("4Gi");
  await untilReady(project);
  expect(await readBack(project.connection)).toBe(WRITTEN);
});

interface ProjectObject extends KubernetesObject {
  spec: { instances: number; networkAccess: unknown; storage: { capacity: number } };
}

test.concurrent("the documented example runs, and several instances only where they can replicate", {
  timeout,
}, async () => {
  const file = join(import.meta.dirname, "../../docs/resources/examples/project-clickhouse.yaml");
  const example = parse(await readFile(file, "utf8")) as ProjectObject;
  const place = { id: uniqueName("numbers"), namespace: namespaceOf(stack.organization) };
  const apply = (spec: Partial<ProjectObject["spec"]>) =>
    cluster.objects.patch(
      {
        ...example,
        metadata: { name: place.id, namespace: place.namespace },
        spec: { ...example.spec, storage: { ...example.spec.storage, capacity: 1 }, ...spec },
      } as KubernetesObject,
      undefined,
      undefined,
      "kubectl",
      true,
      "application/apply-patch+yaml",
    );
  // Its quota is counted for others at the same time, which kube-apiserver may answer with a conflict.
  await eventually(() => apply({}), { within: 30_000 });
  made.push(place.id);
  await untilReady(place);
  const { status } = await readDatabase(place);
  expect(status?.database?.primary).toBe(`${place.id}-0`);

  const several = await call("POST", "/v1/project", clickhouse("analytics-premium", { instances: 2 }));
  const { features } = await imageOfStack();
  if (features?.replication === false) {
    expect(several).toMatchObject({ status: 503, body: { code: "PROJECT_TYPE_UNAVAILABLE" } });
    const two = { id: uniqueName("numbers"), namespace: place.namespace };
    made.push(two.id);
    await cluster.objects.create({
      ...example,
      metadata: { name: two.id, namespace: two.namespace },
      spec: { ...example.spec, instances: 2 },
    } as KubernetesObject);
    await eventually(async () => {
      const { status } = (await readDatabase(two)) as DatabaseObject;
      const accepted = status?.conditions?.find(({ type }) => type === "Accepted");
      expect(accepted).toMatchObject({ status: "False", reason: "FeatureNotSupported" });
    });
    expect(await podsOfDatabase(two)).toEqual([]);
  } else {
    expect(several.status).toBe(201);
    made.push((several.body.data as { project_id: string }).project_id);
  }
});

/** What the platform says of its image of ClickHouse. */
async function imageOfStack(): Promise<{ features?: Record<string, boolean> }> {
  const name = "slipway-database-images";
  const { data } = await cluster.core.readNamespacedConfigMap({ name, namespace: "slipway-system" });
  const images = parse(data?.["images.yaml"] ?? "") as {
    clickhouse: Record<string, { features?: Record<string, boolean> }>;
  };
  return images.clickhouse["26.8.6.5"] ?? {};
}
