import { organizationNamespace, type Project } from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { putConnection } from "../../../test/kit/api-server/git.ts";
import { type FakeHarness, startFakeHarness } from "../../../test/kit/api-server/harness.ts";
import { statusAndCode } from "../../../test/kit/api-server/status-and-code.ts";
import { eventually } from "../../../test/kit/processes/eventually.ts";
import type { AnyRoute } from "../http/route.ts";
import { routes } from "../routes.ts";
import { PERMISSIONS } from "./permissions.ts";
import { type Access, type Policy, policyOf } from "./table.ts";

/** What applies to every operation, by its line in the policy table: a new one is covered without being named. */

const ORGANIZATION = "rules";
const PROJECT = "prules";
const JOB = "pjob";
const CONNECTION = "grules";
interface Request {
  /** The project's id in the path. */
  id?: string;
  /** Begins with `?`. */
  query?: string;
  headers?: Record<string, string>;
  payload?: string | Buffer;
}
interface Case {
  route: AnyRoute;
  policy: Policy;
  name: string;
}

const cases: Case[] = routes.map((route) => ({
  route,
  policy: policyOf(route.operationId) as Policy,
  name: `${route.method} ${route.path}`,
}));
const having = <K extends Access["kind"]>(...kinds: K[]) =>
  cases.filter(({ policy }) => (kinds as string[]).includes(policy.access.kind));
const takesBody = ({ route: { method, body, documentedBody } }: Case) =>
  method !== "GET" && (body ?? documentedBody) !== undefined;
/** A list: one word of a command each. */
const isRepeated = (parameter: string) => parameter === "command";
/** Of clients. What servers send has forms of their own, and tests beside the routes. */
const ofClients = ({ policy }: Case) => !["signature", "connection"].includes(policy.access.kind);

/** What a job has, and what it has not of the harness's example. */
const jobOnly: Partial<Project["spec"]> = {
  plan: "job-basic",
  paymentMode: "per_minute",
  job: { cron: "0 3 * * *" },
  exposure: undefined,
  port: undefined,
  instances: undefined,
  networkAccess: undefined,
};

let harness: FakeHarness;
beforeAll(async () => {
  harness = await startFakeHarness();
  await harness.project(ORGANIZATION, PROJECT);
  await harness.project(ORGANIZATION, JOB, { ...jobOnly, type: "job" });
  await harness.project("elsewhere", "pforeign");
});
afterAll(() => harness.close());

/** Headers of a key that may everything. */
const everything = ["* on organization:*", "* on project:*", "project.exec on project:*"];
const all = () => harness.key(ORGANIZATION, ...everything);

/** Headers of a caller that may call the operation. */
const able = ({ policy }: Case) => (policy.access.kind === "owner" ? harness.owner(ORGANIZATION) : all());

function send({ route }: Case, credential: Record<string, string | undefined>, request: Request = {}) {
  const { id = PROJECT, query = "", headers, payload } = request;
  const url = route.path.replace(":id", id).replace(":file", "page.css").replace("*", "") + query;
  return harness.app.inject({ method: route.method, url, headers: { ...credential, ...headers }, payload });
}

const json = (value: unknown): Request => ({
  headers: { "content-type": "application/json" },
  payload: typeof value === "string" ? value : JSON.stringify(value),
});

type Response = Awaited<ReturnType<typeof send>>;

/** Every refusal is in the one envelope, and no refusal of the client's making is a 5xx. */
function expectRefusal(response: Response, ...statuses: number[]): void {
  expect(response.headers["content-type"]).toBe("application/json; charset=utf-8");
  expect(response.json()).toMatchObject({
    status: "failed",
    message: expect.stringMatching(/./),
    code: expect.stringMatching(/^[A-Z][A-Z_]+$/),
  });
  expect(statuses).toContain(response.statusCode);
}

describe.each(having("public"))("$name, public,", (one) => {
  // Shows: docs/applications.md#catalogs: public: neither a missing nor a wrong credential matters
  // Shows: docs/applications.md#authentication: 3. the five catalogs need no credential
  it("answers without a credential, and whatever the credential", async () => {
    for (const headers of [{}, { "x-api-key": "nonsense" }, { authorization: "Basic eDp5" }]) {
      expect((await send(one, headers)).statusCode).toBe(200);
    }
  });
});

