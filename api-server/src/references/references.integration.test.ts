import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { type Deployment, organizationNamespace, type Project } from "@slipway/crds";
import { afterAll, beforeAll, expect, it } from "vitest";
import { databaseBody, startDatabaseOperator } from "../../../test/kit/api-server/databases.ts";
import { exampleSpec } from "../../../test/kit/api-server/harness.ts";
import { type RealHarness, startRealHarness } from "../../../test/kit/api-server/real-harness.ts";
import { projectResource } from "../resources.ts";

/** References over a real apiserver, whose CRDs they have to fit, and a real PostgreSQL. */

let harness: RealHarness;
let operator: ReturnType<typeof startDatabaseOperator>;
beforeAll(async () => {
  harness = await startRealHarness();
  operator = startDatabaseOperator(harness.admin);
});
afterAll(async () => {
  await operator?.stop();
  await harness?.close();
});

const post = (headers: Record<string, string>, payload: object, key: string) =>
  harness.app.inject({
    method: "POST",
    url: "/v1/project",
    headers: { ...headers, "idempotency-key": key },
    payload,
  });
const appBody = (envs: readonly { name: string; value: string }[]) => ({
  name: "shop-web",
  plan: "basic",
  payment_mode: "hourly",
  config: {
    type_project: "http",
    exposure: "private",
    image: { url: "registry.example/team/app:1", is_public: true },
    port: 80,
    instances: 1,
    storage: { persistent: false, capacity: 1 },
    network_access: { ingress_white_list: [{ cidr: "0.0.0.0/0" }] },
    envs,
  },
});

// Shows: docs/references.md#values: reads of variables | the reference, as it was sent
it("are bound at the creation of a project, read as they were sent, and resolved by no answer", async () => {
  const { id: organizationId, headers } = await harness.organization();
  const namespace = organizationNamespace(organizationId);
  const database = await post(headers, databaseBody("postgresql", { name: "shop-db" }), "reference-database");
  const { project_id: databaseId, database: shown } = database.json().data;
  const envs = [
    { name: "DATABASE_URL", value: `\${project:shop-db.connection_string}` },
    { name: "LITERAL", value: `$\${project:shop-db.password}` },
  ];
  const created = await post(headers, appBody(envs), "reference-application");
  expect(created.json()).toMatchObject({ status: "success" });
  const { project_id: id } = created.json().data;
  const live = await harness.admin.get<Project>(projectResource, { namespace, name: id });
  expect(live.spec.envsFrom).toEqual([
    {
      name: expect.any(String),
      references: [{ reference: "shop-db.connection_string", project: databaseId }],
    },
  ]);
  const read = () => harness.app.inject({ url: `/v1/project/${id}/envs`, headers });
  expect((await read()).json().data).toEqual(envs);

  const changed = [...envs, { name: "DATABASE_HOST", value: `\${project:${databaseId}.host}` }];
  const patched = await harness.app.inject({
    method: "PATCH",
    url: `/v1/project/${id}/envs`,
    headers,
    payload: { envs: changed },
  });
  expect(patched.statusCode).toBe(200);
  const answer = await read();
  expect(answer.json().data).toEqual(changed);
  expect(answer.payload).not.toContain(shown.connection.password);
  const secrets = await harness.admin.listAll<KubernetesObject>(resources.secrets, { namespace });
  expect(secrets.map(({ metadata }) => metadata?.name).filter((name) => name?.includes("-refs-"))).toEqual(
    [],
  );
  const again = await harness.admin.get<Project>(projectResource, { namespace, name: id });
  expect(again.spec.envsFrom?.[0]?.references).toEqual([
    { reference: `${databaseId}.host`, project: databaseId },
    { reference: "shop-db.connection_string", project: databaseId },
  ]);
});

// Shows: docs/references.md#errors: 400 | `REFERENCE_LIMIT_EXCEEDED`: more than 100 references
it("are stored up to the limit, which is that of the custom resource, too", async () => {
  const { id: organizationId, headers } = await harness.organization();
  const namespace = organizationNamespace(organizationId);
  const targets = Array.from({ length: 34 }, (_, index) => `papi${index}`);
  for (const name of targets) {
    const spec = { ...exampleSpec, name: `shop-api-${name}` };
    await harness.admin.create(projectResource, { metadata: { namespace, name }, spec } as Project);
  }
  const references = targets.flatMap((id) => ["host", "internal_url", "port"].map((one) => `${id}.${one}`));
  const send = (count: number) => {
    const used = references.slice(0, count).map((one) => `\${project:${one}}`);
    const envs = Array.from({ length: 34 }, (_, index) => ({
      name: `PEER_${index}`,
      value: used.slice(index * 3, index * 3 + 3).join(" ") || "none",
    }));
    return post(headers, appBody(envs), `this-many-references-${count}`);
  };
  const refused = await send(101);
  expect(refused.json()).toMatchObject({ code: "REFERENCE_LIMIT_EXCEEDED" });
  const created = await send(100);
  expect(created.json()).toMatchObject({ status: "success" });
  const { project_id: name } = created.json().data;
  const live = await harness.admin.get<Project>(projectResource, { namespace, name });
  const stored = live.spec.envsFrom?.flatMap((source) => source.references ?? []);
  expect(stored?.map(({ reference }) => reference)).toEqual(references.slice(0, 100).sort());
});

