import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import {
  allNull,
  credentialKeys,
  credentialsHash,
  databaseNames,
  databaseTypes,
  type EngineName,
  type MetricsSnapshot,
  organizationNamespace,
  type Project,
  postgresqlMetrics,
  snapshotResource,
} from "@slipway/crds";
import { findIdempotencyRecord, listQuotaReservations, recordMetricSamples } from "@slipway/ledger";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { databaseBody, HOST, PORT, startDatabaseOperator } from "../../../test/kit/api-server/databases.ts";
import { type RealHarness, startRealHarness } from "../../../test/kit/api-server/real-harness.ts";
import { statusAndCode } from "../../../test/kit/api-server/status-and-code.ts";
import { createProjectData } from "../projects/routes/create.ts";
import { projectResource } from "../resources.ts";
import { decodeCredentials, readCredentialsSecret } from "./connection.ts";

/** Databases over a real apiserver and a real PostgreSQL; the test plays the operator's part. */

let harness: RealHarness;
let operator: ReturnType<typeof startDatabaseOperator>;
beforeAll(async () => {
  harness = await startRealHarness();
  operator = startDatabaseOperator(harness.admin);
});
afterAll(async () => {
  await operator?.stop();
  await harness?.close();
});

type Headers = Record<string, string>;
let keys = 0;
const newKey = () => `a-key-of-a-database-${++keys}`;
const post = (headers: Headers, payload: object, key?: string) =>
  harness.app.inject({
    method: "POST",
    url: "/v1/project",
    headers: { ...headers, ...(key === undefined ? {} : { "idempotency-key": key }) },
    payload,
  });
const on = (method: "GET" | "PATCH" | "POST" | "DELETE", path: string, headers: Headers, payload?: object) =>
  harness.app.inject({ method, url: `/v1/project/${path}`, headers, ...(payload ? { payload } : {}) });

const ref = (organizationId: string, name: string) => ({
  namespace: organizationNamespace(organizationId),
  name,
});
const secretOf = async (organizationId: string, id: string) =>
  decodeCredentials((await readCredentialsSecret(harness.admin, ref(organizationId, id))) ?? {});
const live = (organizationId: string, id: string) =>
  harness.admin.get<Project>(projectResource, ref(organizationId, id));
const secretsIn = (organizationId: string) =>
  harness.admin.listAll<KubernetesObject & { immutable?: boolean }>(resources.secrets, {
    namespace: organizationNamespace(organizationId),
  });

/** A database that was just created, and its creator. */
async function create(type: EngineName, change: object = {}, config: object = {}) {
  const { id: organizationId, headers } = await harness.organization();
  const created = await post(headers, databaseBody(type, { ...change }, { ...config }), newKey());
  expect(created.json()).toMatchObject({ status: "success" });
  const id: string = created.json().data.project_id;
  return { id, organizationId, headers, created };
}

