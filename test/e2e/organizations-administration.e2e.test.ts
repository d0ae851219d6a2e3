import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiClient, createProject, deleteProjects, httpProject, uniqueName } from "./support/api.ts";
import { eventually } from "./support/eventually.ts";
import { admin, createOrganization, type Organization } from "./support/organization.ts";
import { stack } from "./support/stack.ts";

/** The admin commands of the stack contract, by what clients see of them. */

const call = apiClient();
const made: string[] = [];
afterAll(() => deleteProjects(call, made));

const privateProject = (plan = "basic") => ({
  ...httpProject(uniqueName("admin"), { exposure: "private" }),
  plan,
});

describe("an organization", () => {
  let organization: Organization;
  beforeAll(async () => {
    organization = await createOrganization(uniqueName("blocked"));
  });

  // Shows: docs/applications.md#errors-project-creation: 402 | `ORGANIZATION_BLOCKED`: pending payment
  // Shows: docs/applications.md#administration: `admin organization block`, `admin organization unblock`
  test("that is blocked creates nothing, reads on, and creates again once it is unblocked", async () => {
    const { organization_id: id, api_key: key } = organization;
    const own = apiClient(key);
    const of = ["--organization", id];
    expect(await admin("organization", "block", ...of)).toEqual({ organization_id: id, blocked: true });
    expect(await own("POST", "/v1/project", privateProject())).toMatchObject({
      status: 402,
      body: { status: "failed", code: "ORGANIZATION_BLOCKED" },
    });
    expect((await own("GET", "/v1/project")).status).toBe(200);
    expect(await admin("organization", "unblock", ...of)).toEqual({ organization_id: id, blocked: false });
    // Its namespace may be a moment behind.
    const created = await eventually(() => createProject(own, privateProject()));
    await deleteProjects(own, [created.project_id]);
  });

  // Shows: docs/applications.md#authentication: 2. `x-organization-id`: required with a user token
  // Shows: docs/applications.md#administration: `admin organization create`
  test("belongs to its owner, whose token names it with every call", async () => {
    const { organization_id: id, owner_token: token } = organization;
    const anonymous = apiClient("");
    const authorization = `Bearer ${token}`;
    const list = (headers: Record<string, string>) =>
      anonymous("GET", "/v1/project", undefined, { authorization, ...headers });
    expect((await list({ "x-organization-id": id })).status).toBe(200);
    expect(await list({})).toMatchObject({ status: 403, body: { code: "ORGANIZATION_REQUIRED" } });
    expect(await list({ "x-organization-id": stack.organization })).toMatchObject({
      status: 403,
      body: { code: "ORGANIZATION_FORBIDDEN" },
    });
  });

  // Shows: docs/invoices.md#over-v1: `GET /v1/organization/invoices` |
  // Shows: docs/invoices.md#payments-and-credit-notes: `admin organization country --organization ID --country BR`
  test("has no invoice before its first month, and a country by which it will be taxed", async () => {
    const { organization_id: id, api_key: key } = organization;
    const own = apiClient(key);
    expect(await own("GET", "/v1/organization/invoices")).toMatchObject({
      status: 200,
      body: { data: { invoices: [], pagination: { total: 0 } } },
    });
    expect(await own("GET", "/v1/organization/invoices/2026-000001/charges")).toMatchObject({
      status: 404,
      body: { code: "INVOICE_NOT_FOUND" },
    });
    expect(await admin("invoice", "list", "--organization", id)).toMatchObject({ invoices: [] });
    const country = { organization_id: id, country: "BR" };
    expect(await admin("organization", "country", "--organization", id, "--country", "BR")).toEqual(country);
  });

  test("has nothing that an audit of billing finds, in the ledger or the cluster", async () => {
    const { organization_id: id } = organization;
    expect(await admin("billing", "audit", "--organization", id, "--cluster")).toMatchObject({
      clean: true,
      organizations: 1,
      objects: 0,
      findings: [],
    });
  });

  // Shows: docs/applications.md#conventions: a foreign project looks exactly like a missing one, on
  test("sees nothing of another one's projects", async () => {
    const { project_id: id } = await createProject(call, privateProject());
    made.push(id);
    const stranger = apiClient(organization.api_key);
    const requests: [string, string, unknown?][] = [
      ["GET", ""],
      ["GET", "/logs"],
      ["GET", "/envs"],
      ["GET", "/historic/deployments"],
      ["PATCH", "/name", { name: "renamed" }],
      ["POST", "/pause"],
      ["DELETE", ""],
    ];
    for (const [method, operation, body] of requests) {
      const foreign = await stranger(method, `/v1/project/${id}${operation}`, body);
      const missing = await stranger(method, `/v1/project/pnobodys${operation}`, body);
      expect([operation, foreign]).toEqual([operation, missing]);
      expect([operation, foreign.status, foreign.body.code]).toEqual([operation, 404, "PROJECT_NOT_FOUND"]);
    }
    expect((await call("GET", `/v1/project/${id}`)).status).toBe(200);
  });
});