describe.each(having("credential", "owner", "create", "organization", "everyProject", "project"))(
  "$name",
  (one) => {
    // Shows: docs/applications.md#conventions: failure envelope with `message` and a stable `code`
    // Shows: docs/applications.md#authentication: 5. 401 for a missing or wrong credential, a revoked key
    // Shows: docs/applications.md#errors-other-operations: historic deployments | 401, 403, 404
    // Shows: docs/applications.md#errors-every-operation: 401 | `CREDENTIAL_MISSING`, `CREDENTIAL_INVALID`
    it("answers 401 without a valid credential, before it reads anything else", async () => {
      const unknownKey = `slw_${"0".repeat(16)}_${"0".repeat(64)}`;
      const bad = { query: "?unknown=1", ...json("{") };
      expect(statusAndCode(await send(one, {}, bad))).toEqual([401, "CREDENTIAL_MISSING"]);
      for (const headers of [
        { "x-api-key": "nonsense" },
        { "x-api-key": unknownKey },
        { authorization: `Bearer ${unknownKey}` },
        { authorization: "Bearer a.b.c" },
        { authorization: "Basic eDp5" },
      ]) {
        const response = await send(one, headers, bad);
        expectRefusal(response, 401);
        expect(statusAndCode(response)).toEqual([401, "CREDENTIAL_INVALID"]);
      }
    });

    // Shows: docs/applications.md#authentication: 2. `x-organization-id`: required with a user token
    // Shows: docs/applications.md#errors-every-operation: 403 | `ORGANIZATION_REQUIRED`
    it("answers 403 to a user token without its organization, and to a credential of another", async () => {
      const { authorization } = (await harness.owner(ORGANIZATION)) as { authorization: string };
      expect(statusAndCode(await send(one, { authorization }))).toEqual([403, "ORGANIZATION_REQUIRED"]);
      for (const credential of [{ authorization }, all()]) {
        const headers = { ...credential, "x-organization-id": "elsewhere" };
        expect(statusAndCode(await send(one, headers))).toEqual([403, "ORGANIZATION_FORBIDDEN"]);
      }
    });
  },
);

describe.each(having("owner"))("$name", (one) => {
  it("answers 403 to every key, and to members that are not owners", async () => {
    for (const headers of [
      all(),
      await harness.user(ORGANIZATION, "assistant", ...everything),
      await harness.user(ORGANIZATION, "member", ...everything),
    ]) {
      const response = await send(one, headers, json("{"));
      expectRefusal(response, 403);
      expect(response.json().code).toBe("OWNER_SESSION_REQUIRED");
    }
  });
});

describe.each(having("create"))("$name", (one) => {
  // Shows: docs/applications.md#authentication: 5. 403 `insufficient organization permission` for
  it("answers 403 to a caller that may create nothing", async () => {
    const grants = PERMISSIONS.map((permission) => `${permission} on project:*`);
    const response = await send(one, harness.key(ORGANIZATION, ...grants), json({}));
    expect(response.json()).toMatchObject({
      code: "PERMISSION_DENIED",
      message: "insufficient organization permission",
    });
    expect(response.statusCode).toBe(403);
  });

  it("answers 403 to a caller that may create other types only", async () => {
    const { byType } = one.policy.access as Extract<Access, { kind: "create" }>;
    for (const [type, permission] of Object.entries(byType)) {
      const others = [...new Set(Object.values(byType))].filter((other) => other !== permission);
      const grants = others.map((other) => `${other} on organization:*`);
      const body = json({ config: { type_project: type } });
      expect(statusAndCode(await send(one, harness.key(ORGANIZATION, ...grants), body))).toEqual([
        403,
        "PERMISSION_DENIED",
      ]);
      const allowed = harness.key(ORGANIZATION, `${permission} on organization:*`);
      expectRefusal(await send(one, allowed, body), 400);
    }
  });
});