describe("a creation", () => {
  // Shows: docs/databases-api.md#endpoints: `POST /v1/project` | 201, `data`: `project_id`, `type`
  // Shows: docs/databases-api.md#passwords: a password is in the Secret `<id>-credentials` alone: not in
  it.each(["postgresql", "mariadb", "clickhouse"] as const)(
    "of %s answers the connection with its password, which is in its Secret alone",
    async (type) => {
      const { id, organizationId, created } = await create(
        type,
        {},
        { envs: [{ name: "TZ", value: "UTC" }] },
      );
      expect(created.statusCode).toBe(201);
      expect(created.headers["cache-control"]).toBe("no-store");
      const { data } = created.json();
      expect(createProjectData.strict().safeParse(data).error).toBeUndefined();
      const secret = await secretOf(organizationId, id);
      const password = secret.password ?? "";
      expect(data).toEqual({
        project_id: expect.stringMatching(/^p[a-z0-9]{19}$/),
        type: "database",
        database: {
          connection: {
            host: HOST,
            port: PORT,
            database: "app",
            username: "app",
            password,
            connectionString: expect.stringMatching(
              new RegExp(`^[a-z]+://app:${password}@${HOST}:${PORT}/app$`),
            ),
          },
          version: expect.any(String),
          replicas: type === "mariadb" ? 3 : 1,
        },
      });
      expect(password).toMatch(/^[A-Za-z0-9]{32}$/);
      expect(new Set(Object.values(secret)).size).toBe(5);
      const project = await live(organizationId, id);
      expect(project.spec.envsFrom).toHaveLength(1);
      const secrets = await secretsIn(organizationId);
      expect(secrets.map(({ metadata }) => metadata?.ownerReferences?.[0]?.uid)).toEqual([
        project.metadata.uid,
        project.metadata.uid,
      ]);
      const own = secrets.find(({ metadata }) => metadata?.name === databaseNames(id).credentials);
      expect(own?.immutable).toBeUndefined();
      expect(own?.metadata?.labels?.["slipway.dev/project"]).toBe(id);
      for (const place of [JSON.stringify(project), harness.logged(), JSON.stringify(harness.audited)]) {
        expect(place).not.toContain(password);
      }
    },
  );

  // Shows: docs/databases-api.md#endpoints: `POST /v1/project`, of Valkey | 201, `data`: `project_id`
  it("of Valkey answers the managed service", async () => {
    const { id, organizationId, created } = await create("valkey");
    const { data } = created.json();
    expect(createProjectData.strict().safeParse(data).error).toBeUndefined();
    const { password } = await secretOf(organizationId, id);
    expect(data).toEqual({
      project_id: id,
      status: "creating",
      type: "managed_service",
      managed_service: {
        engine: "valkey",
        profile: "key_value",
        version: "9.1.1",
        username: "app",
        host: HOST,
        port: PORT,
        tls: true,
        connection_string: `rediss://app:${password}@${HOST}:${PORT}/0`,
      },
    });
  });

  // Shows: docs/databases-api.md#rules-of-a-creation: what was created for a project that is rejected is
  it("deletes its Secret when the project is refused", async () => {
    const { id: organizationId, headers } = await harness.organization();
    const ref = { namespace: organizationNamespace(organizationId), name: "none" };
    const hard = { "count/projects.slipway.dev": "0" };
    await harness.admin.create(resources.resourceQuotas, { metadata: ref, spec: { hard } } as object);
    const status = { hard, used: hard };
    await harness.admin.patch(resources.resourceQuotas, ref, { status }, { subresource: "status" });
    const refused = await post(headers, databaseBody("postgresql"), newKey());
    expect(statusAndCode(refused)).toEqual([409, "ORGANIZATION_PROJECT_LIMIT_REACHED"]);
    expect(await secretsIn(organizationId)).toEqual([]);
  });

  // Shows: docs/databases-api.md#rules-of-a-creation: the answer waits up to 10 seconds for the address
  it("says null where the address is not assigned, once the operator refuses it", async () => {
    const { headers, id: organizationId } = await harness.organization();
    await operator.stop();
    const answer = post(headers, databaseBody("postgresql"), newKey());
    const created = await expect
      .poll(() => harness.projects.list(organizationId)[0]?.id)
      .toBeDefined()
      .then(() => harness.projects.list(organizationId)[0]?.id ?? "");
    const condition = {
      type: "Accepted",
      status: "False",
      reason: "TypeNotSupported",
      message: "not here",
      lastTransitionTime: new Date().toISOString(),
    };
    await harness.admin.patch(
      projectResource,
      ref(organizationId, created),
      { status: { conditions: [condition] } },
      { subresource: "status" },
    );
    const { data } = (await answer).json();
    operator = startDatabaseOperator(harness.admin);
    expect(data).toEqual({
      project_id: created,
      type: "database",
      database: { connection: null, version: "17", replicas: 1 },
    });
  });

  // Shows: docs/databases-api.md#rules-of-a-creation: 503 `PROJECT_TYPE_UNAVAILABLE`: the type is not
  it("of a type that is not supported, or that is switched off, is 503", async () => {
    const { headers } = await harness.organization();
    const { catalog, supports } = harness.services;
    Object.assign(harness.services, { supports: (type: string) => type === "mariadb" });
    const unknown = await post(headers, databaseBody("postgresql"), newKey());
    Object.assign(harness.services, {
      supports,
      catalog: { current: { ...catalog.current, databasesEnabled: false } },
    });
    const off = await post(headers, databaseBody("postgresql"), newKey());
    Object.assign(harness.services, { catalog });
    expect([statusAndCode(unknown), statusAndCode(off)]).toEqual([
      [503, "PROJECT_TYPE_UNAVAILABLE"],
      [503, "PROJECT_TYPE_UNAVAILABLE"],
    ]);
  });

  // Shows: docs/databases-api.md#rules-of-a-creation: 400: engine, version, instances and storage that
  it("beyond what the plan offers is 400", async () => {
    const { headers } = await harness.organization();
    const body = databaseBody("clickhouse", { plan: "analytics-premium" }, { instances: 3 });
    const refused = await post(headers, body, newKey());
    expect(refused.statusCode).toBe(400);
    expect(refused.json().errors.map(({ field }: { field: string }) => field)).toEqual(["config.instances"]);
  });
});

