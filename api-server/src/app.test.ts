import { fastify } from "fastify";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FakeHarness, startFakeHarness } from "../../test/kit/api-server/harness.ts";
import { bodyBudgets } from "./http/body-budget.ts";
import { registerRoute } from "./http/register.ts";
import type { AnyRoute } from "./http/route.ts";
import { policies } from "./policy/table.ts";
import { routes } from "./routes.ts";

let harness: FakeHarness;
beforeAll(async () => {
  harness = await startFakeHarness();
});
afterAll(() => harness.close());

const get = (url: string, headers: Record<string, string> = {}) =>
  harness.app.inject({ method: "GET", url, headers });
const failure = (status: number, code: string) => ({ statusCode: status, code });
const outcome = (response: { statusCode: number; json: () => { code?: string } }) => ({
  statusCode: response.statusCode,
  code: response.json().code,
});

describe("the policy table", () => {
  it("has a line for every route, and a route for every line", () => {
    expect(routes.map((route) => route.operationId).sort()).toEqual(Object.keys(policies).sort());
  });

  // Shows: docs/applications.md#authentication: the API server does not start with a route that has no
  it("stops the start for a route without a line", () => {
    const stray = { ...routes[0], operationId: "stray" } as unknown as AnyRoute;
    expect(() => registerRoute(fastify(), stray, harness.services, bodyBudgets())).toThrow(/no policy/);
  });

  // Shows: docs/applications.md#authentication: the API server does not start with a route that has no
  it("stops the start for a route that was added past it", async () => {
    const late = await startFakeHarness();
    expect(() => late.app.get("/v1/stray", () => "")).toThrow();
    await late.close();
  });
});

describe("GET /v1/project/:id", () => {
  // Shows: docs/applications.md#endpoints: `GET /v1/project/:id` | the single project
  it("answers the project to a key that may read it", async () => {
    await harness.project("read-a", "p1", { description: "The shop" });
    const response = await get("/v1/project/p1", harness.key("read-a", "project.read on project:p1"));
    expect(response.statusCode).toBe(200);
    expect(response.headers["content-type"]).toBe("application/json; charset=utf-8");
    expect(response.json()).toMatchObject({
      status: "success",
      data: {
        id: "p1",
        name: "shop-front",
        description: "The shop",
        plan: "free",
        status: "creating",
        type_project: "http",
        exposure: "public",
        instances: 1,
        storage: { persistent: false, capacity: 1 },
        payment_mode: "hourly",
        port: 8080,
        network_access: { ingress_white_list: [{ cidr: "0.0.0.0/0" }], ingress_black_list: [] },
      },
    });
    expect(response.json().data.domain).toMatch(/^shop-front-[0-9a-f]{8}\.apps\.localhost$/);
  });

  // Shows: docs/applications.md#read: 404 for a project that does not exist
  // Shows: docs/applications.md#errors-every-operation: 404 | `PROJECT_NOT_FOUND`
  it("shows a foreign project as missing, exactly as one that is not there", async () => {
    await harness.project("read-b", "pforeign");
    const headers = harness.key("read-a", "project.read on project:*");
    const foreign = await get("/v1/project/pforeign", headers);
    const missing = await get("/v1/project/pmissing", headers);
    expect(outcome(foreign)).toEqual(failure(404, "PROJECT_NOT_FOUND"));
    expect(foreign.body).toBe(missing.body);
  });

  it("refuses a key without the grant before it reads whether the project exists", async () => {
    const headers = harness.key("read-a", "project.read on project:other");
    expect(outcome(await get("/v1/project/p1", headers))).toEqual(failure(403, "PERMISSION_DENIED"));
    expect(outcome(await get("/v1/project/pmissing", headers))).toEqual(failure(403, "PERMISSION_DENIED"));
  });

  // Shows: docs/applications.md#read: includes what another replica has just created
  it("finds a project that another replica created before the watch has received it", async () => {
    harness.apiserver.stalled = true;
    try {
      await harness.put("read-late", "plate");
      const response = await get("/v1/project/plate", await harness.owner("read-late"));
      expect(response.statusCode).toBe(200);
    } finally {
      harness.apiserver.stalled = false;
      harness.apiserver.cutWatches();
    }
  });

  // Shows: docs/applications.md#create: `x-api-key`, or `Authorization: Bearer` with an API key or a
  it("answers an owner, who has full access", async () => {
    await harness.project("read-c", "pc");
    expect((await get("/v1/project/pc", await harness.owner("read-c"))).statusCode).toBe(200);
  });

  // Shows: docs/applications.md#read: from the replica's cache: no request to the cluster
  it("sends no request to the cluster for what is in memory", async () => {
    await harness.project("read-d", "pd");
    const headers = harness.key("read-d", "project.read on project:*");
    await get("/v1/project/pd", headers);
    const before = harness.apiserver.requests.length;
    for (let index = 0; index < 20; index += 1) {
      await get("/v1/project/pd", headers);
    }
    expect(harness.apiserver.requests.length).toBe(before);
  });
});

