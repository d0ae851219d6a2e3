import { once } from "node:events";
import { createServer, get, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { activatorServiceName, type Project } from "@slipway/crds";
import { silentLogger, systemClock } from "@slipway/process";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  eventually,
  exists,
  serveDeployment,
  startCluster,
  startOperator,
  type TestCluster,
  whileServed,
} from "../../../test/kit/operator/harness.ts";
import { makePod, removePods, serving } from "../../../test/kit/operator/pods.ts";
import { exampleProject, exampleWorker } from "../../../test/kit/operator/projects.ts";
import { projectResource } from "../resources.ts";
import { ActivatorCluster } from "./activator/cluster.ts";
import { ActivatorMetrics } from "./activator/metrics.ts";
import { activatorServer } from "./activator/server.ts";
import { Waker } from "./activator/waker.ts";

/** Projects sleep and wake on a real kube-apiserver, beside two activators. Instances are one server of this process. */

const namespace = "slipway-org-alpha";
const ref = { namespace, name: "sleeper" };
const host = "sleeper.apps.test";

let cluster: TestCluster;
let operator: Awaited<ReturnType<typeof startOperator>>;
let instance: Server;
let isIdle = false;
const stops: (() => Promise<void>)[] = [];

type Ingress = KubernetesObject & {
  spec: { rules: { http: { paths: { backend: { service: { name: string } } }[] } }[] };
};
type Deployment = KubernetesObject & { spec: { replicas: number } };

const project = () => cluster.client.get<Project>(projectResource, ref);
const phase = async () => (await project()).status?.sleep?.phase;
const replicas = async () => (await cluster.client.get<Deployment>(resources.deployments, ref)).spec.replicas;
const backend = async () =>
  (await cluster.client.get<Ingress>(resources.ingresses, ref)).spec.rules[0]?.http.paths[0]?.backend.service
    .name;

beforeAll(async () => {
  cluster = await startCluster();
  operator = await startOperator(cluster, {
    listOrganizations: async () => ["alpha"],
    ingressProbe: async () => ((await backend()) === ref.name ? "serving" : "activator"),
    sleep: {
      activator: () => ["10.96.0.77"],
      namespace: "slipway-system",
      idleSeconds: () => (isIdle ? 1_000 : 0),
    },
  });
  for (const plan of operator.catalog.httpPlans) {
    plan.sleepAfterSeconds = 10;
    plan.maxInstances = 3;
    plan.capabilities.autoscaling = true;
  }
  instance = createServer((_, response) => void response.end("awake"));
  instance.listen(0, "127.0.0.1");
  await once(instance, "listening");
  await eventually(() => exists(cluster.client, resources.namespaces, { name: namespace }));
});
afterAll(async () => {
  await Promise.all(stops.map((stop) => stop()));
  instance.close();
  await operator.stop();
  await cluster.stop();
});