describe("an Idempotency-Key", () => {
  // Shows: docs/databases-api.md#passwords: of 20 identical concurrent requests one creates the service
  it("of Valkey creates one service under 20 identical requests, and one of them receives the password", async () => {
    const { id: organizationId, headers } = await harness.organization();
    const key = newKey();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => post(headers, databaseBody("valkey"), key)),
    );
    expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array(20).fill(201));
    const services = answers.map((answer) => answer.json().data);
    expect(new Set(services.map(({ project_id }) => project_id)).size).toBe(1);
    const shown = services.filter(({ managed_service }) => "connection_string" in managed_service);
    expect(shown).toHaveLength(1);
    const { connection_string: _, ...common } = shown[0].managed_service;
    for (const { managed_service } of services) {
      expect(managed_service).toMatchObject(common);
    }
    expect(harness.projects.list(organizationId)).toHaveLength(1);
    expect(await secretsIn(organizationId)).toHaveLength(1);
  });

  // Shows: docs/databases-api.md#passwords: a password is in the Secret `<id>-credentials` alone: not in
  // Shows: docs/databases-api.md#passwords: `Idempotency-Key` is required for Valkey, and optional for
  // Shows: docs/databases-api.md#passwords: a repeated request is answered with the project's current
  it.each(databaseTypes)("repeated for %s answers the same project without the password", async (type) => {
    const { id: organizationId, headers } = await harness.organization();
    const key = newKey();
    const first = await post(headers, databaseBody(type), key);
    const { password = "" } = await secretOf(organizationId, first.json().data.project_id);
    expect(first.body).toContain(password);
    const again = await post(headers, databaseBody(type), key);
    expect(again.statusCode).toBe(201);
    expect(again.json().data.project_id).toBe(first.json().data.project_id);
    expect(again.body).not.toContain(password);
    const { database, managed_service } = again.json().data;
    const { host } = database?.connection ?? managed_service;
    expect(host).toBe(HOST);
    const record = await findIdempotencyRecord(harness.ledger, { organizationId, key });
    expect(JSON.stringify(record)).not.toContain(password);
    expect(statusAndCode(await post(headers, databaseBody(type, { name: "another" }), key))).toEqual([
      409,
      "IDEMPOTENCY_KEY_CONFLICT",
    ]);
  });

  // Shows: docs/databases-api.md#passwords: `Idempotency-Key` is required for Valkey, and optional for
  it("is required for Valkey, and for no other", async () => {
    const { headers } = await harness.organization();
    expect(statusAndCode(await post(headers, databaseBody("valkey")))).toEqual([
      400,
      "IDEMPOTENCY_KEY_REQUIRED",
    ]);
    expect((await post(headers, databaseBody("postgresql"))).statusCode).toBe(201);
  });

  // Shows: docs/databases-api.md#passwords: a creation that could not be answered is completed by the
  it("shows the password to the call that finishes what an unanswered one has begun", async () => {
    const { id: organizationId, headers } = await harness.organization();
    const key = newKey();
    // The project is written, and its creation cannot be recorded: the ledger is unavailable for a moment.
    const observe = vi.spyOn(harness.projects, "observe").mockRejectedValueOnce(new Error("cut"));
    expect((await post(headers, databaseBody("valkey"), key)).statusCode).toBe(500);
    observe.mockRestore();
    const again = await post(headers, databaseBody("valkey"), key);
    expect(again.statusCode).toBe(201);
    const id: string = again.json().data.project_id;
    const { password } = await secretOf(organizationId, id);
    expect(again.json().data.managed_service.connection_string).toContain(password);
    expect(harness.projects.list(organizationId)).toHaveLength(1);
  });
});