describe("GET /v1/project", () => {
  // Shows: docs/applications.md#list: only projects that the credential can read; no scope of its own
  // Shows: docs/applications.md#authentication: 7. listing needs no scope
  it("lists only what the credential can read", async () => {
    await harness.project("list-a", "pone");
    await harness.project("list-a", "ptwo");
    await harness.project("list-b", "pthree");
    const ids = async (headers: Record<string, string>) => {
      const { data } = (await get("/v1/project", headers)).json();
      return data.projects.map((project: { id: string }) => project.id).sort();
    };
    expect(await ids(await harness.owner("list-a"))).toEqual(["pone", "ptwo"]);
    expect(await ids(harness.key("list-a", "project.read on project:ptwo"))).toEqual(["ptwo"]);
    expect(await ids(harness.key("list-a"))).toEqual([]);
  });

  // Shows: docs/applications.md#list: `type`, `status`
  it("names all broken rules of the query in one answer", async () => {
    const response = await get(
      "/v1/project?page=0&limit=51&type=mysql&sort_by=name&status=done&nonsense=1&search=",
      await harness.owner("list-a"),
    );
    expect(outcome(response)).toEqual(failure(400, "VALIDATION_FAILED"));
    const fields = response.json().errors.map((error: { field: string }) => error.field);
    expect(fields.sort()).toEqual(["limit", "nonsense", "page", "search", "sort_by", "status", "type"]);
  });

  // Shows: docs/applications.md#list: `profile` with `type=valkey` alone, else 400
  // Shows: docs/applications.md#errors-other-operations: list | 400 `profile` unknown, or without
  it.each(["?profile=cache", "?profile=cache&type=http", "?profile=nonsense&type=valkey"])(
    "refuses %s",
    async (query) => {
      const response = await get(`/v1/project${query}`, await harness.owner("list-a"));
      expect(response.statusCode).toBe(400);
      expect(response.json().errors).toEqual([expect.objectContaining({ field: "profile" })]);
    },
  );
});

