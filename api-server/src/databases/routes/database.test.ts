import { resources } from "@slipway/controller-runtime";
import {
  credentialsHash,
  databaseNames,
  databaseTypes,
  organizationNamespace,
  type Project,
} from "@slipway/crds";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  databaseSpec,
  databaseStatus,
  HOST,
  PORT,
  startDatabaseOperator,
} from "../../../../test/kit/api-server/databases.ts";
import { type FakeHarness, startFakeHarness } from "../../../../test/kit/api-server/harness.ts";
import { statusAndCode } from "../../../../test/kit/api-server/status-and-code.ts";
import { eventually } from "../../../../test/kit/processes/eventually.ts";
import { projectResource } from "../../resources.ts";
import { encodeCredentials, newCredentials } from "../connection.ts";
import { readConnection, renewedConnection } from "./schemas.ts";

/** What is read and changed of databases, with the ledger away. */

const NAMESPACE = organizationNamespace("acme");
let harness: FakeHarness;
let headers: Record<string, string>;
let operator: ReturnType<typeof startDatabaseOperator>;
/** By type, as they were created. */
const passwords = new Map<string, string>();

beforeAll(async () => {
  harness = await startFakeHarness();
  headers = harness.key("acme", "* on organization:*", "* on project:*");
  await harness.project("acme", "pshop");
  await harness.project("acme", "pwaiting", databaseSpec("postgresql", { name: "waiting" }));
  for (const type of databaseTypes) {
    await database(type);
  }
  operator = startDatabaseOperator(harness.kube);
});
afterAll(async () => {
  await operator?.stop();
  await harness?.close();
});

const ref = (name: string) => ({ namespace: NAMESPACE, name });

async function database(type: (typeof databaseTypes)[number]): Promise<void> {
  const id = `p${type}`;
  const project = await harness.put("acme", id, databaseSpec(type, { name: `the-${type}` }));
  const credentials = newCredentials(type);
  passwords.set(type, credentials.password ?? "");
  const secret = { metadata: ref(databaseNames(id).credentials), data: encodeCredentials(credentials) };
  await harness.kube.create(resources.secrets, secret as object);
  const status = {
    phase: "running",
    database: databaseStatus(project, {
      credentialsHash: credentialsHash(credentials),
      inside: { host: `${id}.${NAMESPACE}.svc`, port: 5432, replicasHost: `${id}-replicas` },
    }),
  };
  await harness.kube.patch(projectResource, ref(id), { status }, { subresource: "status" });
  await eventually(id, () =>
    harness.projects.list("acme").some((one) => one.id === id && one.resource.status?.database),
  );
}

const send = (method: "GET" | "POST" | "PATCH", path: string, payload?: object) =>
  harness.app.inject({
    method,
    url: `/v1/project/${path}`,
    headers,
    ...(payload === undefined ? {} : { payload }),
  });
const connection = (type: string) => ({
  host: HOST,
  port: PORT,
  database: type === "valkey" ? "0" : "app",
  username: "app",
});

describe("GET database/connection", () => {
  // Shows: docs/databases-api.md#endpoints: `GET /v1/project/:id/database/connection` | `connection`
  it.each(databaseTypes)("of %s is the connection without its password", async (type) => {
    const response = await send("GET", `p${type}/database/connection`);
    expect(response.statusCode).toBe(200);
    const { data } = response.json();
    expect(readConnection.strict().safeParse(data).error).toBeUndefined();
    expect(data).toMatchObject({
      connection: connection(type),
      inside: { host: `p${type}.${NAMESPACE}.svc`, port: 5432 },
      replicas: type === "mariadb" ? 3 : 1,
      version: databaseSpec(type).version,
    });
    expect(response.body).not.toContain(passwords.get(type));
    expect(response.body).not.toMatch(/password|string/i);
  });

  it("of Valkey is the managed service as well", async () => {
    const { data } = (await send("GET", "pvalkey/database/connection")).json();
    const service = { engine: "valkey", profile: "key_value", version: "9.1.1", username: "app", tls: true };
    expect(data.managed_service).toEqual({ ...service, host: HOST, port: PORT });
  });

  it("of PostgreSQL shows where its replicas are read", async () => {
    const { data } = (await send("GET", "ppostgresql/database/connection")).json();
    expect(data.inside.replicas_host).toBe("ppostgresql-replicas");
  });

  // Shows: docs/databases-api.md#endpoints: `GET /v1/project/:id/database/connection` | `connection`
  it("is null while the address is not there", async () => {
    const response = await send("GET", "pwaiting/database/connection");
    expect(response.json()).toEqual({
      status: "success",
      data: { connection: null, version: "17", replicas: 1 },
    });
  });
});