describe("free plans", () => {
  const free = (type: EngineName, config: object = {}) =>
    databaseBody(type, { plan: "db-free" }, { storage: { persistent: true, capacity: 1 }, ...config });

  // Shows: docs/databases-api.md#endpoints: `POST /v1/project/:id/pause`, `POST /v1/project/:id/resume`
  // Shows: docs/databases-api.md#rules-of-a-creation: 409 `DB_FREE_PROJECT_LIMIT_REACHED`, `limit` 2
  it("have two db-free projects, PostgreSQL and key-value together, also of many concurrent requests", async () => {
    const { headers } = await harness.organization();
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, index) =>
        post(headers, free(index % 2 ? "postgresql" : "valkey"), newKey()),
      ),
    );
    expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([201, 201, 409, 409, 409, 409]);
    const refused = answers.find(({ statusCode }) => statusCode === 409)?.json();
    expect(refused).toMatchObject({ code: "DB_FREE_PROJECT_LIMIT_REACHED", limit: 2 });
    const id = answers.find(({ statusCode }) => statusCode === 201)?.json().data.project_id;
    // A paused one is not active.
    expect((await on("POST", `${id}/pause`, headers)).statusCode).toBe(200);
    expect((await post(headers, free("postgresql"), newKey())).statusCode).toBe(201);
    expect(statusAndCode(await on("POST", `${id}/resume`, headers))).toEqual([
      409,
      "DB_FREE_PROJECT_LIMIT_REACHED",
    ]);
  });

  // Shows: docs/databases-api.md#rules-of-a-creation: 409 `MANAGED_SERVICE_FREE_LIMIT_REACHED`, `limit`
  it.each([
    ["cache", { storage: undefined }],
    ["queue", { storage: { persistent: true, capacity: 1 } }],
  ])("have one %s service", async (profile, config) => {
    const { headers } = await harness.organization();
    const body = databaseBody("valkey", { plan: `${profile}-free` }, { profile, ...config });
    expect((await post(headers, body, newKey())).statusCode).toBe(201);
    const second = await post(headers, body, newKey());
    expect(statusAndCode(second)).toEqual([409, "MANAGED_SERVICE_FREE_LIMIT_REACHED"]);
    expect(second.json().limit).toBe(1);
    const other = profile === "cache" ? "queue" : "cache";
    const storage =
      other === "queue" ? { storage: { persistent: true, capacity: 1 } } : { storage: undefined };
    const another = databaseBody("valkey", { plan: `${other}-free` }, { profile: other, ...storage });
    expect((await post(headers, another, newKey())).statusCode).toBe(201);
  });
});

