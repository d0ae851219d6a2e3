import { afterAll, expect, test } from "vitest";
import {
  apiClient,
  createProject,
  deleteProjects,
  httpProject,
  readProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { eventually } from "./support/eventually.ts";
import { throughIngress, untilServing } from "./support/ingress.ts";
import { replaceLeader } from "./support/operator.ts";
import { createOrganization } from "./support/organization.ts";
import { namespaceOf, stack } from "./support/stack.ts";
import { traffic } from "./support/traffic.ts";

/** Applications that share variables: a group's, and those of a Secret that others write. */

const call = apiClient();
const namespace = namespaceOf(stack.organization);
const GROUPS = "/v1/organization/variable-groups";
const made: string[] = [];
const groups: string[] = [];
afterAll(async () => {
  await deleteProjects(call, made);
  for (const id of groups) {
    await call("DELETE", `${GROUPS}/${id}`);
  }
});

const timeout = 600_000;

interface Application {
  project_id: string;
  domain: string;
}

async function createApplication(prefix: string): Promise<Application> {
  const app = await createProject(call, httpProject(uniqueName(prefix)));
  made.push(app.project_id);
  await untilStatus(call, app.project_id, "running");
  await untilServing(app.domain);
  return app;
}

async function createGroup(variables: Record<string, string>): Promise<string> {
  const answer = await call<{ id: string }>("POST", GROUPS, { name: "Shared", variables: listOf(variables) });
  expect(answer.status).toBe(201);
  const id = answer.body.data?.id ?? "";
  groups.push(id);
  return id;
}

const listOf = (variables: Record<string, string>) =>
  Object.entries(variables).map(([name, value]) => ({ name, value }));

const attach = async (id: string, ids: readonly string[]) => {
  const answer = await call("PATCH", `/v1/project/${id}/variable-groups`, { variable_group_ids: ids });
  expect(answer.status).toBe(200);
};

/** Waits until the application's process has a variable; an instance that ends may answer once more. */
const untilHas = ({ domain }: Application, name: string, value: string) =>
  eventually(
    async () => {
      const { status, text } = await throughIngress(domain, `/env/${name}`);
      expect([status, text]).toEqual([200, value]);
    },
    { within: 240_000, every: 500 },
  );

/** How often the Deployment's spec was changed. */
const generationOf = async ({ project_id: name }: Application) =>
  (await cluster.apps.readNamespacedDeployment({ namespace, name })).metadata?.generation ?? 0;

interface Variable {
  name: string;
  value: string;
  source?: { type: string; id?: string; name?: string; hidden?: boolean };
}
const envsOf = async (id: string) =>
  (await call<Variable[]>("GET", `/v1/project/${id}/envs`)).body.data ?? [];

test("a change of a group rolls each application that attaches it once, without a lost request, though the operator is killed", {
  timeout,
}, async () => {
  const apps = await Promise.all(["shares-a", "shares-b"].map(createApplication));
  const [first, second] = [
    await createGroup({ MAIL: "one", LEVEL: "first" }),
    await createGroup({ LEVEL: "second" }),
  ];
  for (const { project_id: id } of apps) {
    await attach(id, [first, second]);
  }
  for (const app of apps) {
    await untilHas(app, "MAIL", "one");
    await untilHas(app, "LEVEL", "second");
    await untilStatus(call, app.project_id, "running");
  }
  const shown = await envsOf(apps[0]?.project_id ?? "");
  expect(shown).toContainEqual({
    name: "LEVEL",
    value: "second",
    source: { type: "group", id: second, name: "Shared" },
  });

  const before = await Promise.all(apps.map(generationOf));
  const requests = apps.map(({ domain }) => traffic(domain));
  const changed = await call("PATCH", `${GROUPS}/${first}`, { variables: listOf({ MAIL: "two" }) });
  expect(changed.status).toBe(200);
  await replaceLeader();
  for (const app of apps) {
    await untilHas(app, "MAIL", "two");
    await untilStatus(call, app.project_id, "running");
  }
  const reports = await Promise.all(requests.map(({ stop }) => stop()));
  expect(reports.flatMap(({ failures }) => failures)).toEqual([]);
  expect(await Promise.all(apps.map(generationOf))).toEqual(before.map((generation) => generation + 1));
  await eventually(async () => {
    for (const { project_id: id } of apps) {
      expect(await readProject(call, id)).toMatchObject({
        variable_groups: { ids: [first, second], ready: true },
      });
    }
  });

  expect((await call("PATCH", `${GROUPS}/${first}`, { name: "Mail" })).status).toBe(200);
  const list = await call<{ variable_groups: { id: string; name: string }[] }>("GET", GROUPS);
  expect(list.body.data?.variable_groups).toContainEqual(
    expect.objectContaining({ id: first, name: "Mail" }),
  );

  const refused = await call<never>("DELETE", `${GROUPS}/${first}`);
  expect([refused.status, refused.body.code]).toEqual([409, "VARIABLE_GROUP_IN_USE"]);
  for (const app of apps) {
    await attach(app.project_id, []);
    await untilStatus(call, app.project_id, "running");
  }
  expect((await call("DELETE", `${GROUPS}/${first}`)).status).toBe(200);
});

test("a Secret that another operator writes rolls the application that names it", { timeout }, async () => {
  const app = await createApplication("vault");
  const name = uniqueName("vault-secret");
  const labels = { "reconcile.external-secrets.io/managed": "true" };
  const secretOf = (value: string) => ({
    metadata: { name, namespace, labels, annotations: { "reconcile.external-secrets.io/data-hash": value } },
    type: "Opaque",
    stringData: { TOKEN: value },
  });
  await cluster.core.createNamespacedSecret({ namespace, body: secretOf("one") });
  try {
    await cluster.objects.patch(
      {
        apiVersion: "slipway.dev/v1alpha1",
        kind: "Project",
        metadata: { name: app.project_id, namespace },
        spec: { envsFrom: [{ name }] },
      } as never,
      undefined,
      undefined,
      "kubectl",
      undefined,
      "application/merge-patch+json",
    );
    await untilHas(app, "TOKEN", "one");
    await untilStatus(call, app.project_id, "running");
    expect(await envsOf(app.project_id)).toEqual([
      { name: "TOKEN", value: "one", source: { type: "secret", name } },
    ]);
    const before = await generationOf(app);
    await cluster.core.replaceNamespacedSecret({ name, namespace, body: secretOf("two") });
    await untilHas(app, "TOKEN", "two");
    await untilStatus(call, app.project_id, "running");
    expect(await generationOf(app)).toBe(before + 1);
  } finally {
    await call("PATCH", `/v1/project/${app.project_id}/envs`, { envs: [] });
    await cluster.core.deleteNamespacedSecret({ name, namespace });
  }
});

test("another organization's group is refused as one that does not exist", { timeout }, async () => {
  const group = await createGroup({ KEY: "value" });
  const other = await createOrganization("Groups");
  const theirs = apiClient(other.api_key);
  const app = await createProject(theirs, httpProject(uniqueName("foreign")));
  try {
    const refusal = async (id: string) => {
      const answer = await theirs("PATCH", `/v1/project/${app.project_id}/variable-groups`, {
        variable_group_ids: [id],
      });
      expect([answer.status, answer.body.code]).toEqual([400, "VARIABLE_GROUP_UNKNOWN"]);
      return JSON.stringify(answer.body).replaceAll(id, "ID");
    };
    expect(await refusal(group)).toBe(await refusal("vdoesnotexist"));
    expect((await theirs("GET", `${GROUPS}/${group}`)).status).toBe(404);
  } finally {
    await deleteProjects(theirs, [app.project_id]);
  }
});