describe("POST database/credentials/renew", () => {
  // Shows: docs/databases-api.md#endpoints: `POST /v1/project/:id/database/credentials/renew`
  it.each(databaseTypes)("of %s shows a new password, this once", async (type) => {
    const response = await send("POST", `p${type}/database/credentials/renew`);
    expect(response.statusCode).toBe(200);
    expect(response.headers["cache-control"]).toBe("no-store");
    const { data } = response.json();
    expect(renewedConnection.strict().safeParse(data).error).toBeUndefined();
    const { password, connectionString, ...rest } = data.connection;
    expect(rest).toEqual(connection(type));
    expect(password).toMatch(/^[A-Za-z0-9]{32}$/);
    expect(password).not.toBe(passwords.get(type));
    expect(connectionString).toContain(`app:${password}@${HOST}:${PORT}/`);
    if (type === "valkey") {
      expect(data.managed_service.connection_string).toBe(connectionString);
    }
    const read = await send("GET", `p${type}/database/connection`);
    expect(read.body).not.toContain(password);
    expect(harness.logged()).not.toContain(password);
    expect(JSON.stringify(harness.audited)).not.toContain(password);
  });

  // Shows: docs/databases-api.md#passwords: `previous_password_expires_at`: the password before it is accepted
  it("says until when the password before it is accepted, as reading the connection does", async () => {
    const previous_password_expires_at = "2026-03-02T12:00:00.000Z";
    const keep = (previousPassword: object | null) =>
      harness.kube.patch(
        projectResource,
        ref("pvalkey"),
        { status: { database: { previousPassword } } },
        { subresource: "status" },
      );
    const read = async () => (await send("GET", "pvalkey/database/connection")).json().data;
    expect(await read()).not.toHaveProperty("previous_password_expires_at");
    await keep({ until: previous_password_expires_at });
    const data = await eventually("the moment", async () => {
      const now = await read();
      return now.previous_password_expires_at === undefined ? undefined : now;
    });
    expect(readConnection.strict().safeParse(data).error).toBeUndefined();
    expect(data).toMatchObject({ previous_password_expires_at });
    await keep(null);
  });

  it.each([
    [undefined, 200],
    [{}, 200],
    [{ revoke_previous: false }, 200],
    [{ revoke_previous: true }, 200],
    [{ revoke_previous: "yes" }, 400],
    [{ revoke: true }, 400],
  ])("takes the body %j: %i", async (body, status) => {
    const response = await send("POST", "pmariadb/database/credentials/renew", body);
    expect(response.statusCode).toBe(status);
  });

  // Shows: docs/databases-api.md#passwords: a renewal is in the audit log
  it("is in the audit log", () => {
    const audited = harness.audited.filter(({ operation }) => operation === "renewDatabaseCredentials");
    expect(audited.map(({ projectId, status }) => [projectId, status])).toContainEqual(["ppostgresql", 200]);
  });
});

