import { afterAll, describe, expect, test } from "vitest";
import {
  apiClient,
  type CustomDomainSetup,
  createProject,
  deleteProjects,
  httpProject,
  readProject,
  retried,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { eventually } from "./support/eventually.ts";
import { throughIngress } from "./support/ingress.ts";
import { admin, createOrganization } from "./support/organization.ts";
import { stack } from "./support/stack.ts";

const call = apiClient();
const made: string[] = [];
afterAll(() => deleteProjects(call, made));
/** A change that may release a domain, or take one. */
const change = (path: string, body: object) => retried(() => call("PATCH", path, body));

async function runningProject(config: Record<string, unknown> = {}) {
  const project = await createProject(call, httpProject(uniqueName("setting"), config));
  made.push(project.project_id);
  await untilStatus(call, project.project_id, "running");
  return project;
}

const answers = (domain: string, status: number) =>
  eventually(async () => expect((await throughIngress(domain)).status).toBe(status), { every: 200 });

describe.concurrent("name and description", () => {
  // Shows: docs/applications.md#endpoints: `PATCH /v1/project/:id/name` | `message`
  // Shows: docs/applications.md#endpoints: `PATCH /v1/project/:id/description` | `message`
  test("change immediately, and the domain stays", async () => {
    const { project_id: id, domain } = await runningProject();
    const name = uniqueName("renamed");
    expect(await call("PATCH", `/v1/project/${id}/name`, { name })).toMatchObject({
      status: 200,
      body: { status: "success", message: expect.any(String) },
    });
    const description = "What it is for";
    expect((await call("PATCH", `/v1/project/${id}/description`, { description })).status).toBe(200);
    expect(await readProject(call, id)).toMatchObject({ name, description, domain, status: "running" });
    expect((await throughIngress(domain)).status).toBe(200);
  });
});

describe.concurrent("the subdomain", () => {
  // Shows: docs/applications.md#endpoints: `PATCH /v1/project/:id/domain` | `message`
  // Shows: docs/applications.md#project-settings: 3. the subdomain exactly as requested; in use: 409
  // Shows: docs/applications.md#errors-other-operations: PATCH domain | 409 `DOMAIN_UNAVAILABLE`, a
  test("changes: the new one answers, the old one is free immediately", async () => {
    const { project_id: id, domain: first } = await runningProject();
    const subdomain = uniqueName("chosen");
    expect((await change(`/v1/project/${id}/domain`, { domain: subdomain })).status).toBe(200);
    const domain = `${subdomain}.${stack.domainZone}`;
    await answers(domain, 200);
    await answers(first, 404);

    const taken = await runningProject();
    const refused = await call("PATCH", `/v1/project/${taken.project_id}/domain`, { domain: subdomain });
    expect(refused).toMatchObject({ status: 409, body: { code: "DOMAIN_UNAVAILABLE" } });
    expect((await readProject(call, taken.project_id)).domain).toBe(taken.domain);

    const next = uniqueName("chosen");
    expect((await change(`/v1/project/${id}/domain`, { domain: next })).status).toBe(200);
    const now = await change(`/v1/project/${taken.project_id}/domain`, { domain: subdomain });
    expect(now.status).toBe(200);
    await answers(domain, 200);
  });
});

describe.concurrent("exposure", () => {
  // Shows: docs/applications.md#endpoints: `PATCH /v1/project/:id/exposure` | `message`, `exposure`
  // Shows: docs/applications.md#project-settings: exposure: private removes route, subdomain and custom
  // Shows: docs/applications.md#errors-other-operations: PATCH domain | 409 `PROJECT_PRIVATE`
  test("to private and back: no route, no domain, and then one again", async () => {
    const { project_id: id, domain } = await runningProject();
    const hidden = await change(`/v1/project/${id}/exposure`, { exposure: "private" });
    expect(hidden).toMatchObject({
      status: 200,
      body: { status: "success", exposure: "private", custom_domains: [] },
    });
    await answers(domain, 404);
    await eventually(async () => {
      const project = await readProject(call, id);
      expect(project).toMatchObject({ exposure: "private", status: "running" });
      expect(project.domain ?? "").toBe("");
    });
    const subdomain = await call("PATCH", `/v1/project/${id}/domain`, { domain: uniqueName("chosen") });
    expect(subdomain).toMatchObject({ status: 409, body: { code: "PROJECT_PRIVATE" } });

    const shown = await change(`/v1/project/${id}/exposure`, { exposure: "public" });
    expect(shown).toMatchObject({ status: 200, body: { exposure: "public", custom_domains: [] } });
    expect(shown.body.domain).toMatch(new RegExp(`\\.${stack.domainZone.replaceAll(".", "\\.")}$`));
    await answers(String(shown.body.domain), 200);
  });
});

describe.concurrent("a custom domain", () => {
  // Shows: docs/applications.md#endpoints: `PATCH /v1/project/:id/custom-domains` | `message`
  // Shows: docs/applications.md#project-settings: 2. one new custom domain a request; reserved names are
  // Shows: docs/applications.md#errors-project-creation: 409 | domain unavailable: `DOMAIN_UNAVAILABLE`
  // Shows: docs/applications.md#administration: `admin domain verify`
  test("is claimed, proved, routed, and released when it is removed", async () => {
    const { project_id: id } = await runningProject();
    const hostname = `${uniqueName("shop")}.example.com`;
    const path = `/v1/project/${id}/custom-domains`;
    const added = await change(path, { custom_domains: [hostname] });
    expect(added).toMatchObject({ status: 200, body: { status: "success", custom_domains: [hostname] } });
    const [setup] = added.body.custom_domain_setup as CustomDomainSetup[];
    expect(setup).toMatchObject({ hostname, status: "pending", ssl_status: "pending_validation" });
    expect(setup?.dns_records.map(({ type, name }) => [type, name])).toEqual([
      ["TXT", `_slipway-challenge.${hostname}`],
      ["CNAME", hostname],
    ]);
    expect((await throughIngress(hostname)).status).toBe(404);

    // Nobody else gets it, not even while it is not proved.
    const stranger = await createOrganization(uniqueName("stranger"));
    const other = apiClient(stranger.api_key);
    const refused = await eventually(async () => {
      const answer = await other(
        "POST",
        "/v1/project",
        httpProject(uniqueName("thief"), { custom_domains: [hostname] }),
      );
      expect(answer.body.code).not.toBe("ORGANIZATION_RUNTIME_UNAVAILABLE");
      return answer;
    });
    expect(refused).toMatchObject({ status: 409, body: { code: "DOMAIN_UNAVAILABLE" } });

    expect(await admin("domain", "verify", "--hostname", hostname)).toEqual({ hostname, verified: true });
    await answers(hostname, 200);
    await eventually(async () =>
      expect((await readProject(call, id)).custom_domain_setup).toMatchObject([
        { hostname, status: "active" },
      ]),
    );

    const two = [`a.${hostname}`, `b.${hostname}`];
    expect(await call("PATCH", path, { custom_domains: [hostname, ...two] })).toMatchObject({
      status: 400,
      body: { code: "TOO_MANY_NEW_DOMAINS" },
    });
    const reserved = await call("PATCH", path, { custom_domains: [hostname, `mine.${stack.domainZone}`] });
    expect(reserved).toMatchObject({ status: 400, body: { code: "DOMAIN_RESERVED" } });

    expect((await change(path, { custom_domains: [] })).body.custom_domains).toEqual([]);
    await answers(hostname, 404);
    const free = await other(
      "POST",
      "/v1/project",
      httpProject(uniqueName("owner"), { custom_domains: [hostname] }),
    );
    expect(free.status).toBe(201);
    await deleteProjects(other, [(free.body.data as { project_id: string }).project_id]);
  });
});

describe.concurrent("pause and resume", () => {
  // Shows: docs/applications.md#endpoints: `POST /v1/project/:id/pause` | `data`: `project_id`
  // Shows: docs/applications.md#endpoints: `POST /v1/project/:id/resume` | `data`: `project_id`
  // Shows: docs/applications.md#states: `stopped` | paused, without an instance
  test("stop and start the project; its domain stays its own", async () => {
    const { project_id: id, domain } = await runningProject();
    expect((await call("POST", `/v1/project/${id}/pause`)).status).toBe(200);
    await untilStatus(call, id, "stopped");
    // An instance that is stopping still answers what was on its way to it.
    await answers(domain, 503);
    expect((await call("POST", `/v1/project/${id}/pause`)).status).toBe(200);
    expect((await call("POST", `/v1/project/${id}/resume`)).status).toBe(200);
    await untilStatus(call, id, "running");
    expect((await throughIngress(domain)).status).toBe(200);
  });
});

describe.concurrent("logs", () => {
  // Shows: docs/applications.md#endpoints: `GET /v1/project/:id/logs` | the application's lines, of all
  // Shows: docs/applications.md#create: `config.instances`: at most as many as the plan allows
  // Shows: docs/applications.md#errors-other-operations: GET logs | 404 `INSTANCE_NOT_FOUND`, 503
  test("are the application's lines, of all instances or of one", async () => {
    const { project_id: id, domain } = await runningProject({ instances: 2 });
    const marker = uniqueName("marker");
    for (let i = 0; i < 10; i += 1) {
      await throughIngress(domain, `/${marker}`);
    }
    const logs = await eventually(async () => {
      const answer = await call<string[]>("GET", `/v1/project/${id}/logs`);
      expect(answer.status).toBe(200);
      expect(answer.body.data?.filter((line) => line.includes(marker))).toHaveLength(10);
      return answer.body;
    });
    const instances = logs.instances as string[];
    expect(instances).toHaveLength(2);
    const each = await Promise.all(
      instances.map((instance) => call<string[]>("GET", `/v1/project/${id}/logs?instance=${instance}`)),
    );
    const lines = each.flatMap(({ body }) => body.data ?? []).filter((line) => line.includes(marker));
    expect(lines).toHaveLength(10);
    const foreign = await call("GET", `/v1/project/${id}/logs?instance=slipway-api-server-0`);
    expect(foreign).toMatchObject({ status: 404, body: { code: "INSTANCE_NOT_FOUND" } });
  });
});
