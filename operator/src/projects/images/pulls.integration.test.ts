import { customResource, type KubernetesObject, resources } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  conditionsOf,
  eventually,
  exists,
  startCluster,
  startOperator,
  type TestCluster,
  type TestOperator,
} from "../../../../test/kit/operator/harness.ts";
import { deploy, makePod, removePods } from "../../../../test/kit/operator/pods.ts";
import { exampleProject } from "../../../../test/kit/operator/projects.ts";
import { projectResource } from "../../resources.ts";

const ref = { namespace: "slipway-org-alpha", name: "large" };
const events = customResource("", "v1", "events", "Event");
const creating = { container: { state: { waiting: { reason: "ContainerCreating" } } } };

let cluster: TestCluster;
let operator: TestOperator;
beforeAll(async () => {
  cluster = await startCluster();
  operator = await startOperator(cluster, { listOrganizations: async () => ["alpha"] });
});
afterAll(async () => {
  await removePods(cluster.client, ref);
  await operator.stop();
  await cluster.stop();
});

const phase = (expected: string) =>
  eventually(async () => {
    const { status } = await cluster.client.get<Project>(projectResource, ref);
    return status?.phase === expected;
  });

/** What the kubelet writes when it begins to pull an image for a pod. */
async function beginPull(reason: string): Promise<void> {
  const pod = await cluster.client.get(resources.pods, { ...ref, name: `${ref.name}-pod` });
  const { name, namespace, uid } = pod.metadata ?? {};
  await cluster.client.create<KubernetesObject>(events, {
    metadata: { namespace: ref.namespace, name: `${ref.name}.${reason.toLowerCase()}` },
    involvedObject: { kind: "Pod", namespace, name, uid },
    reason,
    type: "Normal",
  } as KubernetesObject);
}

// Shows: docs/applications.md#states: `downloading` | an image is fetched
test("a project whose image is being pulled is downloading, until its container has the image", async () => {
  await eventually(() => exists(cluster.client, resources.namespaces, { name: ref.namespace }));
  await cluster.client.create<Project>(projectResource, exampleProject(ref, { exposure: "private" }));
  await eventually(() => exists(cluster.client, resources.deployments, ref));
  await makePod(cluster.client, ref, creating);
  await beginPull("Scheduled");
  await phase("creating");
  await beginPull("Pulling");
  await phase("downloading");
  expect(await conditionsOf(cluster.client, ref)).toContain("Progressing=True/PullingImage");
  await deploy(cluster.client, ref, "registry.example/team/app:1.0.0", `sha256:${"a".repeat(64)}`);
  await phase("running");
});
