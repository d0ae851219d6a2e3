import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:https";
import { type KubernetesObject, type Resource, resources } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { exampleDatabase } from "../../../test/kit/databases/examples.ts";
import {
  conditionsOf,
  eventually,
  exists,
  startCluster,
  startOperator,
  type TestCluster,
  type TestOperator,
} from "../../../test/kit/operator/harness.ts";
import { projectResource } from "../resources.ts";

/**
 * Changes of plan on a real apiserver without kubelets: tests play the StatefulSet controller, a node that has room for
 * some plans alone, and the server.
 */

const namespace = "slipway-org-alpha";
const image = { image: "registry.example/clickhouse", uid: 101, gid: 101, engine: "chdb" };
const images = { clickhouse: { "26.8.6.5": { ...image, features: { replication: false } } } };
/** Memory that the one node has for a pod. */
const ROOM = "4Gi";
/** Of pods: where the server listens. */
const ip = `127.${10 + randomInt(200)}.${randomInt(250)}.${1 + randomInt(250)}`;

let cluster: TestCluster;
let operator: TestOperator | undefined;
let server: Server | undefined;
let playing: { stop: () => Promise<void> } | undefined;

const run = async (planChangeMs?: number) => {
  await operator?.stop();
  operator = await startOperator(cluster, {
    listOrganizations: async () => ["alpha"],
    databaseImages: images,
    planChangeMs,
  });
};

beforeAll(async () => {
  cluster = await startCluster();
  await cluster.client.create(resources.namespaces, { metadata: { name: "slipway-system" } });
  await run();
  await eventually(() => exists(cluster.client, resources.namespaces, { name: namespace }));
  await cluster.client.create(resources.serviceAccounts, { metadata: { name: "default", namespace } });
});
afterEach(async () => {
  await playing?.stop();
  server?.close();
  server?.closeAllConnections();
});
afterAll(async () => {
  await operator?.stop();
  await cluster?.stop();
});

const ref = (name: string) => ({ namespace, name });
const get = <T extends KubernetesObject>(resource: Resource, name: string) =>
  cluster.client.getOrUndefined<T>(resource, ref(name));
const project = (name: string) => cluster.client.get<Project>(projectResource, ref(name));
const ask = (name: string, plan: string, planRequestedAt: string) =>
  cluster.client.patch(projectResource, ref(name), { spec: { plan, planRequestedAt } });

interface Template {
  metadata: { labels: Record<string, string>; annotations: Record<string, string> };
  spec: { containers: { name: string; image: string; resources: { limits: { memory: string } } }[] };
}
type StatefulSet = KubernetesObject & { spec: { template: Template } };
type Pod = KubernetesObject & {
  spec: Template["spec"];
  status?: { phase?: string; podIP?: string };
};
const memoryOf = (pod: Pod | undefined) => pod?.spec.containers[0]?.resources.limits.memory;

