import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  eventually,
  exists,
  startCluster,
  startOperator,
  type TestCluster,
  untilUnchanged,
} from "../../../../test/kit/operator/harness.ts";
import { exampleProject } from "../../../../test/kit/operator/projects.ts";
import { projectResource } from "../../resources.ts";

/** A node with a pod of the ingress, and a collector that counts what a test says. */

const namespace = "slipway-org-alpha";
const INGRESS = "request-scaling-ingress";
const COLLECTORS = "request-scaling-collectors";

let cluster: TestCluster;
let operator: Awaited<ReturnType<typeof startOperator>>;
let server: Server;
/** Requests a second of the project `scaled`; undefined: the collector has no counts. */
let rate: number | undefined;
let read = 0;

beforeAll(async () => {
  let count = 0;
  let before = performance.now();
  server = createServer((_, response) => {
    const now = performance.now();
    count += (rate ?? 0) * ((now - before) / 1000);
    before = now;
    read += 1;
    const counts = { "alpha/scaled": Math.round(count) };
    const body = { process: "one", at: now, complete: true, counts };
    response.writeHead(rate === undefined ? 503 : 200).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cluster = await startCluster();
  for (const name of [INGRESS, COLLECTORS]) {
    await cluster.client.create<KubernetesObject>(resources.namespaces, { metadata: { name } });
  }
  await runningPod(INGRESS, "traefik");
  await runningPod(COLLECTORS, "collector");
  operator = await start();
  await eventually(() => exists(cluster.client, resources.namespaces, { name: namespace }));
});
afterAll(async () => {
  await operator.stop();
  await cluster.stop();
  server.close();
});

const start = () =>
  startOperator(cluster, {
    listOrganizations: async () => ["alpha"],
    ingressNamespace: INGRESS,
    requestScaling: {
      ingressContainer: "traefik",
      collectors: { namespace: COLLECTORS, port: (server.address() as AddressInfo).port },
      intervalMs: 300,
    },
  });

async function runningPod(namespace: string, container: string): Promise<void> {
  const name = `${container}-1`;
  await cluster.client.create<KubernetesObject>(resources.pods, {
    metadata: { namespace, name, labels: { "app.kubernetes.io/name": `slipway-${container}` } },
    spec: { nodeName: "node-1", containers: [{ name: container, image: container }] },
  } as KubernetesObject);
  const status = { phase: "Running", podIP: "127.0.0.1", podIPs: [{ ip: "127.0.0.1" }] };
  await cluster.client.patch(resources.pods, { namespace, name }, { status }, { subresource: "status" });
}

const autoscaler = (name: string) =>
  cluster.client.get<KubernetesObject & { spec: { minReplicas: number; maxReplicas: number } }>(
    resources.horizontalPodAutoscalers,
    { namespace, name },
  );
const untilLeast = (least: number) =>
  eventually(async () => (await autoscaler("scaled")).spec.minReplicas === least);
const create = (name: string, target: { requestsPerSecondTarget?: number } = {}) =>
  cluster.client.create<Project>(
    projectResource,
    exampleProject(
      { namespace, name },
      { plan: "premium", autoscaling: { enabled: true, maxInstances: 3, ...target } },
    ),
  );

// Shows: docs/applications.md#scaling-by-requests: nothing is read as long as no project is scaled by them
// Shows: docs/applications.md#scaling-by-requests: without figures nothing is removed
test("requests are the least of a project's autoscaler, also for the next operator, and of no other's", async () => {
  await create("fixed");
  await eventually(() =>
    exists(cluster.client, resources.horizontalPodAutoscalers, { namespace, name: "fixed" }),
  );
  const { metadata: untouched } = await autoscaler("fixed");
  expect(read).toBe(0);

  rate = 1_000;
  await create("scaled", { requestsPerSecondTarget: 10 });
  await untilLeast(3);
  expect(await autoscaler("scaled")).toMatchObject({ spec: { minReplicas: 3, maxReplicas: 3 } });
  // The status follows the autoscaler.
  await eventually(async () => {
    const { status } = await cluster.client.get<Project>(projectResource, { namespace, name: "scaled" });
    return status?.requestScaling?.instances === 3;
  });
  expect(await operator.metrics()).toMatch(/slipway_request_scaling_projects 1\n/);

  // The figures are away, and the operator that knew them.
  rate = undefined;
  await eventually(async () =>
    /rounds_total\{result="incomplete"\} ([2-9]|\d\d)/.test(await operator.metrics()),
  );
  await operator.stop();
  operator = await start();
  await eventually(async () => /rounds_total\{result="incomplete"\} [2-9]/.test(await operator.metrics()));
  await untilUnchanged(cluster);
  expect((await autoscaler("scaled")).spec.minReplicas).toBe(3);
  expect((await autoscaler("fixed")).metadata?.resourceVersion).toBe(untouched?.resourceVersion);

  rate = 1_000;
  const autoscaling = { maxInstances: 4 };
  await cluster.client.patch(projectResource, { namespace, name: "scaled" }, { spec: { autoscaling } });
  await untilLeast(4);
});
