import { randomBytes } from "node:crypto";
import { databaseTypes } from "@slipway/crds";
import { expect, test } from "vitest";
import { supportedTypes } from "../../api-server/src/projects/supported-types.ts";
import { databaseBody } from "../kit/api-server/databases.ts";
import { apiClient, type CreatedProject, httpProject, type Project } from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import { throughIngress } from "./support/ingress.ts";
import { namespaceOf, stack } from "./support/stack.ts";

const call = apiClient();
const uniqueName = (): string => `first-${randomBytes(4).toString("hex")}`;

async function untilRunning(id: string): Promise<Project> {
  return eventually(async () => {
    const read = await call<Project>("GET", `/v1/project/${id}`);
    expect(read.body.data?.status).toBe("running");
    return read.body.data as Project;
  });
}

// Shows: docs/applications.md#endpoints: `POST /v1/project` | 201, `message`, `data`: `project_id`
// Shows: docs/applications.md#endpoints: `GET /v1/project` | `data.projects`, `data.pagination`
// Shows: docs/applications.md#endpoints: `DELETE /v1/project/:id` | 200, `message` alone
// Shows: docs/applications.md#states: `running` | it serves: a public project answers through the
// Shows: docs/applications.md#create: `config.envs`: literal, any characters; what cannot be an
// Shows: docs/applications.md#delete: it waits for the operator, and nothing of the project is left
test("an application created over the API serves at its own address, and deletion leaves nothing", async () => {
  const name = uniqueName();
  const created = await call<CreatedProject>(
    "POST",
    "/v1/project",
    httpProject(name, { envs: [{ name: "GREETING", value: "hello $(HOME) world" }] }),
  );
  expect(created).toMatchObject({ status: 201, body: { status: "success", data: { type: "application" } } });
  const { project_id: id, domain } = created.body.data as CreatedProject;
  expect(domain).toMatch(new RegExp(`\\.${stack.domainZone.replaceAll(".", "\\.")}$`));

  const project = await untilRunning(id);
  expect(project).toMatchObject({ name, domain });

  // Running means that it answers: no retry here.
  const answer = await throughIngress(domain, "/some/path");
  expect(answer.status).toBe(200);
  expect(JSON.parse(answer.text)).toMatchObject({ method: "GET", path: "/some/path" });
  expect(await throughIngress(domain, "/env/GREETING")).toEqual({
    status: 200,
    text: expect.stringContaining("hello $(HOME) world"),
  });

  const list = await call<{ projects: { id: string }[] }>("GET", `/v1/project?search=${name}`);
  expect(list.body.data?.projects.map((item) => item.id)).toEqual([id]);

  const deleted = await call("DELETE", `/v1/project/${id}`);
  expect(deleted.status).toBe(200);
  expect((await call("GET", `/v1/project/${id}`)).status).toBe(404);
  await eventually(async () => {
    const namespace = namespaceOf(stack.organization);
    const labelSelector = `slipway.dev/project=${id}`;
    const left = await Promise.all([
      cluster.apps.listNamespacedDeployment({ namespace, labelSelector }),
      cluster.core.listNamespacedService({ namespace, labelSelector }),
      cluster.core.listNamespacedSecret({ namespace, labelSelector }),
      cluster.core.listNamespacedPod({ namespace, labelSelector }),
      cluster.networking.listNamespacedIngress({ namespace, labelSelector }),
      cluster.networking.listNamespacedNetworkPolicy({ namespace, labelSelector }),
    ]);
    expect(left.flatMap((kind) => kind.items.map((item) => item.metadata?.name))).toEqual([]);
    expect((await throughIngress(domain)).status).toBe(404);
  });
});

test("children that are deleted or edited manually are restored", async () => {
  const created = await call<CreatedProject>("POST", "/v1/project", httpProject(uniqueName()));
  const { project_id: name, domain } = created.body.data as CreatedProject;
  await untilRunning(name);
  const namespace = namespaceOf(stack.organization);

  await cluster.core.deleteNamespacedService({ namespace, name });
  await cluster.networking.deleteNamespacedIngress({ namespace, name });
  const deployment = await cluster.apps.readNamespacedDeployment({ namespace, name });
  const container = deployment.spec?.template.spec?.containers[0];
  if (container === undefined) {
    throw new Error("the Deployment has no container");
  }
  container.image = stack.imageHttpV2;
  await cluster.apps.replaceNamespacedDeployment({ namespace, name, body: deployment });

  await eventually(async () => {
    await cluster.core.readNamespacedService({ namespace, name });
    await cluster.networking.readNamespacedIngress({ namespace, name });
    const healed = await cluster.apps.readNamespacedDeployment({ namespace, name });
    expect(healed.spec?.template.spec?.containers[0]?.image).toBe(stack.imageHttp);
    expect((await throughIngress(domain)).status).toBe(200);
  });
  expect((await call("DELETE", `/v1/project/${name}`)).status).toBe(200);
});

// Shows: docs/applications.md#create: the other types: validated in full, then 503 where the platform
// Shows: docs/applications.md#errors-project-creation: 503 | `PROJECT_TYPE_UNAVAILABLE`
test("what is not carried out is validated in full and then refused, never faked", async () => {
  const invalid = await call("POST", "/v1/project", {
    ...httpProject(uniqueName()),
    plan: "db-basic",
    config: { type_project: "postgresql", version: "14", instances: 4, port: 80 },
  });
  expect(invalid.status).toBe(400);
  expect(invalid.body.errors?.map(({ field }) => field)).toEqual(
    expect.arrayContaining(["config.version", "config.instances", "config.port"]),
  );

  const refused = databaseTypes.filter((type) => !supportedTypes.includes(type));
  for (const type of refused) {
    const key = { "idempotency-key": `legal-${randomBytes(8).toString("hex")}` };
    const legal = await call("POST", "/v1/project", databaseBody(type, { name: uniqueName() }), key);
    expect([type, legal.status, legal.body.code]).toEqual([type, 503, "PROJECT_TYPE_UNAVAILABLE"]);
  }
});

// Shows: docs/applications.md#authentication: 5. 401 for a missing or wrong credential, a revoked key
// Shows: docs/applications.md#errors-every-operation: 401 | `CREDENTIAL_MISSING`, `CREDENTIAL_INVALID`
test("a request without a credential, and one with a wrong one, is refused", async () => {
  expect((await apiClient("")("GET", "/v1/project")).status).toBe(401);
  const wrong = await apiClient(`${stack.apiKey}x`)("GET", "/v1/project");
  expect(wrong).toMatchObject({ status: 401, body: { status: "failed", code: expect.any(String) } });
});