describe("a plan change", () => {
  // Shows: docs/databases-api.md#endpoints: `PATCH /v1/project/:id/plan` | 200 and in force immediately
  it.each([
    ["postgresql", "db-business"],
    ["mariadb", "db-basic"],
    ["valkey", "db-premium_plus"],
  ] as const)("of %s is 200, and in force immediately", async (type, plan) => {
    const { id, organizationId, headers } = await create(type);
    const changed = await on("PATCH", `${id}/plan`, headers, { plan });
    expect([changed.statusCode, changed.json().data]).toEqual([200, { plan, payment_mode: "hourly" }]);
    expect((await on("GET", id, headers)).json().data).toMatchObject({ plan });
    const reservations = await listQuotaReservations(harness.ledger);
    expect(reservations.filter(({ project_id }) => project_id === id).map((row) => row.plan)).toEqual([plan]);
    expect((await live(organizationId, id)).spec.planRequestedAt).toBeUndefined();
  });

  // Shows: docs/databases-api.md#endpoints: `PATCH /v1/project/:id/plan` | 200 and in force immediately
  // Shows: docs/databases-api.md#change-of-plan: of ClickHouse: `plan` is the one in force
  it("of ClickHouse is 202, runs in the background, and may fail", async () => {
    const { id, organizationId, headers } = await create("clickhouse");
    const setStatus = (status: object) =>
      harness.admin.patch<Project>(
        projectResource,
        ref(organizationId, id),
        { status },
        { subresource: "status" },
      );
    const read = async () => (await on("GET", id, headers)).json().data;
    const change = (body: object) => on("PATCH", `${id}/plan`, headers, body);
    await setStatus({ plan: "analytics-basic" });
    await expect.poll(async () => (await live(organizationId, id)).status?.plan).toBe("analytics-basic");
    await expect.poll(read).toMatchObject({ plan: "analytics-basic" });

    const accepted = await change({ plan: "analytics-premium" });
    const started_at = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/);
    const running = { status: "in_progress", to_plan: "analytics-premium", started_at };
    expect([accepted.statusCode, accepted.json().data]).toEqual([
      202,
      { plan: "analytics-basic", payment_mode: "hourly", plan_change: running },
    ]);
    expect(await read()).toMatchObject({ plan: "analytics-basic", plan_change: running });
    expect(statusAndCode(await change({ plan: "analytics-business" }))).toEqual([
      409,
      "PLAN_CHANGE_IN_PROGRESS",
    ]);

    const { planRequestedAt } = (await live(organizationId, id)).spec;
    const failedAt = "2026-11-21T12:00:00Z";
    await setStatus({
      planChange: {
        status: "failed",
        fromPlan: "analytics-basic",
        toPlan: "analytics-premium",
        requestedAt: planRequestedAt,
        startedAt: planRequestedAt,
        finishedAt: failedAt,
      },
    });
    const failed = {
      status: "failed",
      from_plan: "analytics-basic",
      to_plan: "analytics-premium",
      finished_at: failedAt,
    };
    await expect.poll(async () => (await read()).plan_change).toEqual(failed);

    const again = await change({ plan: "analytics-premium" });
    expect([again.statusCode, again.json().data.plan_change]).toEqual([202, running]);
    const { planRequestedAt: second } = (await live(organizationId, id)).spec;
    expect(second).not.toBe(planRequestedAt);
    await setStatus({ plan: "analytics-premium", planChange: null });
    await expect.poll(read).toMatchObject({ plan: "analytics-premium" });
    expect(await read()).not.toHaveProperty("plan_change");
  });
});

describe("a snapshot", () => {
  // Shows: docs/databases-api.md#metrics: the newest sample in the ledger, however old; none of a
  it("is the newest that the ledger has, of this very database", async () => {
    const { id, organizationId, headers } = await create("postgresql");
    const instance = `${id}-0`;
    const read = async () => (await on("GET", `${id}/metrics`, headers)).json().data;
    expect(await read()).toMatchObject({ availability: "unavailable", observed_at: null });
    const observed_at = new Date().toISOString();
    const resource = { ...allNull(snapshotResource), cpu_usage_cores: 0.5 };
    const snapshot: MetricsSnapshot = {
      schema_version: 1,
      type: "postgresql",
      instance,
      observed_at,
      collected_at: observed_at,
      availability: "available",
      resource,
      native: allNull(postgresqlMetrics),
    };
    const record = (projectUid: string) =>
      recordMetricSamples(harness.ledger, [
        { organizationId, projectId: id, projectUid, instance, snapshot, raw: {} },
      ]);
    await record("of-an-earlier-one");
    expect(await read()).toMatchObject({ availability: "unavailable" });
    snapshot.observed_at = new Date(Date.now() + 1).toISOString();
    await record((await live(organizationId, id)).metadata.uid ?? "");
    expect(await read()).toMatchObject({ project_id: id, instance, availability: "available", resource });
  });
});

