// On a stack of three nodes: `hack/up.sh --cluster kind --nodes 3`. Not among the other end-to-end tests, whose stack has one.
import type { V1Pod } from "@kubernetes/client-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  apiClient,
  type CreatedProject,
  createProject,
  deleteProjects,
  httpProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { cluster, exec } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import { throughIngress } from "./support/ingress.ts";
import {
  cordon,
  drain,
  freeze,
  ingressNode,
  nodeOf,
  onNode,
  readyNodes,
  runningPods,
} from "./support/nodes.ts";
import { leader, systemNamespace } from "./support/operator.ts";
import { createOrganization } from "./support/organization.ts";
import { namespaceOf, stack } from "./support/stack.ts";
import { traffic } from "./support/traffic.ts";

/** A leader that is frozen loses its Lease, and another starts: 15 s of a Lease, and a busy machine. */
const FAILOVER_MS = 60_000;

const call = apiClient();
const namespace = namespaceOf(stack.organization);
const made: string[] = [];
/** The node that the ingress is on, and the others. */
let first = "";
let workers: string[] = [];

beforeAll(async () => {
  first = await ingressNode();
  workers = (await readyNodes()).filter((name) => name !== first);
  expect(workers, "this needs a stack of three nodes: hack/up.sh --cluster kind --nodes 3").toHaveLength(2);
});
afterAll(async () => {
  for (const node of [first, ...workers]) {
    await cordon(node, false);
  }
  await deleteProjects(call, made);
});

const podsOf = (id: string) => runningPods(namespace, `slipway.dev/project=${id}`);

async function running(config: object) {
  const project = await createProject(call, httpProject(uniqueName("nodes"), { ...config }));
  made.push(project.project_id);
  await untilStatus(call, project.project_id, "running");
  return project;
}