describe.each(having("organization"))("$name", (one) => {
  const { permission } = one.policy.access as Extract<Access, { kind: "organization" }>;

  // Shows: docs/variable-groups.md#permissions: of their own: neither
  it("answers 403 to every grant but its own on the organization", async () => {
    const others = PERMISSIONS.filter((other) => other !== permission);
    for (const grants of [
      [],
      others.map((other) => `${other} on organization:*`),
      [...PERMISSIONS.map((other) => `${other} on project:*`), `${permission} on project:${PROJECT}`],
    ]) {
      const response = await send(one, harness.key(ORGANIZATION, ...grants));
      expect(response.json()).toMatchObject({
        code: "PERMISSION_DENIED",
        required: [`${permission} on organization:*`],
      });
      expect(response.statusCode).toBe(403);
    }
  });

  it("needs just its grant", async () => {
    const headers = harness.key(ORGANIZATION, `${permission} on organization:*`);
    expectRefusal(
      await send(one, headers, { query: "?unknown=1", ...(takesBody(one) ? json({}) : {}) }),
      400,
    );
  });
});

describe.each(having("everyProject"))("$name", (one) => {
  const { permission } = one.policy.access as Extract<Access, { kind: "everyProject" }>;

  // Shows: docs/applications.md#errors-other-operations: historic deployments | 401, 403, 404
  // Shows: docs/applications.md#errors-every-operation: 403 | `PERMISSION_DENIED`, with `required`
  it("answers 403 to every grant but its own on all projects", async () => {
    const others = PERMISSIONS.filter((other) => other !== permission);
    for (const grants of [
      [],
      others.map((other) => `${other} on project:*`),
      [`${permission} on organization:*`, `${permission} on project:${PROJECT}`],
    ]) {
      const response = await send(one, harness.key(ORGANIZATION, ...grants));
      expect(response.json()).toMatchObject({
        code: "PERMISSION_DENIED",
        required: [`${permission} on project:*`],
      });
      expect(response.statusCode).toBe(403);
    }
  });

  it("needs just its grant", async () => {
    const headers = harness.key(ORGANIZATION, `${permission} on project:*`);
    expectRefusal(
      await send(one, headers, { query: "?unknown=1", ...(takesBody(one) ? json({}) : {}) }),
      400,
    );
  });
});

describe.each(having("project"))("$name", (one) => {
  const { permission } = one.policy.access as Extract<Access, { kind: "project" }>;

  // Shows: docs/applications.md#authentication: 4. assistants, members and keys have what they were
  it("answers 403 to every grant but its own on this project, the project there or not", async () => {
    const others = PERMISSIONS.filter((other) => other !== permission);
    for (const grants of [
      [],
      others.map((other) => `${other} on project:*`),
      [`${permission} on organization:*`],
      [`${permission} on project:pother`],
    ]) {
      for (const id of [PROJECT, "pmissing"]) {
        const response = await send(one, harness.key(ORGANIZATION, ...grants), { id });
        expect(response.json()).toMatchObject({
          code: "PERMISSION_DENIED",
          required: [`${permission} on project:${id}`],
        });
        expect(response.statusCode).toBe(403);
      }
    }
  });

  // Shows: docs/applications.md#conventions: a foreign project looks exactly like a missing one, on
  // Shows: docs/applications.md#errors-other-operations: historic deployments | 401, 403, 404
  it("shows a foreign project exactly as one that is not there", async () => {
    const headers = harness.key(ORGANIZATION, `${permission} on project:*`);
    const foreign = await send(one, headers, { id: "pforeign" });
    const missing = await send(one, headers, { id: "pmissing" });
    expect([foreign.statusCode, foreign.body]).toEqual([missing.statusCode, missing.body]);
    expect(foreign.statusCode).toBeGreaterThanOrEqual(400);
  });

  it("serves the organization's own project with just its grant", async () => {
    const headers = harness.key(ORGANIZATION, `${permission} on project:${PROJECT}`);
    const response = await send(one, headers, takesBody(one) ? json([]) : { query: "?unknown=1" });
    expectRefusal(response, 400);
  });

  // Shows: docs/applications.md#conventions: malformed ids have no effect
  it("answers malformed ids without a request to the cluster", async () => {
    const before = harness.apiserver.requests.length;
    const bad = [
      "%00",
      "a%00b",
      "%2e%2e",
      "..%2f..%2fsecrets",
      "a%2fb",
      "A",
      "%C3%A9",
      "a.b",
      "-a",
      "x".repeat(150),
    ];
    for (const id of [...bad, "x".repeat(300), "%zz", "%", "%ff", "%c0%ae", "a%20b", "%F0%9F%92%A9"]) {
      const response = await send(one, await able(one), { id });
      expectRefusal(response, 400, 404, ...(one.policy.audited ? [503] : []));
    }
    expect(harness.apiserver.requests.length).toBe(before);
  });
});

