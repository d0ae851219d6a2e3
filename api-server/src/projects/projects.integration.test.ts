import { KubeClient, type KubernetesObject, resources } from "@slipway/controller-runtime";
import { loadKubeConfig } from "@slipway/controller-runtime/kube-config";
import { defaultDomain, organizationNamespace, type Project } from "@slipway/crds";
import {
  connectLedger,
  insertOrganization,
  type Ledger,
  migrateToLatest,
  setOrganizationBlocked,
} from "@slipway/ledger";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TestApiserver } from "../../../hack/cluster/apiserver.ts";
import {
  exampleBody,
  exampleWorkerBody,
  type Harness,
  startHarness,
  ZONE,
} from "../../../test/kit/api-server/harness.ts";
import { bindInOrganization, createRoles, restrictedClient } from "../../../test/kit/api-server/roles.ts";
import { acquireApiserver } from "../../../test/kit/clusters/shared-apiserver.ts";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import { domainClaimResource, projectResource } from "../resources.ts";

/**
 * The routes that write, over a real kube-apiserver with the real CRDs and a real PostgreSQL. No operator runs. The API
 * server acts as a user with nothing but the rules of its own role.
 */

let apiserver: TestApiserver;
let postgres: TestPostgres;
let ledger: Ledger;
let harness: Harness;
let admin: KubeClient;

beforeAll(async () => {
  [apiserver, postgres] = await Promise.all([acquireApiserver(), startPostgres()]);
  ledger = connectLedger({ url: postgres.url, applicationName: "test", maxConnections: 20 });
  await migrateToLatest(ledger);
  admin = KubeClient.fromConfig(loadKubeConfig({ file: apiserver.kubeconfig }));
  await createRoles(admin);
  harness = await startHarness(restrictedClient(apiserver.kubeconfig), { ledger, admin });
});

afterAll(async () => {
  await harness?.close();
  await admin?.close();
  await ledger?.destroy();
  await postgres?.stop();
  await apiserver?.stop();
});

let organizations = 0;
/** An organization of its own for a test, ready to take projects. */
async function organization(): Promise<{ id: string; headers: Record<string, string> }> {
  organizations += 1;
  const id = `org-${organizations}`;
  await insertOrganization(ledger, { id, name: id });
  await harness.namespace(id);
  await bindInOrganization(admin, id);
  return { id, headers: harness.key(id, "* on organization:*", "* on project:*") };
}

const post = (headers: Record<string, string>, body: object | string) =>
  harness.app.inject({
    method: "POST",
    url: "/v1/project",
    headers: { ...headers, "content-type": "application/json" },
    payload: body,
  });
const on = (method: "GET" | "DELETE", id: string, headers: Record<string, string>) =>
  harness.app.inject({ method, url: `/v1/project/${id}`, headers });

const secretsOf = (organizationId: string) =>
  admin.listAll<KubernetesObject & { immutable?: boolean; type?: string; data: Record<string, string> }>(
    resources.secrets,
    { namespace: organizationNamespace(organizationId) },
  );
const liveProject = (organizationId: string, id: string) =>
  admin.get<Project>(projectResource, { namespace: organizationNamespace(organizationId), name: id });
const decoded = (data: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]),
  );

