// On a stack of three nodes: `hack/up.sh --cluster kind --nodes 3`. Not among the other end-to-end tests, whose stack has one.
import { afterAll, expect, test } from "vitest";
import { longestGap, lostRows, secondPrimaries, Writer } from "./support/acknowledged.ts";
import { apiClient, deleteProjects } from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import {
  createDatabase,
  databaseProject,
  podsOfDatabase,
  readDatabase,
  untilReady,
} from "./support/databases.ts";
import { eventually } from "./support/eventually.ts";
import { addressOf, cordon, freeze, ingressNode, nodeOf, readyNodes } from "./support/nodes.ts";
import { connectAtNode, createRows, readRows, rowsOver } from "./support/postgresql.ts";

const call = apiClient();
const made: string[] = [];
afterAll(() => deleteProjects(call, made));

/**
 * Waits until Patroni has recorded both standbys as synchronous, some seconds after they are ready. A primary that fails before has
 * acknowledged alone, and no other instance takes over.
 */
async function untilSynchronous({ id, namespace }: { id: string; namespace: string }): Promise<void> {
  await eventually(async () => {
    const { metadata } = await cluster.core.readNamespacedConfigMap({ namespace, name: `${id}-sync` });
    expect(metadata?.annotations?.sync_standby?.split(",")).toHaveLength(2);
  });
}

test("a PostgreSQL whose primary's node hangs takes writes again on another node, and has every acknowledged row when the node is back", {
  timeout: 900_000,
}, async () => {
  const config = { type_project: "postgresql", version: "17", instances: 3 };
  const project = await createDatabase(call, databaseProject("db-basic", config));
  made.push(project.id);
  // Without its connection, which is the first node's.
  const place = { id: project.id, namespace: project.namespace };
  await untilReady(place);
  await untilSynchronous(place);
  const pods = await podsOfDatabase(project);
  expect(new Set(pods.map(nodeOf)).size).toBe(3);

  const first = await ingressNode();
  const nodeOfPrimary = async (): Promise<string> => {
    const primary = (await readDatabase(project)).status?.database?.primary;
    return nodeOf((await podsOfDatabase(project)).find(({ metadata }) => metadata?.name === primary));
  };
  const connect = async () => connectAtNode(project, await addressOf(await nodeOfPrimary()));
  // On a worker: what this machine connects to, and etcd, are on the ingress's node.
  if ((await nodeOfPrimary()) === first) {
    // Its volume is there: closed, the node keeps the pod away until another instance is the primary.
    await cordon(first);
    try {
      const name = pods.find((pod) => nodeOf(pod) === first)?.metadata?.name ?? "";
      await cluster.core.deleteNamespacedPod({ namespace: project.namespace, name });
      await eventually(async () => expect([first, ""]).not.toContain(await nodeOfPrimary()));
    } finally {
      await cordon(first, false);
    }
    await untilReady(place);
  }
  const hung = await nodeOfPrimary();
  expect(hung).not.toBe(first);

  const client = await eventually(connect);
  await createRows(client).finally(() => client.end());
  await untilSynchronous(place);
  const writer = new Writer(async () => rowsOver(await connect(), "outside"));
  try {
    await writer.untilWrites();
    const thaw = await freeze(hung);
    try {
      await writer.untilWrites();
      await eventually(async () => expect(["", hung]).not.toContain(await nodeOfPrimary()));
    } finally {
      await thaw();
    }
    await eventually(async () => expect(await readyNodes()).toContain(hung));
    await untilReady(place);
    await writer.untilWrites();
  } finally {
    await writer.stop();
  }
  console.log(
    `${writer.acknowledged.length} rows acknowledged, no row for ${Math.round(longestGap(writer.acknowledged))} ms at most`,
  );
  expect(secondPrimaries(writer.acknowledged)).toEqual([]);
  const found = await eventually(async () => {
    const reader = await connect();
    return readRows(reader).finally(() => reader.end());
  });
  expect(lostRows(writer.acknowledged, found)).toEqual([]);
});