describe.each(cases.filter(ofClients))("$name", (one) => {
  // Shows: docs/applications.md#conventions: unknown fields and parameters, and those that come twice
  it("answers 400 to parameters that it does not have", async () => {
    for (const query of [
      "?surprise=1",
      "?surprise=1&surprise=2",
      "?a[]=1",
      "?a[b]=1",
      "?__proto__=1",
      "?%00=1",
      "?=1",
    ]) {
      const response = await send(one, await able(one), { query, ...(takesBody(one) ? json({}) : {}) });
      expectRefusal(response, 400);
      expect(response.json().errors.length).toBeGreaterThan(0);
    }
  });

  // Shows: docs/applications.md#conventions: unknown fields and parameters, and those that come twice
  it("answers 400 to parameters that are given twice", async () => {
    const shape = (one.route.query as { shape?: Record<string, unknown> } | undefined)?.shape ?? {};
    for (const name of Object.keys(shape).filter((one) => !isRepeated(one))) {
      expectRefusal(await send(one, await able(one), { query: `?${name}=1&${name}=2` }), 400);
    }
  });
});

describe.each(cases.filter(takesBody).filter(ofClients))("$name, with a body,", (one) => {
  // Shows: docs/applications.md#conventions: unknown fields and parameters, and those that come twice
  it("names an unknown field", async () => {
    // Some operations are for one type of project.
    const responses = [];
    for (const id of [PROJECT, JOB]) {
      responses.push(await send(one, await able(one), { id, ...json({ surprise: 1 }) }));
    }
    for (const response of responses) {
      expectRefusal(response, 400);
    }
    const named = responses.flatMap((response) => response.json().errors ?? []);
    expect(named.map((error: { field: string }) => error.field)).toContain("surprise");
  });

  it.each([
    ["nothing", ""],
    ["null", "null"],
    ["a list", "[]"],
    ["a text", '"a"'],
    ["a number", "1"],
    ["broken JSON", "{"],
    ["two values", "{}{}"],
    ["a byte order mark", "\ufeff{}"],
    ["__proto__", '{"__proto__":{"a":1}}'],
    ["constructor.prototype", '{"constructor":{"prototype":{"a":1}}}'],
    ["a key that stands twice", '{"a":1,"a":2}'],
    ["deep lists", "[".repeat(50_000) + "]".repeat(50_000)],
    ["deep objects", `${'{"config":'.repeat(50_000)}{}${"}".repeat(50_000)}`],
    ["NaN", '{"a":NaN}'],
    ["a number without end", `{"a":1e${"9".repeat(400)}}`],
    ["half a surrogate", '{"\\ud800":"\\udc00"}'],
    ["NUL", '{"\\u0000":"\\u0000"}'],
  ])("answers 400 to %s", async (_about, payload) => {
    expectRefusal(await send(one, await able(one), json(payload)), 400);
  });

  // Shows: docs/applications.md#errors-every-operation: 400 | `MALFORMED_BODY`: broken JSON, bytes that
  it("answers 400 to bytes that are no UTF-8", async () => {
    const headers = { "content-type": "application/json" };
    for (const bytes of [
      [0xff, 0xfe],
      [0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d],
      [0xed, 0xa0, 0x80],
    ]) {
      expectRefusal(await send(one, await able(one), { headers, payload: Buffer.from(bytes) }), 400);
    }
  });

  // Shows: docs/applications.md#conventions: bodies are `application/json` in UTF-8, else 415
  // Shows: docs/applications.md#errors-every-operation: 415 | `MEDIA_TYPE_UNSUPPORTED`
  it.each([
    "text/plain",
    "text/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/xml",
    "application/merge-patch+json",
    "application",
    "nonsense",
    "*/*",
    "application/json, text/plain",
  ])("answers 415 to content type %s", async (type) => {
    const response = await send(one, await able(one), { headers: { "content-type": type }, payload: "{}" });
    expectRefusal(response, 415);
  });

  // Shows: docs/applications.md#conventions: bodies are `application/json` in UTF-8, else 415
  it("answers 415 to another character set, and accepts UTF-8 by any of its names", async () => {
    const typed = (type: string) => ({ headers: { "content-type": type }, payload: '{"surprise":1}' });
    for (const charset of ["utf-16", "iso-8859-1", "latin1"]) {
      expectRefusal(await send(one, await able(one), typed(`application/json; charset=${charset}`)), 415);
    }
    for (const charset of ["utf-8", "UTF-8", '"utf-8"', "utf8"]) {
      expectRefusal(await send(one, await able(one), typed(`application/json;charset=${charset}`)), 400);
    }
  });

  // Shows: docs/applications.md#limits: body | 12 MiB where it has variables, else 1 MiB
  // Shows: docs/applications.md#errors-every-operation: 413 | `BODY_TOO_LARGE`, with `limit`
  it("answers 413 to a body over its limit", async () => {
    const limit = one.route.bodyLimit ?? 1024 * 1024;
    const response = await send(one, await able(one), json(`"${"x".repeat(limit)}"`));
    expectRefusal(response, 413);
    expect(response.json()).toMatchObject({ code: "BODY_TOO_LARGE", limit });
  });
});