describe("a key", () => {
  // Shows: docs/applications.md#authentication: 5. 401 for a missing or wrong credential, a revoked key
  // Shows: docs/applications.md#authentication: 5. 403 `insufficient organization permission` for
  // Shows: docs/applications.md#administration: `admin api-key create`
  // Shows: docs/applications.md#administration: `admin api-key revoke`
  test("may what it was granted, nothing else, and nothing at all once it is revoked", async () => {
    const { project_id: id } = await createProject(call, privateProject());
    const { project_id: other } = await createProject(call, privateProject());
    made.push(id, other);
    const { api_key: key, api_key_id } = await admin<{ api_key: string; api_key_id: string }>(
      ...["api-key", "create", "--organization", stack.organization],
      ...["--grant", `project.read on project:${id}`],
    );
    const reader = apiClient(key);
    expect((await reader("GET", `/v1/project/${id}`)).status).toBe(200);
    const list = await reader<{ projects: { id: string }[] }>("GET", "/v1/project");
    expect(list.body.data?.projects.map((project) => project.id)).toEqual([id]);
    expect(await reader("GET", `/v1/project/${other}`)).toMatchObject({
      status: 403,
      body: { code: "PERMISSION_DENIED" },
    });
    expect((await reader("DELETE", `/v1/project/${id}`)).status).toBe(403);
    expect(await reader("POST", "/v1/project", privateProject())).toMatchObject({
      status: 403,
      body: { code: "PERMISSION_DENIED", message: "insufficient organization permission" },
    });
    expect(await admin("api-key", "revoke", "--id", api_key_id)).toEqual({ api_key_id, revoked: true });
    await eventually(
      async () =>
        expect(await reader("GET", `/v1/project/${id}`)).toMatchObject({
          status: 401,
          body: { code: "CREDENTIAL_INVALID" },
        }),
      { within: 10_000 },
    );
  });
});

describe("a member", () => {
  // Shows: docs/applications.md#authentication: 4. assistants, members and keys have what they were
  // Shows: docs/applications.md#administration: `admin user-token create`
  test("may what the token's user was granted", async () => {
    const { project_id: id } = await createProject(call, privateProject());
    made.push(id);
    const { token } = await admin<{ token: string; user_id: string }>(
      ...["user-token", "create", "--organization", stack.organization, "--role", "member"],
      ...["--grant", `project.read on project:${id}`, "--grant", `project.name.update on project:${id}`],
    );
    const anonymous = apiClient("");
    const headers = { authorization: `Bearer ${token}`, "x-organization-id": stack.organization };
    const name = uniqueName("member");
    const renamed = await anonymous("PATCH", `/v1/project/${id}/name`, { name }, headers);
    expect(renamed.status).toBe(200);
    const read = await anonymous<{ name: string }>("GET", `/v1/project/${id}`, undefined, headers);
    expect(read.body.data?.name).toBe(name);
    expect((await anonymous("DELETE", `/v1/project/${id}`, undefined, headers)).status).toBe(403);
  });
});

describe("a plan's capacity", () => {
  // Shows: docs/applications.md#errors-project-creation: 409 | `INSUFFICIENT_PLAN_CAPACITY`
  // Shows: docs/applications.md#administration: `admin capacity set`
  test("ends creations and plan changes over all organizations, until it is lifted", async () => {
    const { project_id: id } = await createProject(call, privateProject());
    made.push(id);
    const full = { status: 409, body: { status: "failed", code: "INSUFFICIENT_PLAN_CAPACITY" } };
    const plan = ["--plan", "business"];
    expect(await admin("capacity", "set", ...plan, "--limit", "0")).toEqual({ plan: "business", limit: 0 });
    try {
      expect(await call("POST", "/v1/project", privateProject("business"))).toMatchObject(full);
      const change = { plan: "business" };
      expect(await call("PATCH", `/v1/project/${id}/plan`, change)).toMatchObject(full);
    } finally {
      expect(await admin("capacity", "set", ...plan)).toEqual({ plan: "business", limit: null });
    }
    made.push((await createProject(call, privateProject("business"))).project_id);
  });
});
