import { KubeClient, KubeError, resources } from "@slipway/controller-runtime";
import { organizationNamespace } from "@slipway/crds";
import { insertOrganization, setOrganizationBlocked } from "@slipway/ledger";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { databaseSpec } from "../../test/kit/api-server/databases.ts";
import { exampleBody, ZONE } from "../../test/kit/api-server/harness.ts";
import { type RealHarness, startRealHarness } from "../../test/kit/api-server/real-harness.ts";
import { bindInOrganization } from "../../test/kit/api-server/roles.ts";
import { statusAndCode } from "../../test/kit/api-server/status-and-code.ts";
import { readClaim } from "./projects/claims.ts";
import { RELEASE_LIMIT_MS } from "./projects/lifecycle.ts";
import { type Supports, supports } from "./projects/supported-types.ts";
import { domainClaimResource, projectResource } from "./resources.ts";
import { routes } from "./routes.ts";

/** What creation and deletion refuse, and in which order, over a real apiserver and a real PostgreSQL. */

let harness: RealHarness;
beforeAll(async () => {
  harness = await startRealHarness();
});
afterAll(() => harness?.close());

type Headers = Record<string, string>;
const post = (headers: Headers, payload: object, key?: string) =>
  harness.app.inject({
    method: "POST",
    url: "/v1/project",
    headers: { ...headers, ...(key === undefined ? {} : { "idempotency-key": key }) },
    payload,
  });
const on = (method: "GET" | "PATCH" | "DELETE", path: string, headers: Headers, payload?: object) =>
  harness.app.inject({ method, url: `/v1/project/${path}`, headers, ...(payload ? { payload } : {}) });
const basic = (config: Record<string, unknown> = {}) => exampleBody({ plan: "basic" }, config);
const create = async (headers: Headers, body: object = basic()): Promise<string> => {
  const created = await post(headers, body);
  expect(created.json()).toMatchObject({ status: "success" });
  return created.json().data.project_id;
};

describe("an id with a NUL, which PostgreSQL takes in no text", () => {
  const withIds = routes.filter(({ path, undocumented }) => path.includes("/:") && !undocumented);
  const cases = withIds.flatMap((route) =>
    [...route.path.matchAll(/:\w+/g)].map(([name]) => [route.method, route.path, name] as const),
  );
  // Shows: docs/applications.md#read: 404 for a project that does not exist
  it.each(cases)("is answered as any unknown one: %s %s, in %s", async (method, path, name) => {
    const { id: organizationId } = await harness.organization();
    const owner = await harness.owner(organizationId);
    await harness.project(organizationId, "pthere");
    const answerTo = async (unknown: string) => {
      const url = path.replace(name, unknown).replace(":id", "pthere").replace(/:\w+/g, "unknown");
      const response = await harness.app.inject({ method, url, headers: owner, ...bodyFor(method) });
      return [response.statusCode, response.json().code];
    };
    const answer = await answerTo("a%00b");
    expect(answer).toEqual(await answerTo("a%EF%BF%BDb"));
    expect(answer[0]).toBeLessThan(500);
    if (name === ":id") {
      expect(answer).toEqual(await answerTo("unknown"));
    }
  });
  const bodyFor = (method: string) => (method === "GET" || method === "DELETE" ? {} : { payload: {} });
});

