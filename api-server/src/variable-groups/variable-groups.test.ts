import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { organizationNamespace, type Project, type VariableGroup } from "@slipway/crds";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { databaseSpec } from "../../../test/kit/api-server/databases.ts";
import { type FakeHarness, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { statusAndCode } from "../../../test/kit/api-server/status-and-code.ts";
import { putGroup } from "../../../test/kit/operator/variable-groups.ts";
import { buildApp } from "../app.ts";
import { failures } from "../errors/catalog.ts";
import { projectResource, variableGroupResource } from "../resources.ts";

const ORGANIZATION = "groups";
const namespace = organizationNamespace(ORGANIZATION);
const GROUPS = "/v1/organization/variable-groups";
const READ = "organization.variable-groups.read on organization:*";

let harness: FakeHarness;
let app: FakeHarness["app"];
/** Bytes of variables that are reserved in the ledger, by Secret. */
let reserved: Map<string, number>;
let isFull = false;

beforeAll(async () => {
  harness = await startFakeHarness();
  const usage = {
    reserve: async (_: string, wanted: readonly { name: string; amount: number }[]) => {
      if (isFull) {
        throw failures.organizationLimitReached("variableBytes", 1);
      }
      for (const { name, amount } of wanted) {
        reserved.set(name, amount);
      }
    },
    release: async (_: string, released: readonly { name: string }[]) => {
      for (const { name } of released) {
        reserved.delete(name);
      }
    },
  };
  app = buildApp({ ...harness.services, usage });
  await harness.namespace(ORGANIZATION);
  await harness.namespace("others");
});
afterAll(async () => {
  await app.close();
  await harness.close();
});
beforeEach(() => {
  reserved = new Map();
  isFull = false;
});

const everything = () => harness.key(ORGANIZATION, "* on organization:*", "* on project:*");
const send = (
  method: "GET" | "POST" | "PATCH" | "DELETE",
  url: string,
  body?: object,
  headers = everything(),
) => app.inject({ method, url, headers, ...(body === undefined ? {} : { payload: body }) });

const MAIL = [
  { name: "SMTP_PORT", value: "587" },
  { name: "SMTP_HOST", value: "mail.example" },
];
async function createGroup(variables = MAIL, name = "Mail"): Promise<string> {
  const answer = await send("POST", GROUPS, { name, variables });
  expect(statusAndCode(answer)).toEqual([201, undefined]);
  return answer.json().data.id;
}
const secretOf = (id: string) =>
  harness.kube.get<KubernetesObject & { data?: Record<string, string>; stringData?: object }>(
    resources.secrets,
    {
      namespace,
      name: `${id}-values`,
    },
  );
const specOf = async (id: string) =>
  (await harness.kube.get<Project>(projectResource, { namespace, name: id })).spec;

describe("a group", () => {
  // Shows: docs/variable-groups.md#over-v1: `POST /v1/organization/variable-groups` | 201
  // Shows: docs/variable-groups.md#over-v1: `GET /v1/organization/variable-groups/:groupId` | one
  // Shows: docs/variable-groups.md#limits: variables of an organization | those of groups count
  it("is created with its variables in a Secret of its own, and is read in the order in which it was sent", async () => {
    const answer = await send("POST", GROUPS, { name: "Mail", description: "All of it", variables: MAIL });
    const { id, ...shown } = answer.json().data;
    expect(answer.statusCode).toBe(201);
    expect(id).toMatch(/^v[a-z0-9]{19}$/);
    expect(shown).toMatchObject({ name: "Mail", description: "All of it" });
    expect(answer.body).not.toContain("587");
    const read = await send("GET", `${GROUPS}/${id}`);
    expect(read.headers["cache-control"]).toBe("no-store");
    expect(read.json().data).toMatchObject({ id, name: "Mail", variables: MAIL });
    const { metadata } = await secretOf(id);
    const group = await harness.kube.get<VariableGroup>(variableGroupResource, { namespace, name: id });
    expect(metadata?.ownerReferences).toMatchObject([{ kind: "VariableGroup", uid: group.metadata.uid }]);
    expect(group.spec.secretRef.name).toBe(metadata?.name);
    expect(JSON.stringify(group)).not.toContain("mail.example");
    expect(reserved.get(`${id}-values`)).toBe("SMTP_PORT587SMTP_HOSTmail.example".length);
  });

  // Shows: docs/variable-groups.md#over-v1: `GET /v1/organization/variable-groups` | all
  // Shows: docs/variable-groups.md#errors: 404 | `VARIABLE_GROUP_NOT_FOUND`
  it("is listed without its variables, and not to another organization", async () => {
    const id = await createGroup();
    const list = await send("GET", GROUPS);
    expect(list.json().data.variable_groups.map((one: { id: string }) => one.id)).toContain(id);
    expect(list.body).not.toContain("SMTP");
    const others = harness.key("others", "* on organization:*");
    expect((await send("GET", GROUPS, undefined, others)).json().data.variable_groups).toEqual([]);
    for (const method of ["GET", "DELETE"] as const) {
      expect(statusAndCode(await send(method, `${GROUPS}/${id}`, undefined, others))).toEqual([
        404,
        "VARIABLE_GROUP_NOT_FOUND",
      ]);
    }
  });

  // Shows: docs/variable-groups.md#over-v1: `PATCH /v1/organization/variable-groups/:groupId` | the complete
  it("gets other variables in one write, and another name without one of them", async () => {
    const id = await createGroup();
    const before = (await secretOf(id)).metadata?.resourceVersion;
    const variables = [{ name: "SMTP_HOST", value: "mail2.example" }];
    expect((await send("PATCH", `${GROUPS}/${id}`, { variables })).statusCode).toBe(200);
    const changed = await secretOf(id);
    expect(changed.data).toEqual({ SMTP_HOST: Buffer.from("mail2.example").toString("base64") });
    expect(changed.metadata?.resourceVersion).not.toBe(before);
    expect((await send("PATCH", `${GROUPS}/${id}`, { name: "Post", description: "x" })).statusCode).toBe(200);
    expect((await send("PATCH", `${GROUPS}/${id}`, { description: null })).statusCode).toBe(200);
    const { data } = (await send("GET", `${GROUPS}/${id}`)).json();
    expect(data).toEqual({ id, name: "Post", created_at: expect.any(String), variables });
    expect((await secretOf(id)).metadata?.resourceVersion).toBe(changed.metadata?.resourceVersion);
  });

  // Shows: docs/variable-groups.md#errors: 400 | `VARIABLE_GROUP_REFERENCE`
  // Shows: docs/variable-groups.md#values: values | literal. References to
  it("has no references to projects", async () => {
    const variables = [{ name: "DB", value: `\${project:shop-db.password}` }];
    const answer = await send("POST", GROUPS, { name: "Mail", variables });
    expect(statusAndCode(answer)).toEqual([400, "VARIABLE_GROUP_REFERENCE"]);
    expect(answer.json().errors[0].field).toBe("variables.DB");
    const id = await createGroup();
    expect(statusAndCode(await send("PATCH", `${GROUPS}/${id}`, { variables }))).toEqual([
      400,
      "VARIABLE_GROUP_REFERENCE",
    ]);
  });

  // Shows: docs/variable-groups.md#limits: variables of one group | 50, and 64 KiB
  it("is bounded, and so are all of an organization", async () => {
    const many = Array.from({ length: 51 }, (_, at) => ({ name: `A${at}`, value: "x" }));
    const large = ["A", "B", "C"].map((name) => ({ name, value: "x".repeat(32_000) }));
    for (const variables of [many, large, [MAIL[0], MAIL[0]]]) {
      expect((await send("POST", GROUPS, { name: "Mail", variables })).statusCode).toBe(400);
    }
    isFull = true;
    expect(statusAndCode(await send("POST", GROUPS, { name: "Mail", variables: MAIL }))).toEqual([
      409,
      "ORGANIZATION_VARIABLES_LIMIT_REACHED",
    ]);
  });

  // Shows: docs/variable-groups.md#errors: 409 | `VARIABLE_GROUP_EXTERNAL`
  // Shows: docs/variable-groups.md#errors: 409 | `VARIABLE_GROUP_INCOMPLETE`
  it("whose Secret others write is read, and not written", async () => {
    await putGroup(harness.kube, { namespace, name: "vault" }, { TOKEN: "abc" });
    // As an apiserver stores it.
    const { spec } = await harness.kube.get<VariableGroup>(variableGroupResource, {
      namespace,
      name: "vault",
    });
    const secret = { namespace, name: spec.secretRef.name };
    await harness.kube.patch(resources.secrets, secret, { data: { TOKEN: "YWJj" } });
    expect((await send("GET", `${GROUPS}/vault`)).json().data.variables).toEqual([
      { name: "TOKEN", value: "abc" },
    ]);
    const body = { name: "Renamed", variables: MAIL };
    expect(statusAndCode(await send("PATCH", `${GROUPS}/vault`, body))).toEqual([
      409,
      "VARIABLE_GROUP_EXTERNAL",
    ]);
    expect((await send("GET", `${GROUPS}/vault`)).json().data.name).toBe("vault");
    await harness.kube.delete(resources.secrets, secret);
    expect(statusAndCode(await send("GET", `${GROUPS}/vault`))).toEqual([409, "VARIABLE_GROUP_INCOMPLETE"]);
    expect(statusAndCode(await send("PATCH", `${GROUPS}/vault`, body))).toEqual([
      409,
      "VARIABLE_GROUP_INCOMPLETE",
    ]);
    expect(reserved.size).toBe(0);
  });

  it("whose creation was cut short, or whose Secret was deleted, gets it with its next variables", async () => {
    const id = await createGroup();
    await harness.kube.delete(resources.secrets, { namespace, name: `${id}-values` });
    expect(statusAndCode(await send("GET", `${GROUPS}/${id}`))).toEqual([409, "VARIABLE_GROUP_INCOMPLETE"]);
    expect((await send("PATCH", `${GROUPS}/${id}`, { variables: MAIL })).statusCode).toBe(200);
    expect((await send("GET", `${GROUPS}/${id}`)).json().data.variables).toEqual(MAIL);
    const { metadata } = await secretOf(id);
    expect(metadata?.ownerReferences).toMatchObject([{ kind: "VariableGroup", name: id }]);
  });

  it("has its bytes recorded on its Secret, which the ledger's account is compared with", async () => {
    const id = await createGroup();
    const recorded = async () => (await secretOf(id)).metadata?.annotations?.["slipway.dev/env-bytes"];
    expect(await recorded()).toBe(String("SMTP_PORT587SMTP_HOSTmail.example".length));
    await send("PATCH", `${GROUPS}/${id}`, { variables: [{ name: "A", value: "1" }] });
    expect(await recorded()).toBe("2");
  });

  it("keeps its values where its name cannot be changed", async () => {
    const id = await createGroup();
    const ofGroup = ({ method, path }: { method: string; path: string }) =>
      method === "PATCH" && path.endsWith(`/variablegroups/${id}`);
    harness.apiserver.failNext(ofGroup, { status: 409, reason: "Conflict" });
    const body = { name: "Post", variables: [{ name: "A", value: "1" }] };
    expect(statusAndCode(await send("PATCH", `${GROUPS}/${id}`, body))).toEqual([
      409,
      "VARIABLE_GROUP_CONFLICT",
    ]);
    expect((await send("GET", `${GROUPS}/${id}`)).json().data).toMatchObject({
      name: "Mail",
      variables: MAIL,
    });
  });

  // Shows: docs/variable-groups.md#errors: 409 | `VARIABLE_GROUP_CONFLICT`
  it("is not written over another change that came between", async () => {
    const id = await createGroup();
    for (const body of [{ variables: [{ name: "A", value: "1" }] }, { name: "Post" }]) {
      harness.apiserver.failNext(({ method }) => method === "PATCH", { status: 409, reason: "Conflict" });
      expect(statusAndCode(await send("PATCH", `${GROUPS}/${id}`, body))).toEqual([
        409,
        "VARIABLE_GROUP_CONFLICT",
      ]);
    }
    expect((await send("GET", `${GROUPS}/${id}`)).json().data).toMatchObject({
      name: "Mail",
      variables: MAIL,
    });
  });

  it("is nothing once its Secret cannot be created", async () => {
    const refuse = ({ method, path }: { method: string; path: string }) =>
      method === "POST" && path.endsWith("/secrets");
    harness.apiserver.failNext(refuse, { status: 403, reason: "Forbidden" });
    const before = (await send("GET", GROUPS)).json().data.variable_groups.length;
    expect((await send("POST", GROUPS, { name: "Mail", variables: MAIL })).statusCode).toBe(503);
    expect((await send("GET", GROUPS)).json().data.variable_groups).toHaveLength(before);
    expect(reserved.size).toBe(0);
  });

  // Shows: docs/variable-groups.md#errors: 409 | `VARIABLE_GROUP_IN_USE`
  // Shows: docs/variable-groups.md#over-v1: `DELETE /v1/organization/variable-groups/:groupId` | not
  it("is not deleted while projects attach it, of which the answer names twenty", async () => {
    const id = await createGroup();
    for (let index = 10; index < 32; index += 1) {
      await harness.put(ORGANIZATION, `pattached${index}`, { variableGroups: [id] });
    }
    const refused = await send("DELETE", `${GROUPS}/${id}`);
    expect(statusAndCode(refused)).toEqual([409, "VARIABLE_GROUP_IN_USE"]);
    expect(refused.json().project_count).toBe(22);
    expect(refused.json().projects).toHaveLength(20);
    expect(refused.json().projects[0]).toBe("pattached10");
    for (let index = 10; index < 32; index += 1) {
      await harness.kube.delete(projectResource, { namespace, name: `pattached${index}` });
    }
    expect((await send("DELETE", `${GROUPS}/${id}`)).statusCode).toBe(200);
    expect((await send("GET", `${GROUPS}/${id}`)).statusCode).toBe(404);
  });
});

it("is named by no project that attaches none, also where Secrets that others write have changed", async () => {
  const lastTransitionTime = "2026-01-01T00:00:00Z";
  const ready = { type: "VariablesReady", status: "True" as const, reason: "VariablesResolved", message: "" };
  const conditions = [{ ...ready, lastTransitionTime }];
  const project = await harness.project(ORGANIZATION, "pvault", { envsFrom: [{ name: "vault" }] });
  const metadata = { ...project.metadata, resourceVersion: "999999" };
  await harness.projects.observe({ ...project, metadata, status: { conditions } });
  expect((await send("GET", "/v1/project/pvault")).json().data).not.toHaveProperty("variable_groups");
});

describe("attaching", () => {
  const attach = (project: string, ids: string[], headers?: Record<string, string>) =>
    send("PATCH", `/v1/project/${project}/variable-groups`, { variable_group_ids: ids }, headers);

  // Shows: docs/variable-groups.md#over-v1: `PATCH /v1/project/:id/variable-groups` | the complete
  it("keeps the order that was sent, and is read with the project", async () => {
    await harness.project(ORGANIZATION, "pshop");
    const [one, two] = [await createGroup(), await createGroup()];
    expect((await attach("pshop", [two, one])).statusCode).toBe(200);
    expect((await specOf("pshop")).variableGroups).toEqual([two, one]);
    const { data } = (await send("GET", "/v1/project/pshop")).json();
    expect(data.variable_groups).toEqual({ ids: [two, one], ready: false });
    expect((await attach("pshop", [])).statusCode).toBe(200);
    expect(await specOf("pshop")).not.toHaveProperty("variableGroups");
    expect((await send("GET", "/v1/project/pshop")).json().data).not.toHaveProperty("variable_groups");
  });

  // Shows: docs/variable-groups.md#permissions: attach groups to a project | `project.envs.update`
  // Shows: docs/variable-groups.md#errors: 403 | `PERMISSION_DENIED`, with `required`
  it("needs the right to read groups, too, but for those that are attached", async () => {
    await harness.project(ORGANIZATION, "pread");
    const [one, two] = [await createGroup(), await createGroup()];
    const writer = harness.key(ORGANIZATION, "project.envs.update on project:pread");
    const refused = await attach("pread", [one], writer);
    expect(statusAndCode(refused)).toEqual([403, "PERMISSION_DENIED"]);
    expect(refused.json().required).toEqual([READ]);
    const reader = harness.key(ORGANIZATION, "project.envs.update on project:pread", READ);
    expect((await attach("pread", [one, two], reader)).statusCode).toBe(200);
    await harness.projects.observe(
      await harness.kube.get<Project>(projectResource, { namespace, name: "pread" }),
    );
    expect((await attach("pread", [two, one], writer)).statusCode).toBe(200);
    expect((await attach("pread", [], harness.key(ORGANIZATION, READ))).statusCode).toBe(403);
  });

  it("needs it also for one that was detached since this replica has seen the project", async () => {
    const group = await createGroup();
    await harness.project(ORGANIZATION, "pstale", { variableGroups: [group] });
    const stale = await harness.kube.get<Project>(projectResource, { namespace, name: "pstale" });
    await harness.kube.patch(
      projectResource,
      { namespace, name: "pstale" },
      { spec: { variableGroups: null } },
    );
    await harness.projects.observe(stale);
    const writer = harness.key(ORGANIZATION, "project.envs.update on project:pstale");
    expect(statusAndCode(await attach("pstale", [group], writer))).toEqual([403, "PERMISSION_DENIED"]);
    expect(await specOf("pstale")).not.toHaveProperty("variableGroups");
  });

  // Shows: docs/variable-groups.md#errors: 400 | `VARIABLE_GROUP_UNKNOWN`
  // Shows: docs/variable-groups.md#limits: groups of a project | 10
  it("refuses another organization's group in the words for one that does not exist, and what is too much", async () => {
    await harness.project(ORGANIZATION, "pthief");
    await putGroup(
      harness.kube,
      { namespace: organizationNamespace("others"), name: "vforeign" },
      { A: "1" },
    );
    const bodies = await Promise.all(
      ["vforeign", "vmissing"].map(async (id) => {
        const answer = await attach("pthief", [id]);
        expect(statusAndCode(answer)).toEqual([400, "VARIABLE_GROUP_UNKNOWN"]);
        expect(answer.json().errors[0].field).toBe("variable_group_ids[0]");
        return answer.body.replaceAll(id, "ID");
      }),
    );
    expect(bodies[0]).toBe(bodies[1]);
    for (const ids of [["v1", "v1"], ["../v1"], [`v${"1".repeat(60)}`], [..."abcdefghijk"]]) {
      expect((await attach("pthief", ids)).statusCode).toBe(400);
    }
    expect(await specOf("pthief")).not.toHaveProperty("variableGroups");
  });

  it("may be part of a creation, with the same refusals", async () => {
    const create = (ids: string[], headers?: Record<string, string>) =>
      send(
        "POST",
        "/v1/project",
        {
          name: "shop-web",
          plan: "basic",
          payment_mode: "hourly",
          config: {
            type_project: "worker",
            image: { url: "registry.example/team/app:1", is_public: true },
            instances: 1,
            storage: { persistent: false, capacity: 1 },
            variable_group_ids: ids,
          },
        },
        headers,
      );
    const group = await createGroup();
    const unknown = await create(["vmissing"]);
    expect(statusAndCode(unknown)).toEqual([400, "VARIABLE_GROUP_UNKNOWN"]);
    expect(unknown.json().errors[0].field).toBe("config.variable_group_ids[0]");
    const writer = harness.key(ORGANIZATION, "project.create on organization:*");
    expect((await create([group], writer)).json().required).toEqual([READ]);
    expect((await create(["../v1"])).json().errors[0].field).toBe("config.variable_group_ids[0]");
  });

  it("is nothing for databases", async () => {
    await harness.project(ORGANIZATION, "pdatabase", databaseSpec("postgresql"));
    expect(statusAndCode(await attach("pdatabase", []))).toEqual([400, "PROJECT_TYPE_MISMATCH"]);
  });
});

describe("the variables of a project with groups", () => {
  const ENVS = "/v1/project/penvs/envs";
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  let group: string;
  beforeAll(async () => {
    await putGroup(harness.kube, { namespace, name: "venvs" }, {});
    group = "venvs";
    const { spec } = await harness.kube.get<VariableGroup>(variableGroupResource, { namespace, name: group });
    const data = { SHARED: base64("group"), LEVEL: base64("group") };
    await harness.kube.patch(resources.secrets, { namespace, name: spec.secretRef.name }, { data });
    await harness.kube.create(resources.secrets, {
      metadata: { namespace, name: "vault-secret" },
      data: { TOKEN: base64("vault") },
    } as KubernetesObject);
    await harness.kube.create(resources.secrets, {
      metadata: { namespace, name: "penvs-env-0123456789ab" },
      data: { LEVEL: base64("own"), OWN: base64("own") },
    } as KubernetesObject);
    await harness.project(ORGANIZATION, "penvs", {
      variableGroups: [group],
      envsFrom: [{ name: "vault-secret" }, { name: "penvs-env-0123456789ab" }],
    });
  });
  const project = { type: "project" };

  // Shows: docs/variable-groups.md#reading: `source` of each
  it("say where each comes from: the one that wins", async () => {
    const { data } = (await send("GET", ENVS)).json();
    expect(data).toEqual([
      { name: "LEVEL", value: "own", source: project },
      { name: "OWN", value: "own", source: project },
      { name: "SHARED", value: "group", source: { type: "group", id: group, name: group } },
      { name: "TOKEN", value: "vault", source: { type: "secret", name: "vault-secret" } },
    ]);
  });

  // Shows: docs/variable-groups.md#reading: without the right to read groups
  it("hide the values of groups from whom may not read groups", async () => {
    const headers = harness.key(ORGANIZATION, "project.envs.read on project:penvs");
    const { data } = (await send("GET", ENVS, undefined, headers)).json();
    expect(data).toContainEqual({
      name: "SHARED",
      value: "",
      source: { type: "group", id: group, name: group, hidden: true },
    });
    expect(data).toContainEqual({ name: "OWN", value: "own", source: project });
  });

  // Shows: docs/variable-groups.md#reading: A list may be sent back as it was read
  it("may be sent back as they were read: what is not the project's own stays where it is", async () => {
    const headers = harness.key(
      ORGANIZATION,
      "project.envs.read on project:penvs",
      "project.envs.update on project:penvs",
    );
    const { data } = (await send("GET", ENVS, undefined, headers)).json();
    expect((await send("PATCH", ENVS, { envs: data }, headers)).statusCode).toBe(200);
    const { envsFrom = [], variableGroups } = await specOf("penvs");
    expect(variableGroups).toEqual([group]);
    expect(envsFrom.map(({ name }) => name)).toEqual([
      "vault-secret",
      expect.stringMatching(/^penvs-env-[0-9a-f]{12}$/),
    ]);
    const own = envsFrom[1]?.name ?? "";
    const { stringData } = await harness.kube.get<KubernetesObject & { stringData?: object }>(
      resources.secrets,
      {
        namespace,
        name: own,
      },
    );
    expect(stringData).toEqual({ LEVEL: "own", OWN: "own" });
  });

  it("may have the names that keys of a Secret may have, where they are not the project's own", async () => {
    const name = "k".repeat(253);
    const source = { type: "secret", name: "vault-secret" };
    const patch = (one: object) => send("PATCH", ENVS, { envs: [one, { name: "OWN", value: "own" }] });
    expect((await patch({ name, value: "x", source })).statusCode).toBe(200);
    expect((await patch({ name: `${name}k`, value: "x", source })).statusCode).toBe(400);
    expect((await patch({ name, value: "x" })).statusCode).toBe(400);
  });

  it("name no source that the project does not have, nor the project's own Secrets as another's", async () => {
    const own = ((await specOf("penvs")).envsFrom ?? []).flatMap(({ name }) =>
      name.startsWith("penvs-env-") ? [name] : [],
    );
    expect(own).toHaveLength(1);
    for (const source of [
      { type: "secret", name: "penvs-credentials" },
      ...own.map((name) => ({ type: "secret", name })),
      { type: "group", id: "vother" },
    ]) {
      const answer = await send("PATCH", ENVS, { envs: [{ name: "A", value: "1", source }] });
      expect(answer.statusCode).toBe(400);
      expect(answer.json().errors[0].field).toBe("envs[0].source");
    }
  });
});
