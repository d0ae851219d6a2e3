import { afterAll, expect, test } from "vitest";
import { isLong } from "../kit/long.ts";
import {
  apiClient,
  createProject,
  deleteProjects,
  httpProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { answerOf, withClickhouse } from "./support/clickhouse.ts";
import {
  type Connection,
  createDatabase,
  type DatabaseProject,
  databaseProject,
  readDatabase,
  untilReady,
} from "./support/databases.ts";
import { eventually } from "./support/eventually.ts";
import { throughIngress, untilServing } from "./support/ingress.ts";
import { connectMariadb } from "./support/mariadb.ts";
import { killOperator, leader } from "./support/operator.ts";
import { connectPostgresql } from "./support/postgresql.ts";
import { traffic } from "./support/traffic.ts";
import { connectValkey, valkeyProject } from "./support/valkey.ts";

/** A renewal under the traffic of an application that opens a connection of its own for each request. */

const call = apiClient();
const made: string[] = [];
afterAll(() => deleteProjects(call, made));

const timeout = 900_000;
/** Connections a second. Each is a process of PostgreSQL and a key derivation: two processors shared by the whole stack bear few more. */
const RATE = isLong ? 50 : 10;

interface Engine {
  create: object;
  /** Logs in from outside the cluster. @throws when the engine refuses it */
  login(project: DatabaseProject): Promise<unknown>;
}

const engines: Readonly<Record<string, Engine>> = {
  postgresql: {
    create: databaseProject("db-premium", { type_project: "postgresql", version: "17" }),
    login: async (project) => (await connectPostgresql(project)).end(),
  },
  mariadb: {
    create: databaseProject("db-premium", { type_project: "mariadb", version: "11", instances: 3 }),
    login: async (project) => (await connectMariadb(project)).end(),
  },
  clickhouse: {
    create: databaseProject("analytics-basic", { type_project: "clickhouse", version: "26.8.6.5" }),
    login: ({ connection }) => withClickhouse(connection, (client) => answerOf(client, "SELECT 1")),
  },
  valkey: {
    create: valkeyProject("cache-basic", "cache"),
    login: async (project) => (await connectValkey(project)).disconnect(),
  },
};

/** The same address with what an application was given. */
function connectionAs({ connection }: DatabaseProject, { username, password }: URL): Connection {
  const address = new URL(connection.connectionString);
  [address.username, address.password] = [username, password];
  return { ...connection, username, password, connectionString: address.href };
}

interface Read {
  previous_password_expires_at?: string;
}
const expiresAt = async ({ id }: DatabaseProject) =>
  (await call<Read>("GET", `/v1/project/${id}/database/connection`)).body.data?.previous_password_expires_at;

// Shows: docs/references.md#renewing-a-password: instances that were started with the previous password keep logging in with it
test.for(isLong ? Object.entries(engines) : Object.entries(engines).slice(0, 2))(
  "a renewal of %s fails no request, and ends the password before it",
  {
    timeout,
  },
  async ([type, { create, login }]) => {
    const database = await createDatabase(call, create);
    made.push(database.id);
    await untilReady(database, 420_000);
    const envs = [{ name: "DATABASE_URL", value: `\${project:${database.id}.connection_string}` }];
    const app = await createProject(call, httpProject(uniqueName("renewal"), { envs, instances: 2 }));
    made.push(app.project_id);
    await untilStatus(call, app.project_id, "running");
    await untilServing(app.domain);
    const variable = async () => {
      const { status, text } = await throughIngress(app.domain, "/env/DATABASE_URL");
      expect(status).toBe(200);
      return new URL(text);
    };
    const as = (url: URL): DatabaseProject => ({ ...database, connection: connectionAs(database, url) });

    const before = await variable();
    await login(as(before));
    expect(await throughIngress(app.domain, "/connect/DATABASE_URL")).toMatchObject({ status: 200 });
    const requests = traffic(app.domain, "/connect/DATABASE_URL", RATE);
    const renewed = await call<{ connection: Connection } & Read>(
      "POST",
      `/v1/project/${database.id}/database/credentials/renew`,
    );
    expect(renewed.status).toBe(200);
    expect(renewed.body.data?.previous_password_expires_at).toBeDefined();
    await login(as(before));
    // The next leader knows nothing but what is in the cluster.
    await eventually(async () => killOperator(await leader()), { every: 200 });

    await eventually(
      async () => {
        expect((await variable()).password).toBe(renewed.body.data?.connection.password);
        expect(await expiresAt(database)).toBeUndefined();
      },
      { within: 300_000, every: 1_000 },
    );
    await untilStatus(call, app.project_id, "running");
    const { failures, sent } = await requests.stop();
    expect(failures).toEqual([]);
    console.log(`a renewal of ${type} under ${RATE} connections a second: 0 of ${sent} requests failed`);

    await expect(login(as(before))).rejects.toThrow();
    await login(as(await variable()));
    const { status } = await readDatabase(database);
    expect(status?.database).not.toHaveProperty("previousPassword");
  },
);

// Shows: docs/references.md#renewing-a-password: `revoke_previous: true` in the body, as after a leak
test("a renewal that is to revoke the previous password ends it immediately, whatever uses it", {
  timeout,
}, async () => {
  const { create, login } = engines.valkey as Engine;
  const database = await createDatabase(call, { ...create, name: uniqueName("revoked") });
  made.push(database.id);
  await untilReady(database);
  const envs = [{ name: "DATABASE_URL", value: `\${project:${database.id}.connection_string}` }];
  const app = await createProject(call, httpProject(uniqueName("revoked"), { envs }));
  made.push(app.project_id);
  await untilStatus(call, app.project_id, "running");
  await login(database);
  const path = `/v1/project/${database.id}/database/credentials/renew`;
  const renewed = await call<Read>("POST", path, { revoke_previous: true });
  expect(renewed.status).toBe(200);
  expect(renewed.body.data?.previous_password_expires_at).toBeUndefined();
  await expect(login(database)).rejects.toThrow("WRONGPASS");
});
