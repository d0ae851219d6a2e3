import { join } from "node:path";
import { KubeClient, type KubernetesObject, type Resource, resources } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { PLATFORM_BACKUP, PLATFORM_VERIFICATION } from "@slipway/crds";
import { afterAll, beforeAll, expect, test } from "vitest";
import { stringify } from "yaml";
import { restoredResources } from "../../recovery/src/objects.ts";
import { acquireApiserver } from "../../test/kit/clusters/shared-apiserver.ts";
import { validFixtures } from "../../test/kit/crds/fixtures.ts";
import type { TestApiserver } from "../cluster/apiserver.ts";
import { run } from "../lib/exec.ts";
import { chartDir, renderChart } from "./render.ts";

/** What the accounts of the platform's backups may do, on a real kube-apiserver with the chart's roles and policies. */

const system = "slipway-system";
const scratch = "slipway-restore-test";
const organization = "slipway-org-acme";
const undo: (() => unknown)[] = [];
let api: TestApiserver;

function clientOf(account?: string): KubeClient {
  const config = loadKubeConfig({ file: api.kubeconfig });
  if (account) {
    const user = config.getCurrentUser();
    const impersonateUser = `system:serviceaccount:${system}:${account}`;
    config.users = [{ ...user, name: user?.name ?? "", impersonateUser }];
  }
  const client = KubeClient.fromConfig(config, { userAgent: "test" });
  undo.unshift(() => client.close());
  return client;
}
const resourceOf = (name: string) => restoredResources.find(({ kind }) => kind === name) as Resource;
const [, fixture] = validFixtures().find(([, { kind }]) => kind === "Project") ?? [];
const project = (namespace: string) =>
  ({ ...fixture, metadata: { name: "p1", namespace } }) as KubernetesObject;

beforeAll(async () => {
  api = await acquireApiserver();
  undo.push(() => api.stop());
  const values = join(chartDir, "testdata/everything/values.yaml");
  const kinds = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];
  const policies = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "Namespace"];
  const objects = (await renderChart(values)).filter(
    ({ kind, metadata }) =>
      [...kinds, ...policies].includes(kind) &&
      (metadata.name.startsWith("slipway-platform-") || metadata.name === scratch),
  );
  const admin = clientOf();
  for (const name of [system, organization]) {
    await admin.create(resources.namespaces, { metadata: { name } });
  }
  const isNamespace = ({ kind }: { kind: string }) => kind === "Namespace";
  for (const some of [objects.filter(isNamespace), objects.filter((object) => !isNamespace(object))]) {
    const input = some.map((object) => `---\n${stringify(object)}`).join("");
    await run(api.binary, ["kubectl", "--kubeconfig", api.kubeconfig, "apply", "-f", "-"], { input });
  }
  const binding = {
    metadata: { name: PLATFORM_BACKUP, namespace: organization },
    roleRef: {
      apiGroup: "rbac.authorization.k8s.io",
      kind: "ClusterRole",
      name: `${PLATFORM_BACKUP}-organization`,
    },
    subjects: [{ kind: "ServiceAccount", name: PLATFORM_BACKUP, namespace: system }],
  };
  // As the operator does.
  await admin.create(resources.roleBindings, binding as KubernetesObject);
});
afterAll(async () => {
  for (const step of undo) {
    await step();
  }
});

test("a backup reads custom resources, and Secrets of organizations alone; it writes nothing", async () => {
  const client = clientOf(PLATFORM_BACKUP);
  for (const { kind, namespaced } of restoredResources) {
    const resource = resourceOf(kind);
    const namespace = ["Secret", "Service"].includes(kind) ? organization : undefined;
    expect(
      (await client.list(resource, { namespace })).items.length,
      `${kind} ${namespaced}`,
    ).toBeGreaterThanOrEqual(0);
  }
  for (const namespace of [system, "kube-system", undefined]) {
    await expect(client.list(resources.secrets, { namespace })).rejects.toThrow(/forbidden/i);
  }
  const other = { namespace: system, name: "slipway-ledger" };
  await expect(client.get(resources.secrets, other)).rejects.toThrow(/forbidden/i);
  expect(
    await client.getOrUndefined(resources.secrets, { ...other, name: "slipway-token-key" }),
  ).toBeUndefined();
  await expect(client.create(resourceOf("Project"), project(organization))).rejects.toThrow(/forbidden/i);
});

test("a restore test creates by dry runs alone, in its namespace alone", async () => {
  const client = clientOf(PLATFORM_VERIFICATION);
  const create = (object: KubernetesObject, dryRun: boolean) =>
    client.create(resourceOf(object.kind ?? ""), object, { dryRun });
  const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "s", namespace: scratch } };
  let tries = 0;
  const another = () => ({ ...secret, metadata: { name: `try-${++tries}`, namespace: scratch } });
  // An admission policy takes effect some time after it was created: what is created before that stays.
  await expect
    .poll(() => create(another(), false).catch(String), { timeout: 30_000 })
    .toMatch(/stores nothing/);
  const [, claimed] = validFixtures().find(([, { kind }]) => kind === "DomainClaim") ?? [];
  const { status: _, ...claim } = claimed as KubernetesObject & { status?: object };
  for (const object of [claim, secret, project(scratch)]) {
    await expect(create(object, false)).rejects.toThrow(/stores nothing/);
    expect((await create(object, true)).metadata?.name).toBe(object.metadata?.name);
  }
  for (const namespace of [system, organization]) {
    const elsewhere = { ...secret, metadata: { name: "s", namespace } };
    await expect(create(elsewhere, true)).rejects.toThrow(/cannot create resource/);
    await expect(client.list(resources.secrets, { namespace })).rejects.toThrow(/forbidden/i);
  }
}, 60_000);