describe.each(cases.filter(ofClients).filter((one) => one.route.method !== "GET" && !takesBody(one)))(
  "$name, without a body,",
  (one) => {
    it("answers 400 to a body all the same", async () => {
      for (const payload of [{ surprise: 1 }, [], "a", 1]) {
        expectRefusal(await send(one, await able(one), json(JSON.stringify(payload))), 400);
      }
    });
  },
);

describe("rate limits", () => {
  let tight: FakeHarness;
  beforeAll(async () => {
    // Every limit becomes one call a window.
    tight = await startFakeHarness({ rateLimitScale: 1e-9 });
    await tight.project(ORGANIZATION, PROJECT);
    await putConnection(tight.kube, ORGANIZATION, CONNECTION);
    await eventually("the connection", () => tight.services.connections.organizationOf(CONNECTION));
  });
  afterAll(() => tight.close());

  // Shows: docs/applications.md#limits: `RateLimit`, `RateLimit-Policy`, `Retry-After`
  // Shows: docs/applications.md#errors-project-creation: 429 | `RATE_LIMIT_EXCEEDED`
  it.each(cases)(
    "$name answers 429 past its limit, and says when to come back",
    async ({ route, policy }) => {
      const headers =
        policy.access.kind === "owner"
          ? await tight.owner(ORGANIZATION)
          : tight.key(ORGANIZATION, ...everything);
      const call = () =>
        tight.app.inject({
          method: route.method,
          url: `${route.path.replace(":id", PROJECT).replace(":connectionId", CONNECTION)}?surprise=1`,
          headers,
        });
      const first = await call();
      expect(first.statusCode).toBe(400);
      expect(first.headers["ratelimit-policy"]).toContain(`w=${policy.rateLimit.windowSeconds}`);
      const second = await call();
      expectRefusal(second, 429);
      expect(second.json().code).toBe("RATE_LIMIT_EXCEEDED");
      expect(Number(second.headers["retry-after"])).toBeGreaterThan(0);
      expect(second.headers.ratelimit).toBeDefined();
    },
  );
});

it("the foreign project is where the tests think it is", async () => {
  const headers = harness.key("elsewhere", "project.read on project:*");
  const response = await harness.app.inject({ url: "/v1/project/pforeign", headers });
  expect(response.statusCode).toBe(200);
  expect(organizationNamespace("elsewhere")).toBe("slipway-org-elsewhere");
});