describe("POST /v1/project", () => {
  // Shows: docs/applications.md#endpoints: `POST /v1/project` | 201, `message`, `data`: `project_id`
  // Shows: docs/applications.md#create: `auth_type` `username_password`
  it("creates Secrets, Project and claim, and answers what a read then shows", async () => {
    const { id: org, headers } = await organization();
    const authentication = { auth_type: "username_password", username: "robot", token: "p4ss" };
    const config = {
      envs: [
        { name: "GREETING", value: "héllo $(PATH) %d" },
        { name: "OTHER", value: "1" },
      ],
      image: { url: "registry.example.com/shop:1", is_public: false, authentication },
      subdomain: "shop-of-org-1",
    };
    const created = await post(headers, exampleBody({ plan: "basic", description: "Sells" }, config));
    expect(created.json()).toEqual({
      status: "success",
      message: expect.any(String),
      data: {
        project_id: expect.stringMatching(/^p[a-z0-9]{19}$/),
        domain: `shop-of-org-1.${ZONE}`,
        type: "application",
      },
    });
    expect(created.statusCode).toBe(201);
    const { project_id: id } = created.json().data;

    const project = await liveProject(org, id);
    const secrets = await secretsOf(org);
    const env = secrets.find((secret) => secret.metadata?.name?.startsWith(`${id}-env-`));
    const pull = secrets.find((secret) => secret.type === "kubernetes.io/dockerconfigjson");
    expect(secrets).toHaveLength(2);
    expect(decoded(env?.data ?? {})).toEqual({ GREETING: "héllo $(PATH) %d", OTHER: "1" });
    expect(JSON.parse(decoded(pull?.data ?? {})[".dockerconfigjson"] ?? "").auths).toMatchObject({
      "registry.example.com": { username: "robot", password: "p4ss" },
    });
    expect(project.spec.envsFrom).toEqual([{ name: env?.metadata?.name }]);
    expect(project.spec.image?.pullSecretRef).toEqual({ name: pull?.metadata?.name });
    for (const secret of secrets) {
      expect(secret.immutable).toBe(true);
      expect(secret.metadata?.labels?.["slipway.dev/project"]).toBe(id);
      expect(secret.metadata?.ownerReferences?.[0]).toMatchObject({
        kind: "Project",
        uid: project.metadata.uid,
      });
    }
    expect(JSON.stringify(project)).not.toContain("p4ss");

    const claim = await admin.get(domainClaimResource, { name: `shop-of-org-1.${ZONE}` });
    expect(claim).toMatchObject({
      spec: { kind: "subdomain", projectRef: { name: id, uid: project.metadata.uid } },
    });
    expect((await on("GET", id, headers)).json().data).toMatchObject({
      name: "shop-front",
      description: "Sells",
      domain: `shop-of-org-1.${ZONE}`,
      plan: "basic",
      status: "creating",
    });
    expect(harness.audited.find((entry) => entry.projectId === id)).toMatchObject({
      organizationId: org,
      operation: "createProject",
      status: 201,
    });
  });

  // Shows: docs/applications.md#fields-of-answers: single project | `domain` is the default domain
  // Shows: docs/applications.md#fields-of-answers: single project | `command`, where the instances have one
  // Shows: docs/applications.md#workers: created like an HTTP project, without port, domain
  it("creates a worker without an address, lists and reads it, and changes its plan", async () => {
    const { id: org, headers } = await organization();
    const config = {
      envs: [{ name: "QUEUE", value: "mail" }],
      command: ["node", "worker.js"],
      readiness: { command: ["cat", "/tmp/ready"] },
    };
    const created = await post(headers, exampleWorkerBody({ plan: "basic" }, config));
    expect(created.json()).toEqual({
      status: "success",
      message: expect.any(String),
      data: { project_id: expect.stringMatching(/^p[a-z0-9]{19}$/), type: "worker" },
    });
    const { project_id: id } = created.json().data;
    const { spec } = await liveProject(org, id);
    expect(spec).toMatchObject({
      type: "worker",
      instances: 1,
      command: config.command,
      readiness: config.readiness,
    });
    expect(await admin.listAll(domainClaimResource, { labelSelector: `slipway.dev/project=${id}` })).toEqual(
      [],
    );
    const read = (await on("GET", id, headers)).json().data;
    expect(read).toMatchObject({
      type_project: "worker",
      instances: 1,
      command: config.command,
      readiness: config.readiness,
    });
    for (const absent of ["domain", "exposure", "port", "custom_domains", "network_access", "healthcheck"]) {
      expect(read).not.toHaveProperty(absent);
    }
    const listed = await harness.app.inject({ url: "/v1/project?type=worker", headers });
    expect(listed.json().data.projects).toMatchObject([{ id, type_project: "worker", plan: "basic" }]);
    const changed = await harness.app.inject({
      method: "PATCH",
      url: `/v1/project/${id}/plan`,
      headers: { ...headers, "content-type": "application/json" },
      payload: { plan: "premium" },
    });
    expect(changed.json()).toMatchObject({ data: { plan: "premium" } });
  });

  // Shows: docs/applications.md#create: `config.exposure`: private has no domain, no subdomain, no
  it("gives a project without subdomain its default domain, and a private one none", async () => {
    const { id: org, headers } = await organization();
    const shown = (await post(headers, exampleBody({ plan: "basic" }))).json().data;
    const metadata = { namespace: organizationNamespace(org), name: shown.project_id };
    expect(shown.domain).toBe(defaultDomain({ metadata, spec: { name: "shop-front" } }, ZONE));
    const hidden = (await post(headers, exampleBody({ plan: "basic" }, { exposure: "private" }))).json().data;
    expect(hidden.domain).toBe("");
    expect((await on("GET", hidden.project_id, headers)).json().data).not.toHaveProperty("domain");
  });

  // Shows: docs/applications.md#create: `config.envs`: literal, any characters; what cannot be an
  it("accepts the largest legal environment, also written as escapes", async () => {
    const { id: org, headers } = await organization();
    const envs = Array.from({ length: 50 }, (_, index) => ({
      name: `N${index}_${"X".repeat(115)}`.slice(0, 120),
      value: "a".repeat(32_760),
    }));
    const body = JSON.stringify(exampleBody({ plan: "basic" }, { envs })).replaceAll(
      "a".repeat(32_760),
      "\\u0061".repeat(32_760),
    );
    expect(body.length).toBeGreaterThan(9_000_000);
    const created = await post(headers, body);
    expect(created.json()).toMatchObject({ status: "success" });
    const stored = Object.assign({}, ...(await secretsOf(org)).map((secret) => decoded(secret.data)));
    expect(stored).toEqual(Object.fromEntries(envs.map(({ name, value }) => [name, value])));
  });

  // Shows: docs/applications.md#create: `config.subdomain`: reserved exactly as given
  // Shows: docs/applications.md#errors-project-creation: 409 | domain unavailable: `DOMAIN_UNAVAILABLE`
  it("claims a subdomain once under 20 concurrent requests, and leaves nothing of the others", async () => {
    const { id: org, headers } = await organization();
    const other = await organization();
    const body = exampleBody(
      { plan: "basic" },
      { subdomain: "contested", envs: [{ name: "A", value: "1" }] },
    );
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => post(index % 2 ? headers : other.headers, body)),
    );
    const codes = answers.map((answer) => answer.json().code ?? answer.statusCode).sort();
    expect(codes).toEqual([201, ...Array(19).fill("DOMAIN_UNAVAILABLE")]);
    const left = [...(await secretsOf(org)), ...(await secretsOf(other.id))];
    expect(left).toHaveLength(1);
  });

  it("keeps the free plan's two instances, also under two concurrent requests", async () => {
    const { headers } = await organization();
    const tooMany = await post(headers, exampleBody({}, { instances: 3 }));
    expect(tooMany.json()).toMatchObject({
      code: "FREE_PLAN_INSTANCE_LIMIT_EXCEEDED",
      limit: 2,
      remaining: 2,
    });
    expect(tooMany.statusCode).toBe(409);
    const answers = await Promise.all([1, 2, 3, 4].map(() => post(headers, exampleBody())));
    expect(answers.map((answer) => answer.statusCode).sort()).toEqual([201, 201, 409, 409]);
    const refused = answers.find((answer) => answer.statusCode === 409)?.json();
    expect(refused).toMatchObject({ status: "failed", code: "FREE_PLAN_INSTANCE_LIMIT_REACHED", limit: 2 });
  });

  // Shows: docs/applications.md#create: `Idempotency-Key`: another body is 409; each organization has
  // Shows: docs/applications.md#errors-project-creation: 409 | `IDEMPOTENCY_KEY_CONFLICT`
  it("creates once per Idempotency-Key under 20 identical requests, and refuses another body", async () => {
    const { id: org, headers } = await organization();
    const keyed = { ...headers, "idempotency-key": "0123456789abcdef" };
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(keyed, exampleBody())));
    expect(new Set(answers.map((answer) => answer.statusCode))).toEqual(new Set([201]));
    expect(new Set(answers.map((answer) => answer.json().data.project_id)).size).toBe(1);
    expect(harness.projects.list(org)).toHaveLength(1);
    const conflict = await post(keyed, exampleBody({ name: "another-name" }));
    expect(conflict.json()).toMatchObject({ code: "IDEMPOTENCY_KEY_CONFLICT" });
    expect(conflict.statusCode).toBe(409);
  });

  // Shows: docs/applications.md#create: `Idempotency-Key`: a rejection releases it; a creation that a
  it("frees the key of a refused request", async () => {
    const { headers } = await organization();
    const keyed = { ...headers, "idempotency-key": "refused-0123456789" };
    expect((await post(keyed, exampleBody({}, { instances: 3 }))).statusCode).toBe(409);
    expect((await post(keyed, exampleBody())).statusCode).toBe(201);
  });

  // Shows: docs/applications.md#create: `Idempotency-Key`: a rejection releases it; a creation that a
  // Shows: docs/applications.md#errors-every-operation: 503 | `CLUSTER_UNAVAILABLE`
  it("finishes under the same key what a cut connection left half done", async () => {
    const { id: org, headers } = await organization();
    const keyed = { ...headers, "idempotency-key": "half-done-0123456789" };
    await apiserver.kill();
    expect((await post(keyed, exampleBody())).json()).toMatchObject({ code: "CLUSTER_UNAVAILABLE" });
    await apiserver.restart();
    expect((await post(keyed, exampleBody())).statusCode).toBe(201);
    expect(harness.projects.list(org)).toHaveLength(1);
  });

  // Shows: docs/applications.md#errors-project-creation: 503 | `ORGANIZATION_RUNTIME_UNAVAILABLE`: the
  it("answers 503 without a guarded namespace, and leaves nothing behind", async () => {
    const id = `bare-${++organizations}`;
    await insertOrganization(ledger, { id, name: id });
    const headers = harness.key(id, "* on organization:*");
    const missing = await post(headers, exampleBody());
    expect(missing.json()).toMatchObject({ code: "ORGANIZATION_RUNTIME_UNAVAILABLE" });
    expect(missing.statusCode).toBe(503);
    await admin.create(resources.namespaces, { metadata: { name: organizationNamespace(id) } });
    expect((await post(headers, exampleBody())).statusCode).toBe(503);
    expect(await secretsOf(id)).toEqual([]);
  });

  // Shows: docs/applications.md#errors-project-creation: 402 | `ORGANIZATION_BLOCKED`: pending payment
  it("answers 402 to a blocked organization immediately", async () => {
    const { id, headers } = await organization();
    await setOrganizationBlocked(ledger, id, true);
    const refused = await post(headers, exampleBody());
    expect(refused.json()).toMatchObject({ code: "ORGANIZATION_BLOCKED" });
    expect(refused.statusCode).toBe(402);
  });

  // Shows: docs/applications.md#create: `template_id`, `template_revision`: fields of the body override
  it("creates what a template and the request say together", async () => {
    const { id: org, headers } = await organization();
    const template = { template_id: "hello", template_revision: 1 };
    const body = { ...template, name: "from-template", plan: "basic", config: { port: 8080 } };
    const created = await post(headers, body);
    expect(created.statusCode).toBe(201);
    const { spec } = await liveProject(org, created.json().data.project_id);
    expect(spec).toMatchObject({
      name: "from-template",
      plan: "basic",
      port: 8080,
      image: { url: "docker.io/traefik/whoami:v1.11", isPublic: true },
    });
  });

  // Shows: docs/applications.md#errors-project-creation: 503 | `SCHEDULED_JOBS_UNAVAILABLE`: jobs are
  it("answers SCHEDULED_JOBS_UNAVAILABLE to a job while the platform has none", async () => {
    const { headers } = await organization();
    const body = { template_id: "nightly-task", template_revision: 1, name: "nightly" };
    const { current } = harness.services.catalog;
    Object.assign(harness.services, { catalog: { current: { ...current, jobsEnabled: false } } });
    const response = await post(headers, body);
    Object.assign(harness.services, { catalog: { current } });
    expect(response.json()).toMatchObject({ code: "SCHEDULED_JOBS_UNAVAILABLE" });
    expect(response.statusCode).toBe(503);
  });
});