/** Where the volume of a pod is on its node. */
async function volumeOf(pod: V1Pod | undefined): Promise<string> {
  const claims = (pod?.spec?.volumes ?? []).flatMap((one) => one.persistentVolumeClaim?.claimName ?? []);
  const claim = await cluster.core.readNamespacedPersistentVolumeClaim({ namespace, name: claims[0] ?? "" });
  const volume = await cluster.core.readPersistentVolume({ name: claim.spec?.volumeName ?? "" });
  expect(volume.spec?.local?.path).toMatch(/^\//);
  return volume.spec?.local?.path ?? "";
}

/** A prober on a node, in an organization's namespace. */
async function startProber(where: string, node: string): Promise<void> {
  const container = {
    name: "prober",
    image: stack.imageJob,
    command: ["/bin/sh", "-c", "sleep 3600"],
    securityContext: { allowPrivilegeEscalation: false },
  };
  const spec = { nodeName: node, automountServiceAccountToken: false, containers: [container] };
  const metadata = { name: "prober", labels: { "slipway.dev/project": "prober" } };
  await cluster.core.createNamespacedPod({ namespace: where, body: { metadata, spec } });
  await eventually(async () => {
    const pod = await cluster.core.readNamespacedPod({ namespace: where, name: "prober" });
    expect(pod.status?.phase).toBe("Running");
  });
}

describe("spread", () => {
  test("instances of an application are on a node each", async () => {
    const { project_id: id, domain } = await running({ instances: 3 });
    const pods = await podsOf(id);
    expect(new Set(pods.map(nodeOf)).size).toBe(3);
    // The ingress reaches all of them: over routes between the nodes.
    const seen = new Set<string>();
    await eventually(
      async () => {
        seen.add((JSON.parse((await throughIngress(domain)).text) as { hostname: string }).hostname);
        expect(seen.size).toBe(3);
      },
      { within: 30_000, every: 50 },
    );
  });

  test.each(["slipway-operator", "slipway-api-server"])("%s is on two nodes", async (name) => {
    const pods = await runningPods(systemNamespace, `app.kubernetes.io/name=${name}`);
    expect(pods.length).toBeGreaterThan(1);
    expect(new Set(pods.map(nodeOf)).size).toBeGreaterThan(1);
  });
});

describe("isolation over nodes", () => {
  test("a pod reaches what its organization has on other nodes, and nothing of another organization there", async () => {
    const [own, other] = await Promise.all([createOrganization("Nodes A"), createOrganization("Nodes B")]);
    const attacker = namespaceOf(own.organization_id);
    const addressesOf = async (key: string, where: string): Promise<Map<string, string>> => {
      const created = await apiClient(key)<CreatedProject>(
        "POST",
        "/v1/project",
        httpProject(uniqueName("target"), { instances: 3 }),
      );
      const { project_id: id } = created.body.data as CreatedProject;
      return eventually(async () => {
        const pods = await runningPods(where, `slipway.dev/project=${id}`);
        const all = new Map(pods.map((pod) => [nodeOf(pod), pod.status?.podIP ?? ""]));
        expect(all.size).toBe(3);
        return all;
      });
    };
    const [ours, theirs] = await Promise.all([
      addressesOf(own.api_key, attacker),
      addressesOf(other.api_key, namespaceOf(other.organization_id)),
    ]);
    await startProber(attacker, workers[0] ?? "");
    const connect = async (host: string): Promise<number> => {
      const command = ["/bin/sh", "-c", `nc -w 3 ${host} 8080 </dev/null`];
      return (await exec(attacker, "prober", "prober", command)).exitCode;
    };
    for (const node of [first, ...workers]) {
      await eventually(async () => expect(await connect(ours.get(node) ?? ""), `ours on ${node}`).toBe(0));
      expect(await connect(theirs.get(node) ?? ""), `theirs on ${node}`).not.toBe(0);
    }
  });
});

describe("a node that is drained", () => {
  test("costs an application with two instances no request, and one with a volume waits for its node", async () => {
    // Both leave the ingress's node alone: that one stays.
    await cordon(first);
    const storage = { persistent: true, capacity: 1, dir_path_to_persist: "/data" };
    const [kept, bound] = await Promise.all([running({ instances: 2 }), running({ storage })]);
    const [volumePod] = await podsOf(bound.project_id);
    const node = nodeOf(volumePod);
    expect(workers).toContain(node);
    const volume = await volumeOf(volumePod);
    await onNode(node, `echo kept >"${volume}/file"`);
    await cordon(first, false);

    const requests = traffic(kept.domain);
    await drain(node);
    await eventually(async () => {
      const pods = await podsOf(kept.project_id);
      expect(pods).toHaveLength(2);
      expect(pods.map(nodeOf)).not.toContain(node);
    });
    const waiting = await eventually(async () => {
      const { items } = await cluster.core.listNamespacedPod({
        namespace,
        labelSelector: `slipway.dev/project=${bound.project_id}`,
      });
      const message = items[0]?.status?.conditions?.find(({ type }) => type === "PodScheduled")?.message;
      expect(items[0]?.status?.phase).toBe("Pending");
      expect(message).toMatch(/volume|affinity/);
      return message;
    });
    console.log(`the application with a volume waits: ${waiting}`);
    const report = await requests.stop();
    expect(report.failures).toEqual([]);
    console.log(`${report.sent} requests during the drain, none failed`);

    await cordon(node, false);
    await eventually(async () => {
      const [pod] = await podsOf(bound.project_id);
      expect(nodeOf(pod)).toBe(node);
      expect(await volumeOf(pod)).toBe(volume);
      expect(await onNode(node, `cat "${volume}/file"`)).toBe("kept\n");
    });
  });
});

describe("a node that hangs", () => {
  test("with the operator's leader on it: another one leads, and the node comes back", async () => {
    // On a worker: the ingress's node is also etcd's.
    await cordon(first);
    const pod = await eventually(async () => {
      const name = await leader();
      const found = await cluster.core.readNamespacedPod({ namespace: systemNamespace, name });
      if (nodeOf(found) === first) {
        await cluster.core.deleteNamespacedPod({ namespace: systemNamespace, name });
      }
      expect(workers).toContain(nodeOf(found));
      return found;
    });
    await cordon(first, false);
    // The other one has to be there: a new pod waits for the ledger, which may be on the node that hangs.
    await eventually(async () => {
      const pods = await runningPods(systemNamespace, "app.kubernetes.io/name=slipway-operator");
      const ready = pods.filter(({ status }) => status?.containerStatuses?.every((one) => one.ready));
      expect(ready).toHaveLength(2);
      expect(new Set(ready.map(nodeOf)).size).toBe(2);
    });
    const thaw = await freeze(nodeOf(pod));
    const start = performance.now();
    try {
      await eventually(async () => expect(await leader()).not.toBe(pod.metadata?.name), {
        within: FAILOVER_MS,
        every: 200,
      });
      console.log(`another leads after ${Math.round(performance.now() - start)} ms`);
      await eventually(async () => expect(await readyNodes()).not.toContain(nodeOf(pod)));
      console.log(`the node is known to be gone after ${Math.round(performance.now() - start)} ms`);
    } finally {
      await thaw();
    }
    await eventually(async () => expect(await readyNodes()).toContain(nodeOf(pod)));
  });
});