describe("refusals", () => {
  // Shows: docs/applications.md#errors-every-operation: 400 | `MALFORMED_REQUEST`: invalid paths, and
  it.each([
    ["GET", "/v1/nothing", 404, "ROUTE_NOT_FOUND"],
    ["GET", "/v1/project", 401, "CREDENTIAL_MISSING"],
    ["GET", "/v1/project/%E0%A4%A", 400, "MALFORMED_REQUEST"],
    ["DELETE", "/v1/project/p1", 401, "CREDENTIAL_MISSING"],
  ] as const)("%s %s answers %i %s in the envelope", async (method, url, status, code) => {
    const response = await harness.app.inject({ method, url });
    expect(response.json()).toMatchObject({ status: "failed", code, message: expect.any(String) });
    expect(response.statusCode).toBe(status);
  });

  // Shows: docs/applications.md#conventions: order of refusal: 401, 429, 403, 404, 400, what the plan
  it("come in order: rate before permission", async () => {
    const strict = await startFakeHarness({ rateLimitScale: 0.001 });
    const headers = strict.key("acme");
    const answers = [];
    for (let index = 0; index < 2; index += 1) {
      answers.push(await strict.app.inject({ method: "DELETE", url: "/v1/project/p1", headers }));
    }
    await strict.close();
    expect(answers.map((response) => response.statusCode)).toEqual([403, 429]);
    expect(answers[1]?.headers["retry-after"]).toMatch(/^\d+$/);
    expect(answers[1]?.headers.ratelimit).toMatch(/^"default";r=0;t=\d+$/);
  });

  // Shows: docs/applications.md#errors-every-operation: 503 | `LEDGER_UNAVAILABLE`
  it("of a ledger that is unavailable are 503, while reads continue", async () => {
    await harness.project("away", "paway");
    const headers = await harness.owner("away");
    expect((await get("/v1/project/paway", headers)).statusCode).toBe(200);
    const response = await harness.app.inject({ method: "DELETE", url: "/v1/project/paway", headers });
    expect(outcome(response)).toEqual(failure(503, "LEDGER_UNAVAILABLE"));
    expect((await get("/v1/project/paway", headers)).statusCode).toBe(200);
  });
});

describe("catalogs", () => {
  // Shows: docs/applications.md#endpoints: `GET /v1/project/plans` | the HTTP plans
  // Shows: docs/applications.md#endpoints: `GET /v1/project/job/plans` | the job plans
  // Shows: docs/applications.md#endpoints: `GET /v1/project/storage/plans` | the storage plans
  // Shows: docs/applications.md#endpoints: `GET /v1/project/database/plans` | the database plans
  // Shows: docs/applications.md#endpoints: `GET /v1/project/database/catalog` | the engines
  it.each([
    "/v1/project/plans",
    "/v1/project/job/plans",
    "/v1/project/storage/plans",
    "/v1/project/database/plans",
    "/v1/project/database/catalog",
  ])("%s needs no credential", async (url) => {
    const response = await get(url);
    expect(response.statusCode).toBe(200);
    expect(response.json().data.length).toBeGreaterThan(0);
  });

  // Shows: docs/applications.md#catalogs: HTTP plans by hourly price; free ones at 0; `logs` always
  it("lists HTTP plans by hourly price, free ones first", async () => {
    const { data } = (await get("/v1/project/plans")).json();
    const prices = data.map((plan: { prices: { hourly: number } }) => plan.prices.hourly);
    expect(prices).toEqual([...prices].sort((a: number, b: number) => a - b));
    expect(prices[0]).toBe(0);
    expect(data[0].capabilities.logs).toBe(true);
  });

  // Shows: docs/applications.md#catalogs: disabled by configuration: `SCHEDULED_JOBS_UNAVAILABLE`
  // Shows: docs/applications.md#errors-other-operations: job plans | 503 `SCHEDULED_JOBS_UNAVAILABLE`
  // Shows: docs/applications.md#errors-other-operations: database plans and catalog | 503
  it("answer 503 with their codes when switched off", async () => {
    const current = harness.services.catalog.current;
    const off = { ...current, jobsEnabled: false, databasesEnabled: false };
    Object.assign(harness.services, { catalog: { current: off } });
    const codes = [];
    for (const url of ["job/plans", "database/plans", "database/catalog"]) {
      codes.push(outcome(await get(`/v1/project/${url}`)));
    }
    Object.assign(harness.services, { catalog: { current } });
    expect(codes).toEqual([
      failure(503, "SCHEDULED_JOBS_UNAVAILABLE"),
      failure(503, "CATALOG_UNAVAILABLE"),
      failure(503, "CATALOG_UNAVAILABLE"),
    ]);
  });
});
