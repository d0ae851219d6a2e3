import { afterAll, expect, test } from "vitest";
import { lostRows, Writer } from "./support/acknowledged.ts";
import { apiClient, deleteProjects, untilStatus } from "./support/api.ts";
import { cluster, exec } from "./support/cluster.ts";
import {
  createDatabase,
  type DatabaseProject,
  deletePod,
  podsOfDatabase,
  untilReady,
} from "./support/databases.ts";
import { eventually } from "./support/eventually.ts";
import { connectValkey, type Profile, readRows, rowsOver, valkeyProject } from "./support/valkey.ts";

/** Key-value services over the API, by Valkey's own protocol, from outside the cluster and from inside. */

const call = apiClient();
const made: string[] = [];
afterAll(() => deleteProjects(call, made));

// Every step waits for a service to be whole again, on a machine that may do much else.
const timeout = 400_000;

async function create(
  plan: string,
  profile: Profile,
  config: Readonly<Record<string, unknown>> = {},
): Promise<DatabaseProject> {
  const project = await createDatabase(call, valkeyProject(plan, profile, config));
  made.push(project.id);
  await untilReady(project);
  return project;
}

const rowsOf = async (project: DatabaseProject): Promise<Set<number>> => {
  const client = await eventually(() => connectValkey(project));
  return readRows(client).finally(() => client.disconnect());
};

const names = async (project: DatabaseProject): Promise<string[]> =>
  (await podsOfDatabase(project)).map(({ metadata }) => metadata?.name ?? "");

/** Everything that is there of a project but events. */
async function childrenOf({ id, namespace }: DatabaseProject): Promise<string[]> {
  const labelSelector = `slipway.dev/project=${id}`;
  const lists = await Promise.all([
    cluster.core.listNamespacedPod({ namespace, labelSelector }),
    cluster.core.listNamespacedService({ namespace, labelSelector }),
    cluster.core.listNamespacedSecret({ namespace, labelSelector }),
    cluster.core.listNamespacedConfigMap({ namespace, labelSelector }),
    cluster.core.listNamespacedPersistentVolumeClaim({ namespace, labelSelector }),
    cluster.apps.listNamespacedStatefulSet({ namespace, labelSelector }),
    cluster.networking.listNamespacedNetworkPolicy({ namespace, labelSelector }),
  ]);
  return lists.flatMap(({ items }) => items.map(({ metadata }) => metadata?.name ?? ""));
}

test.concurrent("three instances keep every row while each pod is deleted, and then are deleted themselves", {
  timeout,
}, async () => {
  const project = await create("db-premium_plus", "key_value");
  expect(await names(project)).toHaveLength(3);
  const writer = new Writer(async () => rowsOver(await connectValkey(project), "outside"));
  try {
    for (const name of await names(project)) {
      await writer.untilWrites();
      await deletePod(project, name);
    }
    await writer.untilWrites();
  } finally {
    await writer.stop();
  }
  expect(lostRows(writer.acknowledged, await rowsOf(project))).toEqual([]);
  expect(writer.acknowledged.length).toBeGreaterThan(100);

  expect(await call("DELETE", `/v1/project/${project.id}`)).toMatchObject({
    status: 202,
    body: { data: { project_id: project.id, status: "deleting" } },
  });
  await eventually(async () => {
    expect(await call("GET", `/v1/project/${project.id}`)).toMatchObject({ status: 404 });
    expect(await childrenOf(project)).toEqual([]);
  });
});

test.concurrent("a new password leaves open sessions alone, a pause keeps the rows, a smaller plan becomes a larger one", {
  timeout,
}, async () => {
  const project = await create("db-basic", "key_value");
  const open = await connectValkey(project);
  await rowsOver(open, "outside").insert(0);

  const renewed = await call("POST", `/v1/project/${project.id}/database/credentials/renew`);
  expect(renewed).toMatchObject({ status: 200 });
  const { connection } = renewed.body.data as Pick<DatabaseProject, "connection">;
  expect(connection.password).not.toBe(project.connection.password);
  expect(await readRows(open)).toEqual(new Set([0]));
  open.disconnect();
  await expect(connectValkey(project)).rejects.toThrow("WRONGPASS");
  const current = { ...project, connection: { ...project.connection, password: connection.password } };
  expect(await rowsOf(current)).toEqual(new Set([0]));

  expect(await call("POST", `/v1/project/${project.id}/pause`)).toMatchObject({ status: 200 });
  await untilStatus(call, project.id, "stopped");
  await eventually(async () => expect(await names(project)).toEqual([]));
  expect(await call("POST", `/v1/project/${project.id}/resume`)).toMatchObject({ status: 200 });
  await untilReady(project);
  expect(await rowsOf(current)).toEqual(new Set([0]));

  const larger = { plan: "db-premium_plus" };
  expect(await call("PATCH", `/v1/project/${project.id}/plan`, larger)).toMatchObject({ status: 200 });
  await eventually(async () => expect(await names(project)).toHaveLength(3));
  await untilReady(project);
  expect(await rowsOf(current)).toEqual(new Set([0]));
});

