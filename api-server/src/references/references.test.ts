import { resources } from "@slipway/controller-runtime";
import { organizationNamespace, type Project } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databaseSpec } from "../../../test/kit/api-server/databases.ts";
import { type FakeHarness, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { projectResource } from "../resources.ts";

const namespace = organizationNamespace("acme");
let harness: FakeHarness;
let full: Record<string, string>;

beforeAll(async () => {
  harness = await startFakeHarness();
  full = await harness.owner("acme");
  await harness.namespace("acme");
  await harness.project("acme", "pshop", databaseSpec("postgresql", { name: "shop-db" }));
  await harness.project("acme", "pcache", databaseSpec("valkey", { name: "shop-cache" }));
  await harness.project("acme", "ptwin1", databaseSpec("postgresql", { name: "twin-db" }));
  await harness.project("acme", "ptwin2", databaseSpec("postgresql", { name: "twin-db" }));
  await harness.project("other", "pother", databaseSpec("postgresql", { name: "other-db" }));
  const none = { exposure: undefined, port: undefined, networkAccess: undefined };
  await harness.project("acme", "pworker", { type: "worker", name: "shop-worker", ...none });
  await harness.project("acme", "app", { name: "shop-web" });
  await harness.project("acme", "api", { name: "shop-api" });
});
afterAll(() => harness.close());

const to = (text: string) => `\${project:${text}}`;
const send = (id: string, values: Record<string, string>, headers = full) =>
  harness.app.inject({
    method: "PATCH",
    url: `/v1/project/${id}/envs`,
    headers,
    payload: { envs: Object.entries(values).map(([name, value]) => ({ name, value })) },
  });
const get = (id: string) => harness.kube.get<Project>(projectResource, { namespace, name: id });

describe("variables with references", () => {
  // Shows: docs/references.md#syntax: `${project:NAME.MEMBER}` | the value of a member
  it("are stored as they were sent, and the spec binds each reference to its project's id", async () => {
    const values = {
      DATABASE_URL: to("shop-db.connection_string"),
      CACHE: `redis://${to("pcache.host")}`,
      TEXT: `$${to("x.y")}`,
    };
    expect((await send("app", values)).statusCode).toBe(200);
    const { spec } = await get("app");
    expect(spec.envsFrom).toEqual([
      {
        name: expect.stringMatching(/^app-env-/),
        references: [
          { reference: "pcache.host", project: "pcache" },
          { reference: "shop-db.connection_string", project: "pshop" },
        ],
      },
    ]);
    const secrets = await harness.kube.listAll(resources.secrets, { namespace });
    expect(secrets).toEqual([expect.objectContaining({ stringData: values })]);
  });

  it("stay bound to their project through another name, for a caller who may not read it, too", async () => {
    await harness.kube.patch(projectResource, { namespace, name: "pshop" }, { spec: { name: "renamed-db" } });
    const narrow = harness.key("acme", "project.envs.update on project:app");
    const same = { DATABASE_URL: to("shop-db.connection_string"), LOG_LEVEL: "debug" };
    expect((await send("app", same, narrow)).statusCode).toBe(200);
    expect((await get("app")).spec.envsFrom?.[0]?.references).toEqual([
      { reference: "shop-db.connection_string", project: "pshop" },
    ]);
    await harness.kube.patch(projectResource, { namespace, name: "pshop" }, { spec: { name: "shop-db" } });
  });

  it("are literal where nothing looks like a reference", async () => {
    expect((await send("api", { A: "$HOME {project:a.b}" })).statusCode).toBe(200);
    expect((await get("api")).spec.envsFrom?.[0]).not.toHaveProperty("references");
  });

  it("are literal for a database", async () => {
    expect((await send("pshop", { A: to("whatever") })).statusCode).toBe(200);
    expect((await get("pshop")).spec.envsFrom?.[0]).not.toHaveProperty("references");
  });

  it("are checked when a project is created", async () => {
    const envs = [{ name: "URL", value: to("nobody.host") }];
    const response = await harness.app.inject({
      method: "POST",
      url: "/v1/project",
      headers: full,
      payload: {
        name: "created-app",
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
      },
    });
    expect([response.statusCode, response.json().code]).toEqual([400, "REFERENCE_UNKNOWN"]);
  });
});

describe("refused with the path of the reference:", () => {
  const cases: [string, string, string][] = [
    // Shows: docs/references.md#errors: 400 | `REFERENCE_INVALID`
    ["broken syntax", "shop-db", "REFERENCE_INVALID"],
    // Shows: docs/references.md#errors: 400 | `REFERENCE_UNKNOWN`
    ["an unknown name", "nobody.host", "REFERENCE_UNKNOWN"],
    ["another organization's project, in the same words", "pother.host", "REFERENCE_UNKNOWN"],
    // Shows: docs/references.md#errors: 400 | `REFERENCE_AMBIGUOUS`
    ["a name of two projects", "twin-db.host", "REFERENCE_AMBIGUOUS"],
    // Shows: docs/references.md#errors: 400 | `REFERENCE_MEMBER_UNKNOWN`
    ["what the type does not offer", "shop-db.internal_url", "REFERENCE_MEMBER_UNKNOWN"],
    // Shows: docs/references.md#errors: 400 | `REFERENCE_CYCLE`
    // Shows: docs/references.md#members: `worker`, `job` | none
    ["anything of a worker", "pworker.host", "REFERENCE_MEMBER_UNKNOWN"],
    ["itself", "app.internal_url", "REFERENCE_CYCLE"],
  ];
  it.each(cases)("%s", async (_, text, code) => {
    const response = await send("app", { OK: "1", URL: to(text) });
    const path = `envs.URL -> ${code === "REFERENCE_INVALID" ? to(text) : text}`;
    expect([response.statusCode, response.json().code]).toEqual([400, code]);
    expect(response.json().errors).toEqual([{ field: path, code, message: expect.any(String) }]);
  });

  it("a cycle through another project, which it names", async () => {
    expect((await send("api", { WEB: to("shop-web.internal_url") })).statusCode).toBe(200);
    const response = await send("app", { API: to("shop-api.internal_url") });
    expect(response.json()).toMatchObject({
      code: "REFERENCE_CYCLE",
      errors: [
        {
          field: "envs.API -> shop-api.internal_url",
          message: expect.stringContaining("shop-web -> shop-api -> shop-web"),
        },
      ],
    });
  });

  // Shows: docs/references.md#errors: 400 | `REFERENCE_LIMIT_EXCEEDED`
  it("more than a hundred references", async () => {
    const response = await send("app", { A: to("shop-db.host").repeat(101) });
    expect([response.statusCode, response.json().code]).toEqual([400, "REFERENCE_LIMIT_EXCEEDED"]);
  });

  // Shows: docs/references.md#permissions: any | `project.read` of the project
  it("a project that the caller may not read, as one that does not exist", async () => {
    const narrow = harness.key("acme", "project.envs.update on project:app");
    const foreign = await send("app", { URL: to("pother.port") }, narrow);
    const unreadable = await send("app", { URL: to("pcache.port") }, narrow);
    expect(unreadable.statusCode).toBe(400);
    expect(JSON.stringify(unreadable.json()).replaceAll("pcache", "pother")).toBe(
      JSON.stringify(foreign.json()),
    );
  });

  // Shows: docs/references.md#permissions: `password`, `connection_string` | besides, `database.credentials.renew`
  // Shows: docs/references.md#errors: 403 | `PERMISSION_DENIED`, with `required`
  it("a password that the caller may not have", async () => {
    const reader = harness.key(
      "acme",
      "project.envs.update on project:app",
      "project.read on project:pcache",
    );
    expect((await send("app", { PORT_OF: to("pcache.port") }, reader)).statusCode).toBe(200);
    const response = await send("app", { SECRET: to("pcache.password") }, reader);
    expect([response.statusCode, response.json()]).toEqual([
      403,
      expect.objectContaining({ required: ["database.credentials.renew on project:pcache"] }),
    ]);
  });
});

it("GET /v1/project/:id says what a dependant waits for", async () => {
  const conditions = [
    {
      type: "ReferencesReady",
      status: "False",
      reason: "ReferencePending",
      message: "DATABASE_URL -> shop-db.connection_string: the database shop-db is not provisioned yet",
      lastTransitionTime: "2026-01-01T00:00:00Z",
      observedGeneration: 1,
    },
  ] as const;
  const ref = { namespace, name: "app" };
  await harness.kube.patch(projectResource, ref, { status: { conditions } }, { subresource: "status" });
  await expect
    .poll(
      async () =>
        (await harness.app.inject({ url: "/v1/project/app", headers: full })).json().data.references,
    )
    .toEqual({ ready: false, reason: "ReferencePending", message: conditions[0].message });
});
