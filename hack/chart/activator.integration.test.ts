import { join } from "node:path";
import { KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { ACTIVATOR, annotations, type Project } from "@slipway/crds";
import { afterAll, beforeAll, expect, test } from "vitest";
import { stringify } from "yaml";
import { projectResource } from "../../operator/src/resources.ts";
import { acquireApiserver } from "../../test/kit/clusters/shared-apiserver.ts";
import { validFixtures } from "../../test/kit/crds/fixtures.ts";
import type { TestApiserver } from "../cluster/apiserver.ts";
import { run } from "../lib/exec.ts";
import { waitFor } from "../lib/wait.ts";
import { chartDir, renderChart } from "./render.ts";

/** What the activator's account may do, on a real kube-apiserver with the chart's role and admission policy. */

const namespace = "slipway-org-acme";
const ref = { namespace, name: "p1" };
const undo: (() => unknown)[] = [];
let api: TestApiserver;
let activator: KubeClient;

function clientOf(account?: string): KubeClient {
  const config = loadKubeConfig({ file: api.kubeconfig });
  if (account) {
    const user = config.getCurrentUser();
    const impersonateUser = `system:serviceaccount:slipway-system:${account}`;
    config.users = [{ ...user, name: user?.name ?? "", impersonateUser }];
  }
  const client = KubeClient.fromConfig(config, { userAgent: "test" });
  undo.unshift(() => client.close());
  return client;
}

const patch = (body: object, subresource?: string) =>
  activator.patch<Project>(projectResource, ref, body, {
    fieldManager: "slipway-activator",
    ...(subresource === undefined ? {} : { subresource }),
  });
const annotate = (all: Record<string, string | null>) => patch({ metadata: { annotations: all } });

beforeAll(async () => {
  api = await acquireApiserver();
  undo.push(() => api.stop());
  const admin = clientOf();
  for (const name of ["slipway-system", namespace]) {
    await admin.create(resources.namespaces, { metadata: { name } });
  }
  const kinds = [
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
  ];
  const objects = (await renderChart(join(chartDir, "testdata/everything/values.yaml"))).filter(
    ({ kind, metadata }) => kinds.includes(kind) && metadata.name === ACTIVATOR,
  );
  expect(objects.map(({ kind }) => kind).sort()).toEqual(kinds.sort());
  const input = objects.map((object) => `---\n${stringify(object)}`).join("");
  await run(api.binary, ["kubectl", "--kubeconfig", api.kubeconfig, "apply", "-f", "-"], { input });
  const [, fixture] = validFixtures().find(([, { kind }]) => kind === "Project") ?? [];
  const metadata = { ...ref, annotations: { "example.com/own": "1" }, labels: { "example.com/own": "1" } };
  await admin.create<KubernetesObject>(projectResource, { ...fixture, metadata } as KubernetesObject);
  activator = clientOf(ACTIVATOR);
  // The apiserver learns of a policy by a watch of its own.
  await waitFor("the policy is in force", 30_000, () =>
    annotate({ "example.com/probe": `${Date.now()}` }).then(
      () => false,
      () => true,
    ),
  );
});
afterAll(async () => {
  for (const step of undo) {
    await step();
  }
});

test("it asks for the end of a sleep, again, and of the next one", async () => {
  for (const id of ["0a1b2c3d", "0a1b2c3d", "x".repeat(64)]) {
    const { metadata } = await annotate({ [annotations.wakeRequested]: id });
    expect(metadata.annotations?.[annotations.wakeRequested]).toBe(id);
  }
});

test.each<[string, () => Promise<unknown>]>([
  ["another annotation", () => annotate({ "example.com/other": "1" })],
  ["the value of another one", () => annotate({ "example.com/own": "2" })],
  ["the end of another one", () => annotate({ "example.com/own": null, [annotations.wakeRequested]: "a" })],
  ["a longer value", () => annotate({ [annotations.wakeRequested]: "x".repeat(65) })],
  ["labels", () => patch({ metadata: { labels: { "example.com/own": "2" } } })],
  ["finalizers", () => patch({ metadata: { finalizers: ["example.com/own"] } })],
  ["the spec", () => patch({ spec: { description: "another" } })],
  ["the status", () => patch({ status: { phase: "failed" } }, "status")],
  ["a deletion", () => activator.delete(projectResource, ref)],
  ["Secrets", () => activator.list(resources.secrets, { namespace })],
  ["Pods", () => activator.list(resources.pods, { namespace })],
])("it is refused %s", async (_, attempt) => {
  await expect(attempt()).rejects.toThrow(/forbidden|denied|changes/i);
});

test("it reads projects and where their instances are", async () => {
  expect((await activator.list<Project>(projectResource, {})).items).toHaveLength(1);
  expect((await activator.list(resources.endpointSlices, {})).items).toBeInstanceOf(Array);
});