describe("a creation that is wrong in every way", () => {
  // Shows: docs/applications.md#conventions: order of refusal: 401, 429, 403, 404, 400, what the plan
  // Shows: docs/applications.md#errors-project-creation: 402 | `ORGANIZATION_BLOCKED`: pending payment
  // Shows: docs/applications.md#administration: `admin organization block`, `admin organization unblock`
  it("is answered one kind of mistake after the other: 401, 403, 400, 403, 402, 409, 503", async () => {
    const organizationId = "wrong-in-every-way";
    await insertOrganization(harness.ledger, { id: organizationId, name: organizationId });
    await setOrganizationBlocked(harness.ledger, organizationId, true);
    const every = harness.key(organizationId, "* on organization:*");
    const databases = harness.key(organizationId, "database.create on organization:*");
    const body = exampleBody({ name: "x" }, { subdomain: "api", healthcheck: { enabled: true, path: "/" } });

    expect(statusAndCode(await post({}, body))).toEqual([401, "CREDENTIAL_MISSING"]);
    expect(statusAndCode(await post(databases, body))).toEqual([403, "PERMISSION_DENIED"]);
    expect(statusAndCode(await post(every, body))).toEqual([400, "VALIDATION_FAILED"]);
    body.name = "right-name";
    expect(statusAndCode(await post(every, body))).toEqual([403, "HEALTHCHECK_NOT_AVAILABLE_FOR_PLAN"]);
    body.plan = "basic";
    expect(statusAndCode(await post(every, body))).toEqual([402, "ORGANIZATION_BLOCKED"]);
    await setOrganizationBlocked(harness.ledger, organizationId, false);
    expect(statusAndCode(await post(every, body))).toEqual([409, "DOMAIN_UNAVAILABLE"]);
    const config = { ...body.config, subdomain: "not-the-platforms" };
    expect(statusAndCode(await post(every, { ...body, config }))).toEqual([
      503,
      "ORGANIZATION_RUNTIME_UNAVAILABLE",
    ]);
    // And nothing of all that is left.
    expect(await readClaim(harness.admin, `not-the-platforms.${ZONE}`)).toBeUndefined();
  });
});

describe("an organization whose namespace was just created", () => {
  // Shows: docs/applications.md#errors-project-creation: 503 | `ORGANIZATION_RUNTIME_UNAVAILABLE`: the
  it("is 503 without the API server's rights there, and served once they are observed", async () => {
    const organizationId = "not-bound-yet";
    await insertOrganization(harness.ledger, { id: organizationId, name: organizationId });
    await harness.namespace(organizationId);
    const headers = harness.key(organizationId, "* on organization:*");
    const refused = await post(headers, basic());
    expect([...statusAndCode(refused), refused.headers["retry-after"]]).toEqual([
      503,
      "ORGANIZATION_RUNTIME_UNAVAILABLE",
      "5",
    ]);
    expect(harness.logged()).toContain("rights over a namespace are missing");
    onTestFinished(() => void vi.restoreAllMocks());
    const writes = vi.spyOn(KubeClient.prototype, "create");
    const created = post(headers, basic()).then(({ statusCode }) => statusCode);
    await expect.poll(() => writes.mock.calls.length).toBeGreaterThan(0);
    await bindInOrganization(harness.admin, organizationId);
    expect(await created).toBe(201);
  });
});

describe("what this platform cannot run yet", () => {
  const open = { ingress_white_list: [{ cidr: "0.0.0.0/0", description: "all" }] };
  const common = { name: "not-yet", payment_mode: "hourly" };
  const database = (type_project: string, version: string, instances: number) => ({
    type_project,
    version,
    instances,
    storage: { persistent: true, capacity: 1 },
    envs: [],
    network_access: open,
  });
  const cases: [string, object, Record<string, unknown>][] = [
    [
      "postgresql",
      { ...common, plan: "db-basic", config: database("postgresql", "17", 1) },
      { version: "14" },
    ],
    ["mariadb", { ...common, plan: "db-basic", config: database("mariadb", "11", 3) }, { instances: 1 }],
    [
      "clickhouse",
      { ...common, plan: "analytics-basic", config: database("clickhouse", "26.8.6.5", 1) },
      { port: 8123 },
    ],
    [
      "valkey",
      {
        ...common,
        plan: "cache-free",
        config: { type_project: "valkey", profile: "cache", version: "9.1.1" },
      },
      { storage: { persistent: true, capacity: 1 } },
    ],
  ];

  const switchTo = (supports: Supports) => void Object.assign(harness.services, { supports });
  beforeAll(() => switchTo(supports(["http", "job"], () => ({}))));
  afterAll(() => switchTo(() => true));

  // Shows: docs/applications.md#create: the other types: validated in full, then 503 where the platform
  // Shows: docs/applications.md#errors-project-creation: 400 | unsupported version (databases)
  // Shows: docs/applications.md#errors-project-creation: 503 | `PROJECT_TYPE_UNAVAILABLE`
  it.each(cases)("a %s is checked in full, then refused, and frees its key", async (type, body, broken) => {
    const { headers } = await harness.organization();
    const key = `key-of-a-${type}-0123456789`;
    const { config } = body as { config: object };
    const wrong = await post(headers, { ...body, config: { ...config, ...broken } }, key);
    expect(statusAndCode(wrong)).toEqual([400, "VALIDATION_FAILED"]);
    expect(statusAndCode(await post(headers, body, key))).toEqual([503, "PROJECT_TYPE_UNAVAILABLE"]);
    expect((await post(headers, basic(), key)).statusCode).toBe(201);
  });

  // Shows: docs/applications.md#create: from a Git repository: validated in full, then 503 where the
  // Shows: docs/applications.md#errors-project-creation: 503 | `PROJECT_FEATURE_UNAVAILABLE`: from a Git
  it("an application from a Git repository, too", async () => {
    const { headers } = await harness.organization();
    const source = { connection_id: "c1", repository_id: "r1", branch: "main", auto_deploy: false };
    const { image: _, ...config } = basic().config;
    const from = (more: object) => ({ ...basic(), config: { ...config, source, ...more } });
    expect(statusAndCode(await post(headers, from({})))).toEqual([400, "VALIDATION_FAILED"]);
    const { builds } = harness.services;
    Object.assign(harness.services, { builds: { ...builds, isOffered: () => false } });
    const built = await post(headers, from({ build: { runtime: "node", version: "24" } }));
    Object.assign(harness.services, { builds });
    expect(statusAndCode(built)).toEqual([503, "PROJECT_FEATURE_UNAVAILABLE"]);
  });
});