interface Snapshot {
  observed_at: string | null;
  valkey: { cache?: { hits_total: number; misses_total: number; hit_ratio: number } } | null;
}

test.concurrent("a cache evicts what is used least, persists nothing, and reports its hits and misses", {
  timeout,
}, async () => {
  const project = await create("cache-premium", "cache");
  const client = await eventually(() => connectValkey(project));
  expect(await client.info("memory")).toContain("maxmemory_policy:allkeys-lru");
  expect(await client.info("persistence")).toContain("aof_enabled:0");
  client.disconnect();

  // On the loopback address of its own pod.
  const benchmark = (requests: number, ...command: string[]) => {
    const here = "--tls --cacert /etc/slipway/tls/ca.crt -h localhost --user slipway_admin";
    const script = `valkey-benchmark ${here} -a "$VALKEYCLI_AUTH" -q -c 4 -P 20 -n ${requests} ${command.join(" ")}`;
    return exec(project.namespace, `${project.id}-0`, "database", ["/bin/sh", "-c", script]);
  };
  expect(await benchmark(20, "SET", "there", "1")).toMatchObject({ exitCode: 0 });
  expect(await benchmark(12_000, "GET", "there")).toMatchObject({ exitCode: 0 });
  expect(await benchmark(4_000, "GET", "nowhere")).toMatchObject({ exitCode: 0 });
  const since = new Date().toISOString();
  const snapshot = await eventually(async () => {
    const latest = (await call<Snapshot>("GET", `/v1/project/${project.id}/metrics`)).body.data;
    expect((latest?.observed_at ?? "") > since).toBe(true);
    return latest;
  });
  expect(snapshot).toMatchObject({
    valkey: { cache: { hits_total: 12_000, misses_total: 4_000, hit_ratio: 0.75 } },
  });
});

test.concurrent("a queue without a white list is for its organization alone, and has the project's variables", {
  timeout,
}, async () => {
  const envs = [{ name: "GREETING", value: "hello" }];
  const project = await create("queue-basic", "queue", { network_access: { ingress_white_list: [] } });
  expect(project.connection.host).toBe(`${project.id}.${project.namespace}.svc`);
  const services = await cluster.core.listNamespacedService({ namespace: project.namespace });
  expect(services.items.map(({ metadata }) => metadata?.name)).not.toContain(`${project.id}-outside`);

  const { host, port, username, password } = project.connection;
  const inside = (command: string) => {
    const client = `valkey-cli --tls --cacert /etc/slipway/tls/ca.crt -h ${host} -p ${port} --user ${username}`;
    const script = `VALKEYCLI_AUTH=${password} ${client} ${command}`;
    return exec(project.namespace, `${project.id}-0`, "database", ["/bin/sh", "-c", script]);
  };
  expect(await inside("RPUSH queue first")).toEqual({ exitCode: 0, output: "1\n" });
  expect((await inside("INFO memory")).output).toContain("maxmemory_policy:noeviction");
  expect((await inside("INFO persistence")).output).toContain("aof_enabled:1");
  expect((await inside("CONFIG SET maxmemory-policy allkeys-lru")).output).toContain("NOPERM");

  expect(await call("PATCH", `/v1/project/${project.id}/envs`, { envs })).toMatchObject({ status: 200 });
  await eventually(async () => {
    const print = ["/bin/sh", "-c", 'echo "$GREETING"'];
    const printed = await exec(project.namespace, `${project.id}-0`, "database", print);
    expect(printed).toEqual({ exitCode: 0, output: "hello\n" });
  });
  await untilReady(project);
  expect((await inside("LPOP queue")).output).toBe("first\n");
});
