import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { organizationNamespace, type Project } from "@slipway/crds";
import { afterAll, beforeAll, expect, it } from "vitest";
import { exampleSpec } from "../../../test/kit/api-server/harness.ts";
import { type RealHarness, startRealHarness } from "../../../test/kit/api-server/real-harness.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import { projectResource, variableGroupResource } from "../resources.ts";

/** Variable groups over a real kube-apiserver with the API server's own roles, and a real PostgreSQL. */

let harness: RealHarness;
let organizationId: string;
let headers: Record<string, string>;
beforeAll(async () => {
  harness = await startRealHarness();
  ({ id: organizationId, headers } = await harness.organization());
});
afterAll(() => harness?.close());

const GROUPS = "/v1/organization/variable-groups";
const send = (method: "GET" | "POST" | "PATCH" | "DELETE", url: string, payload?: object) =>
  harness.app.inject({ method, url, headers, ...(payload ? { payload } : {}) });
const bytes = async (name: string) => {
  const rows = await harness.ledger
    .selectFrom("organization_usage")
    .select(["amount"])
    .where("organization_id", "=", organizationId)
    .where("name", "=", name)
    .execute();
  return rows.map(({ amount }) => Number(amount));
};

it("a group is created, attached, changed, read where it is used, and deleted once nothing uses it", async () => {
  const namespace = organizationNamespace(organizationId);
  const variables = [
    { name: "SMTP_PORT", value: "587" },
    { name: "SMTP_HOST", value: "mail.example" },
    { name: "EMOJI", value: "🙂 = ü\n" },
  ];
  const created = await send("POST", GROUPS, { name: "Mail", variables });
  expect(created.statusCode, created.body).toBe(201);
  const { id } = created.json().data;
  expect((await send("GET", `${GROUPS}/${id}`)).json().data.variables).toEqual(variables);
  expect(await bytes(`${id}-values`)).toHaveLength(1);

  await harness.project(organizationId, "pmail", exampleSpec);
  const attach = (ids: string[]) =>
    send("PATCH", "/v1/project/pmail/variable-groups", { variable_group_ids: ids });
  expect((await attach([id])).statusCode).toBe(200);
  const live = await harness.admin.get<Project>(projectResource, { namespace, name: "pmail" });
  expect(live.spec.variableGroups).toEqual([id]);
  const source = { type: "group", id, name: "Mail" };
  const read = await send("GET", "/v1/project/pmail/envs");
  expect(read.json().data).toContainEqual({ name: "SMTP_HOST", value: "mail.example", source });

  const changed = [{ name: "SMTP_HOST", value: "mail2.example" }];
  const patched = await send("PATCH", `${GROUPS}/${id}`, {
    variables: changed,
    name: "Post",
    description: "x",
  });
  expect(patched.statusCode, patched.body).toBe(200);
  expect((await send("GET", `${GROUPS}/${id}`)).json().data).toMatchObject({
    name: "Post",
    variables: changed,
  });
  const secret = await harness.admin.get<KubernetesObject & { data?: object }>(resources.secrets, {
    namespace,
    name: `${id}-values`,
  });
  expect(Object.keys(secret.data ?? {})).toEqual(["SMTP_HOST"]);
  expect(await bytes(`${id}-values`)).toEqual(["SMTP_HOSTmail2.example".length]);

  const refused = await send("DELETE", `${GROUPS}/${id}`);
  expect([refused.statusCode, refused.json().projects]).toEqual([409, ["pmail"]]);
  expect((await attach([])).statusCode).toBe(200);
  expect((await send("DELETE", `${GROUPS}/${id}`)).statusCode).toBe(200);
  await eventually(
    "it to be deleted",
    async () =>
      (await harness.admin.getOrUndefined(variableGroupResource, { namespace, name: id })) === undefined,
  );
});

it("a project is created with the groups that it attaches", async () => {
  const created = await send("POST", GROUPS, { name: "Mail", variables: [{ name: "A", value: "1" }] });
  const { id } = created.json().data;
  const answer = await harness.app.inject({
    method: "POST",
    url: "/v1/project",
    headers: { ...headers, "idempotency-key": "created-with-groups" },
    payload: {
      name: "mail-worker",
      plan: "basic",
      payment_mode: "hourly",
      config: {
        type_project: "worker",
        image: { url: "registry.example/team/app:1", is_public: true },
        instances: 1,
        storage: { persistent: false, capacity: 1 },
        variable_group_ids: [id],
      },
    },
  });
  expect(answer.statusCode, answer.body).toBe(201);
  const ref = { namespace: organizationNamespace(organizationId), name: answer.json().data.project_id };
  expect((await harness.admin.get<Project>(projectResource, ref)).spec.variableGroups).toEqual([id]);
});

it("a group without variables is one, too", async () => {
  const created = await send("POST", GROUPS, { name: "Empty", variables: [] });
  const { id } = created.json().data;
  expect((await send("GET", `${GROUPS}/${id}`)).json().data.variables).toEqual([]);
  const variables = [{ name: "A", value: "1" }];
  expect((await send("PATCH", `${GROUPS}/${id}`, { variables })).statusCode).toBe(200);
  expect((await send("GET", `${GROUPS}/${id}`)).json().data.variables).toEqual(variables);
});