describe("an Idempotency-Key", () => {
  const key = "the-same-key-0123456789";

  // Shows: docs/applications.md#create: `Idempotency-Key`: the same request again answers the same
  it("answers the same project again, whatever the order of the body's members, also after the last of the quota", async () => {
    const { headers } = await harness.organization();
    const body = exampleBody({}, { instances: 2 });
    const first = await post(headers, body, key);
    expect(first.statusCode).toBe(201);
    const turned = Object.fromEntries(Object.entries(body).reverse());
    const again = await post(headers, turned, key);
    expect([again.statusCode, again.json()]).toEqual([201, first.json()]);
    // Without the key, or with another one, it would be a second project.
    expect(statusAndCode(await post(headers, body))).toEqual([409, "FREE_PLAN_INSTANCE_LIMIT_REACHED"]);
    expect(statusAndCode(await post(headers, body, `${key}-2`))).toEqual([
      409,
      "FREE_PLAN_INSTANCE_LIMIT_REACHED",
    ]);
  });

  // Shows: docs/applications.md#create: `Idempotency-Key`: another body is 409; each organization has
  it("is each organization's own, and free in the others", async () => {
    const [one, other] = [await harness.organization(), await harness.organization()];
    const ids = [
      (await post(one.headers, basic(), key)).json().data.project_id,
      (await post(other.headers, exampleBody({ plan: "basic", name: "another" }), key)).json().data
        .project_id,
    ];
    expect(new Set(ids).size).toBe(2);
  });

  // Shows: docs/applications.md#create: `Idempotency-Key`: refers to its project also after that is
  it("is of a project that is deleted: it creates no second one", async () => {
    const { headers } = await harness.organization();
    const { project_id: id } = (await post(headers, basic(), key)).json().data;
    expect((await on("DELETE", id, headers)).statusCode).toBe(200);
    expect(statusAndCode(await post(headers, basic(), key))).toEqual([409, "PROJECT_ALREADY_DELETED"]);
  });
});