describe("credentials", () => {
  // Shows: docs/databases-api.md#endpoints: `POST /v1/project/:id/database/credentials/renew`
  it.each(databaseTypes)("of %s are renewed, and the API server may do so", async (type) => {
    const { id, organizationId, headers } = await create(type);
    const before = await secretOf(organizationId, id);
    const renewed = await on("POST", `${id}/database/credentials/renew`, headers);
    expect(renewed.json()).toMatchObject({ status: "success" });
    const after = await secretOf(organizationId, id);
    expect(renewed.json().data.connection.password).toBe(after.password);
    expect(after.password).not.toBe(before.password);
    expect({ ...after, password: before.password, [credentialKeys.previousPassword]: undefined }).toEqual(
      before,
    );
    expect((await live(organizationId, id)).status?.database?.credentialsHash).toBe(credentialsHash(after));
  });
});

describe("a deletion", () => {
  // Shows: docs/databases-api.md#endpoints: `DELETE /v1/project/:id` | 200 once it is deleted; of Valkey
  // Shows: docs/databases-api.md#deletion-and-settings: 409 `MANAGED_SERVICE_OPERATION_IN_PROGRESS`: a
  it("of Valkey is 202 and continues in the background, and a second one 409", async () => {
    const { id, organizationId, headers } = await create("valkey");
    const finalizers = (value: string[]) =>
      harness.admin.patch(projectResource, ref(organizationId, id), { metadata: { finalizers: value } });
    await finalizers(["slipway.dev/project"]);
    const deleted = await on("DELETE", id, headers);
    expect(deleted.statusCode).toBe(202);
    expect(deleted.json().data).toEqual({ project_id: id, status: "deleting" });
    expect(statusAndCode(await on("DELETE", id, headers))).toEqual([
      409,
      "MANAGED_SERVICE_OPERATION_IN_PROGRESS",
    ]);
    await finalizers([]);
    await expect.poll(async () => (await on("GET", id, headers)).statusCode).toBe(404);
    expect(statusAndCode(await on("DELETE", id, headers))).toEqual([409, "PROJECT_ALREADY_DELETED"]);
  });

  // Shows: docs/databases-api.md#deletion-and-settings: a key does not refer to a service that is being
  it("of Valkey ends what its key stood for", async () => {
    const { id: organizationId, headers } = await harness.organization();
    const key = newKey();
    const { project_id: id } = (await post(headers, databaseBody("valkey"), key)).json().data;
    const setFinalizers = (value: string[]) =>
      harness.admin.patch(projectResource, ref(organizationId, id), { metadata: { finalizers: value } });
    await setFinalizers(["slipway.dev/project"]);
    expect((await on("DELETE", id, headers)).statusCode).toBe(202);
    await expect
      .poll(async () => statusAndCode(await post(headers, databaseBody("valkey"), key)))
      .toEqual([409, "PROJECT_ALREADY_DELETED"]);
    await setFinalizers([]);
  });

  // Shows: docs/databases-api.md#endpoints: `DELETE /v1/project/:id` | 200 once it is deleted; of Valkey
  it.each(["postgresql", "mariadb", "clickhouse"] as const)(
    "of %s is 200 once it is deleted",
    async (type) => {
      const { id, headers } = await create(type);
      const deleted = await on("DELETE", id, headers);
      expect([deleted.statusCode, deleted.json()]).toEqual([
        200,
        { status: "success", message: expect.any(String) },
      ]);
      expect((await on("GET", id, headers)).statusCode).toBe(404);
    },
  );
});
