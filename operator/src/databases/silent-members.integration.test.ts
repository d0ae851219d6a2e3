import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import { afterAll, beforeAll, expect, test } from "vitest";
import { exampleDatabase } from "../../../test/kit/databases/examples.ts";
import {
  eventually,
  exists,
  startCluster,
  startOperator,
  type TestCluster,
  type TestOperator,
} from "../../../test/kit/operator/harness.ts";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { projectResource } from "../resources.ts";

/** Nine MariaDB groups on a node whose kubelet accepts connections and never answers: every command in a pod hangs. */

const namespace = "slipway-org-alpha";
const NODE = "silent";
const GROUPS = 9;

let cluster: TestCluster;
let operator: TestOperator;
let kubelet: Server;
let asked = 0;

beforeAll(async () => {
  const sockets = new Set<Socket>();
  kubelet = createServer((socket) => {
    asked += 1;
    sockets.add(socket);
    socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
  });
  await once(kubelet.listen(0, "127.0.0.1"), "listening");
  kubelet.on("close", () => sockets.forEach((socket) => void socket.destroy()));
  cluster = await startCluster();
  await cluster.client.create(resources.namespaces, { metadata: { name: "slipway-system" } });
  await cluster.client.create(resources.nodes, { metadata: { name: NODE } });
  await setNode("True");
  const image = { uid: 999, gid: 999, features: {} };
  operator = await startOperator(cluster, {
    allowList: "none",
    listOrganizations: async () => ["alpha"],
    databaseImages: {
      mariadb: { "11": { ...image, image: "registry.example/mariadb:11" } },
      postgresql: { "17": { ...image, image: "registry.example/postgresql:17" } },
    },
  });
  await eventually(() => exists(cluster.client, resources.namespaces, { name: namespace }));
});
afterAll(async () => {
  await operator?.stop();
  await cluster?.stop();
  kubelet?.close();
});

const setNode = (ready: "True" | "Unknown") =>
  cluster.client.patch(
    resources.nodes,
    { name: NODE },
    {
      status: {
        addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
        daemonEndpoints: { kubeletEndpoint: { Port: (kubelet.address() as AddressInfo).port } },
        conditions: [{ type: "Ready", status: ready }],
      },
    },
    { subresource: "status" },
  );

const create = (name: string, spec: Partial<Project["spec"]>) => {
  const { uid: _uid, generation: _generation, ...metadata } = exampleDatabase().metadata;
  const project = { ...exampleDatabase(spec), metadata: { ...metadata, name } };
  return cluster.client.create<Project>(projectResource, project);
};

/** Its three pods, as a StatefulSet's controller and a kubelet would have left them. */
async function runPods(name: string): Promise<void> {
  for (const ordinal of [0, 1, 2]) {
    const ref = { namespace, name: `${name}-${ordinal}` };
    const labels = { "slipway.dev/project": name, "slipway.dev/type": "mariadb" };
    await cluster.client.create(resources.pods, {
      metadata: { ...ref, labels },
      spec: { nodeName: NODE, containers: [{ name: "database", image: "registry.example/mariadb:11" }] },
    } as KubernetesObject);
    const running = { startedAt: "2026-01-01T00:00:00Z" };
    const status = {
      phase: "Running",
      conditions: [{ type: "Ready", status: "True" }],
      containerStatuses: [
        { name: "database", ready: true, restartCount: 0, image: "", imageID: "", state: { running } },
      ],
    };
    await cluster.client.patch(resources.pods, ref, { status }, { subresource: "status" });
  }
}

/** Milliseconds from an HTTP project's creation to its Deployment. */
async function rolloutLatency(name: string): Promise<number> {
  const from = performance.now();
  await cluster.client.create(projectResource, exampleProject({ namespace, name }));
  await eventually(() => exists(cluster.client, resources.deployments, { namespace, name }), 60_000);
  return performance.now() - from;
}

test("members that do not answer delay no other project", { timeout: 120_000 }, async () => {
  const names = Array.from({ length: GROUPS }, (_, index) => `group-${index}`);
  for (const name of names) {
    await create(name, { type: "mariadb", version: "11", instances: 3 });
    await eventually(() => exists(cluster.client, resources.statefulSets, { namespace, name }));
  }
  for (const name of names) {
    await runPods(name);
  }
  await eventually(async () => asked >= 8);
  await sleep(1_000);
  const rollout: number[] = [];
  for (const one of [1, 2, 3]) {
    rollout.push(await rolloutLatency(`web-${one}`));
  }
  console.log("HTTP projects beside", GROUPS, "groups that do not answer:", rollout.map(Math.round), "ms");
  expect(Math.max(...rollout)).toBeLessThan(3_000);
});

test("no command is run in pods of a node that is not ready", { timeout: 60_000 }, async () => {
  await setNode("Unknown");
  // What was under way is abandoned within ten seconds.
  await sleep(11_000);
  const before = asked;
  await sleep(5_000);
  expect(asked).toBe(before);
});
