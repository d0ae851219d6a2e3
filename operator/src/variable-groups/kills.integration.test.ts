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
} from "../../../test/kit/operator/harness.ts";
import { OperatorLives } from "../../../test/kit/operator/operator-lives.ts";
import { deploy } from "../../../test/kit/operator/pods.ts";
import { exampleWorker } from "../../../test/kit/operator/projects.ts";
import { putGroup } from "../../../test/kit/operator/variable-groups.ts";
import { projectResource } from "../resources.ts";

/** One operator after the other crashes right after each write that none before it has made, on a real apiserver. */

const namespace = "slipway-org-alpha";
const LIMIT = 4;
const IMAGE = "registry.example/team/worker:1.0.0";
const options = { listOrganizations: async () => ["alpha"], variableRollouts: LIMIT };
const names = Array.from({ length: 20 }, (_, index) => `pgroup${String(index).padStart(2, "0")}`);
const ref = (name: string) => ({ namespace, name });

let cluster: TestCluster;
let lives: OperatorLives | undefined;

beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(async () => {
  await lives?.stop();
  await cluster?.stop();
});

type Live = KubernetesObject & {
  metadata: { name: string; generation: number };
  spec: { template: { metadata: { annotations: Record<string, string> } } };
  status?: { observedGeneration?: number };
};
const deployments = () => cluster.client.listAll<Live>(resources.deployments, { namespace });
const projects = () => cluster.client.listAll<Project>(projectResource, { namespace });
const templates = async () =>
  new Map(
    (await deployments()).map(({ metadata, spec }) => [
      metadata.name,
      spec.template.metadata.annotations["slipway.dev/settings-hash"] ?? "",
    ]),
  );
const generations = async () =>
  new Map((await deployments()).map(({ metadata }) => [metadata.name, metadata.generation]));

/** Serves what is not served yet, for as long as it takes until every newest deployment has succeeded. */
async function serveAll(count: number, observe: () => Promise<void> = async () => {}): Promise<void> {
  await eventually(async () => {
    await observe();
    const late = (await deployments()).filter(
      ({ metadata, status }) => status?.observedGeneration !== metadata.generation,
    );
    // Some serve sooner than others.
    for (const { metadata } of late.slice(0, 3)) {
      await deploy(cluster.client, ref(metadata.name), IMAGE, `sha256:${"a".repeat(64)}`);
    }
    const all = await projects();
    return all.every(({ status }) => {
      const found = status?.deployments ?? [];
      return found.length === count && found.every((one) => one.status === "succeeded");
    });
  }, 420_000);
}

// Shows: docs/variable-groups.md#changes: the operator is killed
test("a change of a group rolls each of 20 projects once, a few at a time, though every write is some operator's last", async () => {
  const operator = await startOperator(cluster, options);
  await eventually(() => exists(cluster.client, resources.namespaces, { name: namespace }));
  await putGroup(cluster.client, ref("shared"), { KEY: "1" });
  for (const name of names) {
    await cluster.client.create<Project>(
      projectResource,
      exampleWorker(ref(name), { name: "grouped", variableGroups: ["shared"] }),
    );
  }
  await eventually(async () => (await projects()).every(({ status }) => status?.deployments?.length === 1));
  await serveAll(1);
  await untilUnchanged(cluster);
  await operator.stop();
  const [before, old] = [await generations(), await templates()];
  lives = await OperatorLives.start(cluster, options);

  await putGroup(cluster.client, ref("shared"), { KEY: "2" });
  let most = 0;
  await serveAll(2, async () => {
    const now = await templates();
    const served = new Map((await deployments()).map((one) => [one.metadata.name, one]));
    const rolling = names.filter((name) => {
      const { metadata, status } = served.get(name) ?? {};
      return now.get(name) !== old.get(name) && status?.observedGeneration !== metadata?.generation;
    });
    most = Math.max(most, rolling.length);
  });
  expect(await generations()).toEqual(new Map(names.map((name) => [name, (before.get(name) ?? 0) + 1])));
  expect(new Set((await templates()).values()).size).toBe(20);
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(LIMIT);
  expect(lives.count).toBeGreaterThan(20);
}, 590_000);