/** An activator that is answered by the instance once the apiserver has an EndpointSlice with one that is ready. */
async function startActivator() {
  const client = KubeClient.fromConfig(loadKubeConfig({ file: cluster.api.kubeconfig }));
  const observed = new ActivatorCluster({ client, clock: systemClock, log: silentLogger });
  const ended = new AbortController();
  const following = observed.run(ended.signal);
  await eventually(async () => observed.hasSynced);
  const metrics = new ActivatorMetrics();
  const waker = new Waker({
    ...{ clock: systemClock, log: silentLogger, metrics },
    current: (one) => observed.current(one),
    requestWake: (one, signal) => observed.requestWake(one, signal),
  });
  const server = activatorServer({
    ...{ metrics, log: silentLogger },
    find: (name) => observed.find(name),
    current: (one) => observed.current(one),
    addresses: (one) =>
      observed
        .addresses(one)
        .map(() => ({ host: "127.0.0.1", port: (instance.address() as AddressInfo).port })),
    changed: (one, signal) => observed.changed(one, signal),
    wake: (one, isHeld) => waker.wake(one, isHeld, ended.signal),
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const stop = async () => {
    server.closeAllConnections();
    server.close();
    ended.abort();
    await following;
    await client.close();
  };
  stops.push(stop);
  const { port } = server.address() as AddressInfo;
  return {
    stop,
    request: () => textOf(port),
  };
}

/** Of an answer by an activator. @throws Error when the connection ends before */
async function textOf(port: number): Promise<string> {
  const [answer] = (await once(
    get({ host: "127.0.0.1", port, headers: { host }, agent: false }),
    "response",
  )) as [IncomingMessage];
  return (await answer.toArray()).join("");
}

/** What the EndpointSlice controller does. */
async function setEndpoints(ready: boolean): Promise<void> {
  const slice = {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      ...{ name: `${ref.name}-abcde`, namespace },
      labels: {
        "kubernetes.io/service-name": ref.name,
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        "slipway.dev/sleeps": "true",
      },
    },
    addressType: "IPv4",
    endpoints: ready ? [{ addresses: ["10.244.0.9"], conditions: { ready: true } }] : [],
    ports: [{ name: "http", port: 8080, protocol: "TCP" }],
  };
  await cluster.client
    .delete(resources.endpointSlices, { namespace, name: `${ref.name}-abcde` })
    .catch(() => false);
  await cluster.client.create<KubernetesObject>(resources.endpointSlices, slice as KubernetesObject);
}

/** What Kubernetes does for an instance that is wanted. */
async function startInstance(): Promise<void> {
  await makePod(cluster.client, ref, serving("registry.example/team/app:1.0.0", `sha256:${"a".repeat(64)}`));
  await serveDeployment(cluster.client, ref);
  await setEndpoints(true);
}

async function untilAsleep(): Promise<void> {
  isIdle = true;
  await cluster.client.patch(projectResource, ref, {
    metadata: { annotations: { "example.com/poke": `${Date.now()}` } },
  });
  await eventually(async () => (await phase()) === "asleep" && (await replicas()) === 0);
  isIdle = false;
  await setEndpoints(false);
  await removePods(cluster.client, ref);
  await serveDeployment(cluster.client, ref);
}

// Shows: docs/sleep.md#waking: a request is held by one activator: where that is killed, the ingress
test("a project falls asleep behind the activator and wakes by a request, though the activator that received it is killed", async () => {
  const spec = { subdomain: "sleeper", sleepAfterSeconds: 10 };
  await cluster.client.create<Project>(projectResource, exampleProject(ref, spec));
  await eventually(() => exists(cluster.client, resources.deployments, ref));
  await startInstance();
  await whileServed(
    cluster.client,
    ref,
    async () =>
      (await project()).status?.deployments?.[0]?.status === "succeeded" && (await backend()) === ref.name,
  );
  expect(
    await exists(cluster.client, resources.endpointSlices, { ...ref, name: activatorServiceName(ref.name) }),
  ).toBe(true);

  await untilAsleep();
  expect(await backend()).toBe(activatorServiceName(ref.name));
  const slept = await eventually(async () => {
    const now = await project();
    return now.status?.currentInstances === 0 && now;
  });
  expect(slept.status).toMatchObject({ phase: "running", sleep: { phase: "asleep" } });

  const [killed, other] = await Promise.all([startActivator(), startActivator()]);
  const lost = killed.request().catch(() => "lost");
  await eventually(async () => (await replicas()) === 1);
  const answered = other.request();
  await killed.stop();
  expect(await lost).toBe("lost");
  await startInstance();
  expect(await answered).toBe("awake");
  await whileServed(cluster.client, ref, async () => (await phase()) === undefined);
  expect(await backend()).toBe(ref.name);
  expect((await project()).status?.phase).toBe("running");
  // The ingress may follow later: the activator answers as before, and ends no sleep that there is not.
  expect(await other.request()).toBe("awake");
});

// Shows: docs/sleep.md#when-a-project-sleeps: not before it has served for that time itself: a new version
test("a project that was woken serves for its time before it sleeps again, and has no autoscaler then", async () => {
  const isAutoscaled = () => exists(cluster.client, resources.horizontalPodAutoscalers, ref);
  await untilAsleep();
  const autoscaling = { enabled: true, maxInstances: 3, cpuTargetPercentage: 50 };
  await cluster.client.patch(projectResource, ref, { spec: { autoscaling } });
  await eventually(async () => (await replicas()) === 1);
  await startInstance();
  isIdle = true;
  await whileServed(cluster.client, ref, async () => (await phase()) === undefined);
  const awakeAt = Date.now();
  expect(await isAutoscaled()).toBe(true);
  await untilAsleep();
  expect(await isAutoscaled()).toBe(false);
  const { status } = await project();
  // Its own ten seconds, and those in which the activator has its requests.
  expect(Date.parse(status?.sleep?.since ?? "") - awakeAt).toBeGreaterThan(19_000);
});

test("a change wakes a project that sleeps, also one that is rejected", async () => {
  await untilAsleep();
  await cluster.client.patch(projectResource, ref, { spec: { description: "another" } });
  await eventually(async () => (await replicas()) === 1);
  await startInstance();
  await whileServed(
    cluster.client,
    ref,
    async () => (await phase()) === undefined && (await replicas()) === 1,
  );

  await untilAsleep();
  await cluster.client.patch(projectResource, ref, { spec: { plan: "no-such-plan" } });
  await eventually(async () => (await replicas()) === 1);
  await startInstance();
  await whileServed(
    cluster.client,
    ref,
    async () => (await replicas()) === 1 && (await phase()) === undefined,
  );
});

test("a project to which references of another one lead wakes, and does not fall asleep", async () => {
  await cluster.client.patch(projectResource, ref, { spec: { plan: "basic" } });
  await whileServed(cluster.client, ref, async () => (await project()).status?.phase === "running");
  await untilAsleep();
  const envsFrom = [{ name: "frontend-env", references: [{ reference: `${ref.name}.internal_url` }] }];
  const frontend = exampleWorker({ namespace, name: "frontend" }, { envsFrom });
  await cluster.client.create<Project>(projectResource, frontend);
  isIdle = true;
  await cluster.client.patch(projectResource, ref, {
    metadata: { annotations: { "example.com/poke": "referenced" } },
  });
  await eventually(async () => (await replicas()) === 1);
  await startInstance();
  await whileServed(cluster.client, ref, async () => (await phase()) === undefined);
  expect(await backend()).toBe(ref.name);
});
