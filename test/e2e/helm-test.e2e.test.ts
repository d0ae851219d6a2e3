import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { run } from "../../hack/lib/exec.ts";
import { toolDir } from "../../hack/lib/paths.ts";
import { apiClient } from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import { systemNamespace } from "./support/operator.ts";
import { admin, createOrganization, type Organization } from "./support/organization.ts";
import { stack } from "./support/stack.ts";
import { withValues } from "./support/values.ts";

/** `helm test` on the stack's own release, with the key that charts/slipway/README.md describes. */

const SECRET = "slipway-e2e-test";
const GRANTS = [
  "project.create on organization:*",
  "project.read on project:*",
  "project.delete on project:*",
  "project.deploy.trigger on project:*",
  "project.job-run.cancel on project:*",
];

let organization: Organization;
let key: { api_key: string; api_key_id: string };
let restore: (() => Promise<void>) | undefined;

beforeAll(async () => {
  organization = await createOrganization("Helm test");
  const grants = GRANTS.flatMap((grant) => ["--grant", grant]);
  key = await admin("api-key", "create", "--organization", organization.organization_id, ...grants);
  const body = { metadata: { name: SECRET }, stringData: { "api-key": key.api_key } };
  await cluster.core.createNamespacedSecret({ namespace: systemNamespace, body });
  restore = await withValues({
    tests: {
      apiKeySecret: { name: SECRET },
      application: { image: stack.imageHttp, port: 8080 },
      job: { image: stack.imageJob },
    },
  });
}, 120_000);

afterAll(async () => {
  await cluster.core.deleteNamespacedSecret({ namespace: systemNamespace, name: SECRET });
  await restore?.();
}, 120_000);

const helmTest = (): Promise<string> =>
  run(join(toolDir, "helm"), ["test", "slipway", "-n", systemNamespace, "--kubeconfig", stack.kubeconfig]);

/** Objects of the platform's namespace that only a test has. */
async function testObjects(): Promise<string[]> {
  const labelSelector = "app.kubernetes.io/name=slipway-test";
  const where = { namespace: systemNamespace, labelSelector };
  const lists = await Promise.all([
    cluster.core.listNamespacedPod(where),
    cluster.networking.listNamespacedNetworkPolicy(where),
  ]);
  return lists.flatMap(({ items }) => items.map(({ metadata }) => metadata?.name ?? ""));
}

test("`helm test` creates and deletes an application and a job, and leaves nothing", async () => {
  expect(await helmTest()).toMatch(/Phase:\s+Succeeded/);
  expect(await testObjects()).toEqual([]);
  const { body } = await apiClient(organization.api_key)<{ projects: unknown[] }>("GET", "/v1/project");
  expect(body.data?.projects).toEqual([]);
}, 120_000);

test("`helm test` fails once the key is revoked; its pod stays and names the reason", async () => {
  await admin("api-key", "revoke", "--id", key.api_key_id);
  await eventually(async () => {
    // Each replica of the API server learns of it for itself.
    for (let request = 0; request < 6; request += 1) {
      expect((await apiClient(key.api_key)("GET", "/v1/project")).status).toBe(401);
    }
  });
  await expect(helmTest()).rejects.toThrow();
  expect(await testObjects()).toEqual(["slipway-test"]);
  const log = await cluster.core.readNamespacedPodLog({ namespace: systemNamespace, name: "slipway-test" });
  expect(log).toMatch(/FAILED: .*: 401 CREDENTIAL_INVALID/);
  await cluster.core.deleteNamespacedPod({ namespace: systemNamespace, name: "slipway-test" });
}, 120_000);