/** The StatefulSet's controller and the node, for one instance. */
function play(name: string): { stop: () => Promise<void> } {
  let stopped = false;
  const writeStatus = (resource: Resource, object: string, status: object) =>
    cluster.client.patch(resource, ref(object), { status }, { subresource: "status" });
  const step = async () => {
    const set = await get<StatefulSet>(resources.statefulSets, name);
    if (!set) {
      return;
    }
    await writeStatus(resources.statefulSets, name, {
      observedGeneration: set.metadata?.generation,
      replicas: 1,
    });
    const pod = await get<Pod>(resources.pods, `${name}-0`);
    if (!pod) {
      const { metadata, spec } = set.spec.template;
      const { containers } = spec;
      const slim = containers.map(({ name, image, resources }) => ({ name, image, resources }));
      const made = { metadata: { ...metadata, ...ref(`${name}-0`) }, spec: { containers: slim } };
      await cluster.client.create(resources.pods, made as KubernetesObject);
    } else if (pod.status?.podIP === undefined) {
      await writeStatus(resources.pods, `${name}-0`, stateOf(pod));
    }
  };
  const done = (async () => {
    while (!stopped) {
      await step().catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  })();
  return {
    stop: async () => {
      stopped = true;
      await done;
    },
  };
}

function stateOf(pod: Pod): object {
  const at = new Date().toISOString();
  if (Number.parseInt(memoryOf(pod) ?? "", 10) > Number.parseInt(ROOM, 10)) {
    const unschedulable = { type: "PodScheduled", status: "False", reason: "Unschedulable" };
    return { phase: "Pending", conditions: [{ ...unschedulable, lastTransitionTime: at }] };
  }
  const container = { name: "database", image: "clickhouse", imageID: "", restartCount: 0, ready: true };
  return {
    phase: "Running",
    podIP: ip,
    podIPs: [{ ip }],
    conditions: [{ type: "Ready", status: "True", lastTransitionTime: at }],
    containerStatuses: [{ ...container, started: true, state: { running: { startedAt: at } } }],
  };
}

/** A server that takes every statement, with the certificate that the operator has signed. */
async function serve(name: string): Promise<void> {
  type Secret = KubernetesObject & { data: Record<string, string> };
  await eventually(() => exists(cluster.client, resources.secrets, ref(`${name}-tls`)));
  const secret = await get<Secret>(resources.secrets, `${name}-tls`);
  const pem = (key: string) => Buffer.from(secret?.data[key] ?? "", "base64");
  server = createServer({ cert: pem("tls.crt"), key: pem("tls.key") }, (request, response) => {
    request.resume().on("end", () => response.end("26.7.2.1\n"));
  });
  server.listen(8443, ip);
  await once(server, "listening");
}

/** A database that serves on the plan analytics-basic. */
async function create(name: string): Promise<void> {
  const spec = { type: "clickhouse", plan: "analytics-basic", version: "26.8.6.5" } as const;
  const { uid: _uid, generation: _generation, ...metadata } = exampleDatabase(spec).metadata;
  await cluster.client.create(projectResource, { ...exampleDatabase(spec), metadata: { ...metadata, name } });
  playing = play(name);
  await serve(name);
  await eventually(async () =>
    (await conditionsOf(cluster.client, ref(name))).includes("DatabaseReady=True/DatabaseAvailable"),
  );
}

const AT = "2026-03-01T00:00:00Z";
const LATER = "2026-03-02T00:00:00Z";

// Each waits for several reconciles of an operator that may be one of many.
describe("a project on Analytics", { timeout: 180_000 }, () => {
  test("changes its plan, and is on it once it serves", async () => {
    await create("done");
    await ask("done", "analytics-premium", AT);
    await eventually(async () => (await project("done")).status?.planChange?.status === "in_progress");
    await eventually(async () => (await project("done")).status?.plan === "analytics-premium");
    const { status } = await project("done");
    expect(status?.planChange).toBeUndefined();
    expect(status?.maxMemory).toBe("4Gi");
    expect(memoryOf(await get<Pod>(resources.pods, "done-0"))).toBe("4Gi");
  });

  // Shows: docs/databases-api.md#change-of-plan: of ClickHouse: one instance after the other in the
  test("stays on the plan before when no node has room for the other one, until it asks again", async () => {
    await create("stuck");
    // From here on nothing may take longer than the test waits.
    await run(3_000);
    await ask("stuck", "analytics-business", AT);
    await eventually(async () => memoryOf(await get<Pod>(resources.pods, "stuck-0")) === "8Gi");
    await eventually(async () => (await project("stuck")).status?.planChange?.status === "failed");
    const { status } = await project("stuck");
    expect(status).toMatchObject({
      plan: "analytics-basic",
      maxMemory: "2Gi",
      planChange: { fromPlan: "analytics-basic", toPlan: "analytics-business", requestedAt: AT },
    });
    await eventually(async () => memoryOf(await get<Pod>(resources.pods, "stuck-0")) === "2Gi");
    await eventually(async () =>
      (await conditionsOf(cluster.client, ref("stuck"))).includes("DatabaseReady=True/DatabaseAvailable"),
    );
    expect(await conditionsOf(cluster.client, ref("stuck"))).toContain("PlanChanging=False/PlanChangeFailed");
    const failed = (await project("stuck")).status?.planChange;

    // An operator that starts anew does not try it again.
    await run();
    await cluster.client.patch(projectResource, ref("stuck"), { spec: { name: "still-stuck" } });
    await eventually(async () => {
      const { metadata, status } = await project("stuck");
      return status?.observedGeneration === metadata.generation;
    });
    expect((await project("stuck")).status?.planChange).toEqual(failed);
    expect(memoryOf(await get<Pod>(resources.pods, "stuck-0"))).toBe("2Gi");

    await ask("stuck", "analytics-premium", LATER);
    await eventually(async () => (await project("stuck")).status?.plan === "analytics-premium");
    expect((await project("stuck")).status?.planChange).toBeUndefined();
  });

  test("stays on its plan when the other one is in no catalog", async () => {
    await create("unknown");
    await ask("unknown", "analytics-none", AT);
    await eventually(async () => (await project("unknown")).status?.planChange?.status === "failed");
    expect((await project("unknown")).status?.plan).toBe("analytics-basic");
    expect(await conditionsOf(cluster.client, ref("unknown"))).toContain("Accepted=True/Accepted");
  });
});
