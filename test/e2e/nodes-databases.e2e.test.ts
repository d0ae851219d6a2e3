// On a stack of three nodes: `hack/up.sh --cluster kind --nodes 3`. Not among the other end-to-end tests, whose stack has one.
import { afterAll, expect, test } from "vitest";
import { postgresqlDriver } from "../chaos/support/engines.ts";
import { longestGap, lostRows, secondPrimaries, Writer } from "./support/acknowledged.ts";
import { apiClient, deleteProjects } from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { createDatabase, podsOfDatabase, readDatabase, untilReady } from "./support/databases.ts";
import { eventually } from "./support/eventually.ts";
import { cordon, freeze, ingressNode, nodeOf, readyNodes } from "./support/nodes.ts";

const call = apiClient();
const made: string[] = [];
afterAll(() => deleteProjects(call, made));

const { body, open, rows } = postgresqlDriver;

test("a PostgreSQL whose primary's node hangs takes writes again on another node, and has every acknowledged row when the node is back", {
  timeout: 900_000,
}, async () => {
  const project = await createDatabase(call, body());
  made.push(project.id);
  await untilReady(project);
  const pods = await podsOfDatabase(project);
  expect(new Set(pods.map(nodeOf)).size).toBe(3);

  const first = await ingressNode();
  const nodeOfPrimary = async (): Promise<string> => {
    const primary = (await readDatabase(project)).status?.database?.primary;
    return nodeOf((await podsOfDatabase(project)).find(({ metadata }) => metadata?.name === primary));
  };
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
    await untilReady(project);
  }
  const hung = await nodeOfPrimary();
  expect(hung).not.toBe(first);

  const writer = new Writer(() => open(project));
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
    await untilReady(project);
    await writer.untilWrites();
  } finally {
    await writer.stop();
  }
  console.log(
    `${writer.acknowledged.length} rows acknowledged, no row for ${Math.round(longestGap(writer.acknowledged))} ms at most`,
  );
  expect(secondPrimaries(writer.acknowledged)).toEqual([]);
  expect(lostRows(writer.acknowledged, await eventually(() => rows(project)))).toEqual([]);
});