it("to another organization's project are refused in the words for one that does not exist", async () => {
  const [mine, theirs] = [await harness.organization(), await harness.organization()];
  const database = await post(
    theirs.headers,
    databaseBody("postgresql", { name: "their-db" }),
    "the-database-of-others",
  );
  const { project_id: foreign } = database.json().data;
  const refused = async (name: string, key: string) => {
    const response = await post(
      mine.headers,
      appBody([{ name: "A", value: `\${project:${name}.host}` }]),
      key,
    );
    expect([response.statusCode, response.json().code]).toEqual([400, "REFERENCE_UNKNOWN"]);
    return response.payload.replaceAll(name, "NAME");
  };
  expect(await refused(foreign, "refused-foreign-id")).toBe(
    await refused("pdoesnotexist", "refused-no-such-id"),
  );
  expect(await refused("their-db", "refused-foreign-name")).toBe(
    await refused("no-such-db", "refused-no-such-name"),
  );
});

// Shows: docs/references.md#permissions: A rollback needs the same of references that the project does not have now
it("come back by a rollback only to who may write them", async () => {
  const { id: organizationId, headers } = await harness.organization();
  const namespace = organizationNamespace(organizationId);
  const database = await post(headers, databaseBody("postgresql", { name: "shop-db" }), "rollback-database");
  const { project_id: databaseId } = database.json().data;
  const envs = [{ name: "DATABASE_URL", value: `\${project:shop-db.connection_string}` }];
  const created = await post(headers, appBody(envs), "rollback-application");
  const ref = { namespace, name: created.json().data.project_id };
  const { spec } = await harness.admin.get<Project>(projectResource, ref);
  const { image, port, plan, paymentMode, envsFrom } = spec;
  const deployment: Deployment = {
    id: "d1",
    status: "succeeded",
    startedAt: "2026-01-31T12:00:00Z",
    settingsHash: "d1",
    updatedImage: true,
    image: { reference: image?.url ?? "", digest: `sha256:${"d".repeat(64)}` },
    settings: { image, port, plan, paymentMode, envsFrom },
  };
  const status = { observedGeneration: 1, deployments: [deployment] };
  await harness.admin.patch(projectResource, ref, { status }, { subresource: "status" });
  const send = (caller: Record<string, string>, method: "PATCH" | "POST", path: string, payload: object) =>
    harness.app.inject({ method, url: `/v1/project/${ref.name}/${path}`, headers: caller, payload });
  const literal = { envs: [{ name: "DATABASE_URL", value: "postgres://elsewhere" }] };
  expect((await send(headers, "PATCH", "envs", literal)).statusCode).toBe(200);

  const own = ["deploy.trigger", "envs.update", "read"].map((one) => `project.${one} on project:${ref.name}`);
  const back = (...grants: string[]) =>
    send(harness.key(organizationId, ...own, ...grants), "POST", "rollback", { deployment_id: "d1" });
  const unreadable = await back();
  expect([unreadable.statusCode, unreadable.json()]).toEqual([
    400,
    expect.objectContaining({
      code: "REFERENCE_UNKNOWN",
      errors: [expect.objectContaining({ field: "deployment_id -> shop-db.connection_string" })],
    }),
  ]);
  const reader = await back(`project.read on project:${databaseId}`);
  expect([reader.statusCode, reader.json()]).toEqual([
    403,
    expect.objectContaining({ required: [`database.credentials.renew on project:${databaseId}`] }),
  ]);
  const live = () => harness.admin.get<Project>(projectResource, ref);
  expect((await live()).spec.envsFrom?.[0]).not.toHaveProperty("references");
  const renewer = ["project.read", "database.credentials.renew"].map(
    (one) => `${one} on project:${databaseId}`,
  );
  expect((await back(...renewer)).statusCode).toBe(200);
  expect((await live()).spec.envsFrom).toEqual(envsFrom);
  expect((await back()).statusCode).toBe(200);
});