describe("what a database has not", () => {
  // Shows: docs/databases-api.md#deletion-and-settings: exposure, domains, image, schedule and runs are
  it.each([
    ["GET", "pshop/database/connection", undefined],
    ["POST", "pshop/database/credentials/renew", undefined],
    ["PATCH", "ppostgresql/exposure", { exposure: "private" }],
    ["PATCH", "pvalkey/exposure", { exposure: "public" }],
    ["PATCH", "pmariadb/domain", { domain: "my-shop" }],
    ["PATCH", "pclickhouse/custom-domains", { custom_domains: [] }],
    ["PATCH", "pvalkey/image", { image: "registry.example.com/shop:2" }],
    ["PATCH", "ppostgresql/schedule", { cron: "* * * * *" }],
    ["GET", "ppostgresql/job-runs", undefined],
  ] as const)("%s %s answers 400 PROJECT_TYPE_MISMATCH", async (method, path, body) => {
    expect(statusAndCode(await send(method, path, body))).toEqual([400, "PROJECT_TYPE_MISMATCH"]);
  });
});

describe("the settings of a database", () => {
  // Shows: docs/databases-api.md#endpoints: `PATCH /v1/project/:id/name`
  it.each(databaseTypes)("of type %s: name, description, variables", async (type) => {
    const id = `p${type}`;
    expect((await send("PATCH", `${id}/name`, { name: `new-${type}` })).statusCode).toBe(200);
    expect((await send("PATCH", `${id}/description`, { description: "Keeps" })).statusCode).toBe(200);
    const envs = [{ name: "TZ", value: "UTC" }];
    expect((await send("PATCH", `${id}/envs`, { envs })).statusCode).toBe(200);
    const { data } = (await send("GET", id)).json();
    expect(data).toMatchObject({ name: `new-${type}`, description: "Keeps", type_project: type });
    const live = await harness.kube.get<Project>(projectResource, ref(id));
    expect(live.spec.envsFrom).toEqual([{ name: expect.stringMatching(new RegExp(`^${id}-env-`)) }]);
  });
});

describe("the single read", () => {
  // Shows: docs/databases-api.md#endpoints: `GET /v1/project/:id` | `database` (`engine`, `version`
  it("of a database shows what runs, where, and who may connect", async () => {
    const { data } = (await send("GET", "ppostgresql")).json();
    expect(data).toMatchObject({
      plan: "db-premium",
      status: "running",
      instances: 1,
      storage: { persistent: true, capacity: 10 },
      port: PORT,
      database: { engine: "postgresql", version: "17" },
      network_access: { ingress_white_list: [{ cidr: "0.0.0.0/0" }], ingress_black_list: [] },
    });
    expect(data).not.toHaveProperty("domain");
  });

  // Shows: docs/databases-api.md#endpoints: `GET /v1/project` | `type`, `profile` and
  it("of Valkey has its profile, and the instances of its plan", async () => {
    const plan = "queue-premium_plus";
    await harness.project(
      "acme",
      "pqueue",
      databaseSpec("valkey", { plan, profile: "queue", name: "jobs-queue" }),
    );
    const { data } = (await send("GET", "pqueue")).json();
    expect(data).toMatchObject({ managed_service: { profile: "queue" }, instances: 3, status: "creating" });
    const url = "/v1/project?type=valkey&profile=queue";
    const listed = (await harness.app.inject({ url, headers })).json();
    expect(listed.data.projects).toMatchObject([{ id: "pqueue", managed_service: { profile: "queue" } }]);
  });

  // Shows: docs/databases-api.md#endpoints: `GET /v1/project/:id` | `database` (`engine`, `version`
  it("of a substitute shows what really runs", async () => {
    const running = { engine: "chdb", runningVersion: "26.7.1" };
    const patch = { status: { database: running } };
    await harness.kube.patch(projectResource, ref("pclickhouse"), patch, { subresource: "status" });
    await eventually("what runs", async () => {
      const { data } = (await send("GET", "pclickhouse")).json();
      return data.database.running_version;
    });
    const { data } = (await send("GET", "pclickhouse")).json();
    expect(data.database).toEqual({ engine: "chdb", version: "26.8.6.5", running_version: "26.7.1" });
  });
});
