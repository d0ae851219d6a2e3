import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  eventually,
  exists,
  startCluster,
  startOperator,
  type TestCluster,
  type TestOperator,
  untilUnchanged,
} from "../../../test/kit/operator/harness.ts";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { projectResource } from "../resources.ts";

const namespace = "slipway-org-alpha";

let cluster: TestCluster;
let operator: TestOperator;
const start = (podTemplateVersion: number) =>
  startOperator(cluster, { listOrganizations: async () => ["alpha"], podTemplateVersion });

beforeAll(async () => {
  cluster = await startCluster();
  operator = await start(1);
  await eventually(() => exists(cluster.client, resources.namespaces, { name: namespace }));
});
afterAll(async () => {
  await operator.stop();
  await cluster.stop();
});

interface Deployment extends KubernetesObject {
  spec: { template: { spec: { containers: { image: string; terminationMessagePolicy: string }[] } } };
}
const deploymentOf = (name: string) =>
  cluster.client.get<Deployment>(resources.deployments, { namespace, name });
const generationOf = async (name: string) => (await deploymentOf(name)).metadata?.generation;
const containerOf = async (name: string) => (await deploymentOf(name)).spec.template.spec.containers[0];
const until = (name: string, check: (project: Project) => boolean) =>
  eventually(async () => {
    const project = await cluster.client.get<Project>(projectResource, { namespace, name });
    return check(project) && project;
  });

// Shows: docs/releases/README.md#pod-templates: keeps it until its next deployment
test("an operator that would render another template keeps that of a project until its next deployment", async () => {
  const name = "ptemplate";
  await cluster.client.create(projectResource, exampleProject({ name, namespace }));
  await until(name, ({ status }) => status?.templateVersion === 1);
  const before = await generationOf(name);
  await operator.stop();

  operator = await start(2);
  // Something else of it is changed, and nothing of its pods.
  await cluster.client.patch(projectResource, { namespace, name }, { spec: { name: "renamed" } });
  const renamed = await until(
    name,
    ({ metadata, status }) => status?.observedGeneration === metadata.generation,
  );
  expect(renamed.status?.templateVersion).toBe(1);
  expect(renamed.status?.deployments).toHaveLength(1);
  await untilUnchanged(cluster);
  expect(await generationOf(name)).toBe(before);
  expect((await containerOf(name))?.terminationMessagePolicy).toBe("File");

  const image = { url: "registry.example/team/app:2", isPublic: true };
  await cluster.client.patch(projectResource, { namespace, name }, { spec: { image } });
  const deployed = await until(name, ({ status }) => status?.templateVersion === 2);
  expect(deployed.status?.deployments).toHaveLength(2);
  await eventually(
    async () => (await containerOf(name))?.terminationMessagePolicy === "FallbackToLogsOnError",
  );

  // Back to an operator whose new deployments get the first version: this one stays as it is.
  const generation = await generationOf(name);
  await operator.stop();
  operator = await start(1);
  await cluster.client.patch(projectResource, { namespace, name }, { spec: { name: "renamed-again" } });
  const again = await until(
    name,
    ({ metadata, status }) => status?.observedGeneration === metadata.generation,
  );
  expect(again.status?.templateVersion).toBe(2);
  expect(await generationOf(name)).toBe(generation);
});
