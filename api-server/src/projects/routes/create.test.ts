import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { exampleBody, type FakeHarness, startFakeHarness } from "../../../../test/kit/api-server/harness.ts";

/** What a creation refuses before it queries ledger or cluster. */

let harness: FakeHarness;
let headers: Record<string, string>;

beforeAll(async () => {
  harness = await startFakeHarness();
  headers = harness.key("acme", "* on organization:*", "* on project:*");
});
afterAll(() => harness.close());

const send = (payload: unknown, more: Record<string, string> = {}) =>
  harness.app.inject({
    method: "POST",
    url: "/v1/project",
    headers: { "content-type": "application/json", ...headers, ...more },
    payload: payload as string | object,
  });
const fieldsOf = (response: { json: () => { errors?: { field: string }[] } }) =>
  (response.json().errors ?? []).map((error) => error.field).sort();

describe("bytes that are no body", () => {
  const withProto = JSON.stringify(exampleBody()).replace("{", '{"__proto__":{"admin":true},');
  const withConstructor = '{"constructor":{"prototype":{"admin":true}}}';
  it.each([
    ["broken JSON", '{"name":', 400, "MALFORMED_BODY"],
    ["__proto__", withProto, 400, "MALFORMED_BODY"],
    ["constructor.prototype", withConstructor, 400, "MALFORMED_BODY"],
    // Shows: docs/applications.md#errors-every-operation: 400 | `MALFORMED_BODY`: broken JSON, bytes that
    ["bytes that are no UTF-8", Buffer.from([0x7b, 0xff, 0xfe, 0x7d]), 400, "MALFORMED_BODY"],
    ["nothing", "", 400, "VALIDATION_FAILED"],
    ["null", "null", 400, "VALIDATION_FAILED"],
    ["a list", "[]", 400, "VALIDATION_FAILED"],
    ["deep nesting", `${"[".repeat(100_000)}${"]".repeat(100_000)}`, 400, "MALFORMED_BODY"],
    ["a body over the limit", `"${"x".repeat(13 * 1024 * 1024)}"`, 413, "BODY_TOO_LARGE"],
  ])("%s", async (_name, payload, status, code) => {
    const response = await send(payload);
    expect(response.json()).toMatchObject({ status: "failed", code });
    expect(response.statusCode).toBe(status);
    expect((await harness.app.inject("/v1/project/plans")).statusCode).toBe(200);
  });

  // Shows: docs/applications.md#errors-every-operation: 415 | `MEDIA_TYPE_UNSUPPORTED`
  it.each(["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])(
    "%s is not taken",
    async (type) => {
      const response = await send("a=b", { "content-type": type });
      expect(response.json()).toMatchObject({ status: "failed", code: "MEDIA_TYPE_UNSUPPORTED" });
      expect(response.statusCode).toBe(415);
    },
  );
});

describe("a body that breaks rules", () => {
  // Shows: docs/applications.md#conventions: numbers are JSON numbers: a string is 400
  // Shows: docs/applications.md#conventions: fields of another type of project are 400
  // Shows: docs/applications.md#errors-project-creation: 400 | invalid body
  // Shows: docs/applications.md#errors-project-creation: 400 | fields not belonging to the type
  // Shows: docs/applications.md#errors-every-operation: 400 | `VALIDATION_FAILED`, with `errors`: the
  it("is answered with every broken rule together, each naming its field", async () => {
    const body = exampleBody(
      { name: "A", plan: "golden", surprise: 1 },
      { port: "8080", instances: 0, version: "17", envs: [{ name: "A B", value: "" }] },
    );
    const response = await send(body);
    expect(response.statusCode).toBe(400);
    expect(fieldsOf(response)).toEqual(
      expect.arrayContaining([
        "config.envs[0].name",
        "config.envs[0].value",
        "config.instances",
        "config.port",
        "config.version",
        "name",
        "plan",
        "surprise",
      ]),
    );
  });

  // Shows: docs/applications.md#create: `plan`: known, and for the type
  // Shows: docs/applications.md#create: `payment_mode`: `hourly`, `monthly`, `yearly`
  // Shows: docs/applications.md#errors-project-creation: 400 | unknown plan: `PLAN_UNKNOWN`
  // Shows: docs/applications.md#errors-project-creation: 400 | `IDEMPOTENCY_KEY_REQUIRED` for Valkey
  // Shows: docs/applications.md#errors-project-creation: 400 | `PAYMENT_MODE_INVALID`
  // Shows: docs/applications.md#errors-project-creation: 400 | `SCHEDULED_JOB_PAYMENT_MODE_INVALID`
  it.each([
    [exampleBody({ payment_mode: "per_minute" }), "PAYMENT_MODE_INVALID"],
    [exampleBody({ payment_mode: "weekly" }), "PAYMENT_MODE_INVALID"],
    [exampleBody({ payment_mode: undefined }), "VALIDATION_FAILED"],
    [exampleBody({ plan: "golden" }), "PLAN_UNKNOWN"],
    [
      {
        ...exampleBody({ plan: "job-basic", payment_mode: "hourly" }),
        config: {
          type_project: "job",
          image: { url: "registry.example.com/job:1", is_public: true },
          envs: [],
          job: { cron: "* * * * *" },
        },
      },
      "SCHEDULED_JOB_PAYMENT_MODE_INVALID",
    ],
    [
      {
        ...exampleBody({ plan: "cache-free" }),
        config: { type_project: "valkey", profile: "cache", version: "9.1.1" },
      },
      "IDEMPOTENCY_KEY_REQUIRED",
    ],
  ])("%# answers 400 with its code", async (body, code) => {
    const response = await send(body);
    expect(response.json()).toMatchObject({ status: "failed", code });
    expect(response.statusCode).toBe(400);
  });

  // Shows: docs/applications.md#create: `Idempotency-Key`: 16 to 200 letters, digits, `.`, `_`, `-`
  // Shows: docs/applications.md#limits: Idempotency-Key | 16 to 200 characters
  it.each(["short", "x".repeat(201), "with space in it!", "ünïcode-key-0123456789"])(
    "Idempotency-Key %s is refused",
    async (key) => {
      const response = await send(exampleBody(), { "idempotency-key": key });
      expect(response.statusCode).toBe(400);
      expect(fieldsOf(response)).toEqual(["Idempotency-Key"]);
    },
  );

  // Shows: docs/applications.md#create: `Idempotency-Key`: 16 to 200 letters, digits, `.`, `_`, `-`
  // Shows: docs/applications.md#limits: Idempotency-Key | 16 to 200 characters
  it.each(["k".repeat(16), "K".repeat(200), "Aa0.Bb_1-Cc2.Dd3"])(
    "Idempotency-Key %s is taken",
    async (key) => {
      // Nothing is wrong with the request; the test's ledger is away.
      const response = await send(exampleBody(), { "idempotency-key": key });
      expect(response.json()).toMatchObject({ code: "LEDGER_UNAVAILABLE" });
    },
  );

  // Shows: docs/applications.md#create: `config.instances`: at most as many as the plan allows
  it("requests more instances than a plan without free limits has", async () => {
    const response = await send(exampleBody({ plan: "basic" }, { instances: 4 }));
    expect(response.statusCode).toBe(400);
    expect(fieldsOf(response)).toEqual(["config.instances"]);
  });
});

describe("what the plan lacks", () => {
  const somewhere = { ingress_white_list: [{ cidr: "203.0.113.0/24", description: "office" }] };
  const everywhereBut = {
    ingress_white_list: [{ cidr: "0.0.0.0/0", description: "" }],
    ingress_black_list: [{ cidr: "203.0.113.0/24", description: "" }],
  };
  // Shows: docs/applications.md#create: `config.healthcheck`: on plans that have it, as a readiness
  // Shows: docs/applications.md#create: `config.autoscaling`: on plans that have it, `max_instances` at
  // Shows: docs/applications.md#errors-project-creation: 403 | `HEALTHCHECK_NOT_AVAILABLE_FOR_PLAN`
  // Shows: docs/applications.md#errors-project-creation: 403 | plan without autoscaling
  // Shows: docs/applications.md#errors-project-creation: 403 | `NETWORK_ACCESS_NOT_AVAILABLE_FOR_PLAN`
  // Shows: docs/applications.md#errors-project-creation: 403 | `CUSTOM_SUBDOMAIN_NOT_AVAILABLE_FOR_PLAN`
  it.each([
    [{ healthcheck: { enabled: true, path: "/healthz" } }, "HEALTHCHECK_NOT_AVAILABLE_FOR_PLAN"],
    [{ autoscaling: { enabled: true, max_instances: 2 } }, "AUTOSCALING_NOT_AVAILABLE_FOR_PLAN"],
    // Shows: docs/applications.md#errors-project-creation: 403 | `SLEEP_NOT_AVAILABLE_FOR_PLAN`
    [{ sleep_after_seconds: 600 }, "SLEEP_NOT_AVAILABLE_FOR_PLAN"],
    [{ network_access: somewhere }, "NETWORK_ACCESS_NOT_AVAILABLE_FOR_PLAN"],
    [{ network_access: everywhereBut }, "NETWORK_ACCESS_NOT_AVAILABLE_FOR_PLAN"],
    [{ subdomain: "my-shop" }, "CUSTOM_SUBDOMAIN_NOT_AVAILABLE_FOR_PLAN"],
  ])("%j answers 403 %s", async (config, code) => {
    const response = await send(exampleBody({}, config));
    expect(response.json()).toMatchObject({ status: "failed", code });
    expect(response.statusCode).toBe(403);
  });
});

describe("permission", () => {
  const types = {
    http: "project.create",
    worker: "project.create",
    job: "project.create",
    postgresql: "database.create",
    mariadb: "database.create",
    clickhouse: "database.create",
    valkey: "managed_service.create",
  };
  // Shows: docs/applications.md#authentication: 5. 403 `insufficient organization permission` for
  // Shows: docs/applications.md#authentication: create HTTP application, worker or job |
  // Shows: docs/applications.md#authentication: create postgresql, mariadb, clickhouse
  // Shows: docs/applications.md#authentication: create Valkey | `managed_service.create` on
  // Shows: docs/applications.md#errors-project-creation: 403 | insufficient scope for the type
  // Shows: docs/databases-api.md#rules-of-a-creation: `database.create`, of Valkey
  it.each(Object.entries(types))("to create %s is %s, and no other", async (type, permission) => {
    const body = { ...exampleBody(), config: { type_project: type } };
    const others = [...new Set(Object.values(types))].filter((other) => other !== permission);
    const without = harness.key("acme", ...others.map((other) => `${other} on organization:*`));
    const refused = await send(body, without);
    expect(refused.json()).toMatchObject({
      code: "PERMISSION_DENIED",
      message: "insufficient organization permission",
      required: [`${permission} on organization:*`],
    });
    expect(refused.statusCode).toBe(403);
    const admitted = await send(body, harness.key("acme", `${permission} on organization:*`));
    expect(admitted.json()).toMatchObject({ code: expect.not.stringMatching("PERMISSION_DENIED") });
  });

  it("to create nothing at all is refused before the body is validated", async () => {
    const response = await send("{broken", harness.key("acme", "project.read on project:*"));
    expect(response.json()).toMatchObject({ code: "PERMISSION_DENIED" });
  });
});

describe("the log", () => {
  // Shows: docs/applications.md#conventions: no secret in the log or in a project
  it("has no secret of a request, not even when it fails", async () => {
    const canary = "c4n4ry-0f-4-s3cr3t";
    const body = exampleBody(
      { plan: "basic" },
      {
        envs: [{ name: "TOKEN", value: canary }],
        image: {
          url: "registry.example.com/shop:1",
          is_public: false,
          authentication: { auth_type: "username_password", username: "u", token: canary },
        },
      },
    );
    const key = harness.key("acme", "* on organization:*")["x-api-key"] ?? "";
    const response = await send(body, { "x-api-key": key });
    expect(response.json()).toMatchObject({ code: "LEDGER_UNAVAILABLE" });
    await send(`{"token":"${canary}`, { "x-api-key": key });
    const logged = harness.logged();
    expect(logged).toContain("request failed");
    expect(logged).not.toContain(canary);
    expect(logged).not.toContain(key);
    expect(response.body).not.toContain(canary);
  });

  it("redacts what a field may carry", () => {
    const secret = "s3cr3t";
    harness.services.logger.error({
      token: secret,
      headers: { "x-api-key": secret, authorization: secret },
      body: { config: { envs: secret } },
      err: { response: { data: secret } },
    });
    expect(harness.logged()).not.toContain(secret);
  });
});