describe("DELETE /v1/project/:id", () => {
  // Shows: docs/applications.md#endpoints: `DELETE /v1/project/:id` | 200, `message` alone
  // Shows: docs/applications.md#delete: 200 means that name and domains are free
  // Shows: docs/applications.md#errors-project-deletion: 409 | `PROJECT_ALREADY_DELETED`
  it("frees name and domain, then reads answer 404 and a repeat 409", async () => {
    const { headers } = await organization();
    const { project_id: id } = (await post(headers, exampleBody())).json().data;
    const deleted = await on("DELETE", id, headers);
    expect(deleted.json()).toEqual({ status: "success", message: expect.any(String) });
    expect(deleted.statusCode).toBe(200);
    const claims = await admin.listAll(domainClaimResource, {
      labelSelector: `slipway.dev/project=${id}`,
    });
    expect(claims).toEqual([]);
    expect((await on("GET", id, headers)).statusCode).toBe(404);
    const again = await on("DELETE", id, headers);
    expect(again.json()).toMatchObject({ code: "PROJECT_ALREADY_DELETED" });
    expect(again.statusCode).toBe(409);
  });

  // Shows: docs/applications.md#delete: it waits for the operator, and nothing of the project is left
  // Shows: docs/applications.md#errors-project-deletion: 409 | `PROJECT_ALREADY_DELETED`
  it("waits for the operator's finalizer, and answers 409 meanwhile to a second one", async () => {
    const { id: org, headers } = await organization();
    const { project_id: id } = (await post(headers, exampleBody())).json().data;
    const ref = { namespace: organizationNamespace(org), name: id };
    const finalizers = (value: string[]) =>
      admin.patch(projectResource, ref, { metadata: { finalizers: value } });
    await finalizers(["slipway.dev/project"]);
    const deletion = on("DELETE", id, headers);
    let answered = false;
    void deletion.then(() => {
      answered = true;
    });
    await expect.poll(async () => (await liveProject(org, id)).metadata.deletionTimestamp).toBeDefined();
    await expect
      .poll(async () => (await on("DELETE", id, headers)).json().code)
      .toBe("PROJECT_ALREADY_DELETED");
    expect(answered).toBe(false);
    await finalizers([]);
    expect((await deletion).statusCode).toBe(200);
  });

  // Shows: docs/applications.md#conventions: a foreign project looks exactly like a missing one, on
  // Shows: docs/applications.md#errors-project-deletion: 404 | `PROJECT_NOT_FOUND`: not in the
  it("answers 404 for what does not exist, and for another organization's", async () => {
    const { headers } = await organization();
    const stranger = await organization();
    const { project_id: id } = (await post(headers, exampleBody())).json().data;
    expect((await on("DELETE", id, stranger.headers)).json()).toMatchObject({ code: "PROJECT_NOT_FOUND" });
    expect((await on("DELETE", "pnever", headers)).json()).toMatchObject({ code: "PROJECT_NOT_FOUND" });
    expect((await on("GET", id, headers)).statusCode).toBe(200);
  });
});