describe("a deletion", () => {
  // Shows: docs/applications.md#delete: a request after 503 continues the deletion
  // Shows: docs/applications.md#errors-project-deletion: 503 | `DOMAIN_RELEASE_PENDING`: the domain
  it("is 503 while the domain cannot be released, and a retry releases it", async () => {
    const { headers } = await harness.organization();
    const hostname = `kept-for-now.${ZONE}`;
    const id = await create(headers, basic({ subdomain: "kept-for-now" }));
    const real = harness.kube.listAll.bind(harness.kube);
    const list = vi.spyOn(harness.kube, "listAll").mockImplementation((resource, ...rest) => {
      if (resource !== domainClaimResource) {
        return real(resource, ...rest);
      }
      return Promise.reject(new KubeError({ status: 500, reason: "InternalError", message: "away" }));
    });
    const answer = await on("DELETE", id, headers);
    list.mockRestore();
    expect(statusAndCode(answer)).toEqual([503, "DOMAIN_RELEASE_PENDING"]);
    expect(answer.headers["retry-after"]).toBe("5");
    expect((await on("GET", id, headers)).statusCode).toBe(404);
    expect(statusAndCode(await on("DELETE", id, headers))).toEqual([409, "PROJECT_ALREADY_DELETED"]);
    expect(await readClaim(harness.admin, hostname)).toBeUndefined();
    await create(headers, basic({ subdomain: "kept-for-now" }));
  });

  // Shows: docs/applications.md#errors-project-deletion: 503 | `DOMAIN_RELEASE_PENDING`: the domain
  // Shows: docs/applications.md#errors-project-deletion: 503 | `PROJECT_DELETION_PENDING`: a project
  it.each([
    ["public application", {}, "DOMAIN_RELEASE_PENDING"],
    ["private application", { exposure: "private" }, "PROJECT_DELETION_PENDING"],
    ["database", databaseSpec("postgresql"), "PROJECT_DELETION_PENDING"],
  ] as const)("that takes too long is 503 of a %s, and is continued by a retry", async (_of, spec, code) => {
    const { id: organizationId, headers } = await harness.organization();
    const { metadata } = await harness.project(organizationId, "pslow", spec);
    const ref = { namespace: metadata.namespace, name: metadata.name };
    const finalizers = (names: string[]) =>
      harness.admin.patch(projectResource, ref, { metadata: { finalizers: names } });
    await finalizers(["slipway.dev/project"]);
    const { projects } = harness.services;
    const real = projects.waitForDeletion.bind(projects);
    onTestFinished(() => void vi.restoreAllMocks());
    // The clock is advanced: an answer's timeout expires immediately.
    const waiting = vi.spyOn(projects, "waitForDeletion").mockImplementation((project) => real(project, 0));
    const late = await on("DELETE", "pslow", headers);
    expect([...statusAndCode(late), late.headers["retry-after"]]).toEqual([503, code, "5"]);
    expect(statusAndCode(await on("DELETE", "pslow", headers))).toEqual([409, "PROJECT_ALREADY_DELETED"]);
    waiting.mockReset().mockImplementation(real);
    const after = new Date(Date.now() + RELEASE_LIMIT_MS + 1_000);
    vi.spyOn(harness.services, "now").mockReturnValue(after);
    const taken = on("DELETE", "pslow", headers).then(({ statusCode }) => statusCode);
    await expect.poll(() => waiting.mock.calls.length).toBe(1);
    await finalizers([]);
    expect(await taken).toBe(200);
  });

  // Shows: docs/applications.md#delete: reads answer 404 afterwards, and so does every other operation
  it("leaves nothing that could be changed: every operation answers 404 afterwards", async () => {
    const { id: organizationId, headers } = await harness.organization();
    const id = await create(headers, basic({ envs: [{ name: "A", value: "1" }] }));
    expect((await on("DELETE", id, headers)).statusCode).toBe(200);
    const bodies: Record<string, object> = {
      name: { name: "renamed" },
      description: { description: "Sells" },
      domain: { domain: "my-shop" },
      "custom-domains": { custom_domains: [] },
      exposure: { exposure: "private" },
      envs: { envs: [] },
      image: { image: "registry.example.com/shop:2" },
      plan: { plan: "premium" },
    };
    for (const [operation, body] of Object.entries(bodies)) {
      const response = await on("PATCH", `${id}/${operation}`, headers, body);
      expect([operation, ...statusAndCode(response)]).toEqual([operation, 404, "PROJECT_NOT_FOUND"]);
    }
    for (const operation of ["envs", "logs", "historic/deployments"]) {
      const response = await on("GET", `${id}/${operation}`, headers);
      expect([operation, ...statusAndCode(response)]).toEqual([operation, 404, "PROJECT_NOT_FOUND"]);
    }
    const list = await harness.app.inject({ url: "/v1/project", headers });
    expect(list.json().data.pagination.total).toBe(0);
    const namespace = organizationNamespace(organizationId);
    const claims = await harness.admin.listAll(domainClaimResource);
    expect(claims.filter(({ metadata }) => metadata?.labels?.["slipway.dev/project"] === id)).toEqual([]);
    // Secrets go with the project that owns them: the garbage collector's, which is not running here.
    const secrets = await harness.admin.listAll(resources.secrets, { namespace });
    expect(secrets.every(({ metadata }) => metadata?.ownerReferences?.length === 1)).toBe(true);
  });
});
