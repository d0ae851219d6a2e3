import { afterAll, expect, test } from "vitest";
import {
  apiClient,
  createProject,
  deleteProjects,
  httpProject,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { cluster, exec } from "./support/cluster.ts";
import { createDatabase, databaseProject, podsOfDatabase, untilReady } from "./support/databases.ts";
import { eventually } from "./support/eventually.ts";
import { throughIngress, untilServing } from "./support/ingress.ts";
import { createOrganization } from "./support/organization.ts";
import { namespaceOf, stack } from "./support/stack.ts";
import { traffic } from "./support/traffic.ts";
import { valkeyProject } from "./support/valkey.ts";

/** Applications that refer to databases, on real engines. */

const call = apiClient();
const namespace = namespaceOf(stack.organization);
const made: string[] = [];
const clients: string[] = [];
afterAll(async () => {
  for (const name of clients) {
    await cluster.core.deleteNamespacedPod({ namespace, name, gracePeriodSeconds: 0 });
  }
  await deleteProjects(call, made);
});

const timeout = 600_000;
const to = (reference: string) => `\${project:${reference}}`;

/** Runs a client of an engine's own in a pod of the organization, with the image of one of the database's pods. */
async function startClient(database: { id: string; namespace: string }): Promise<string> {
  const [pod] = await podsOfDatabase(database);
  const image = pod?.spec?.containers.find(({ name }) => name === "database")?.image;
  const name = uniqueName("client");
  await cluster.core.createNamespacedPod({
    namespace,
    body: {
      metadata: { name, labels: { "slipway.dev/project": name } },
      spec: {
        automountServiceAccountToken: false,
        terminationGracePeriodSeconds: 0,
        containers: [
          {
            name: "client",
            image,
            command: ["/bin/sh", "-c", "sleep 3600"],
            securityContext: { allowPrivilegeEscalation: false, runAsUser: 65_532 },
          },
        ],
      },
    },
  });
  clients.push(name);
  await eventually(async () => {
    const { status } = await cluster.core.readNamespacedPod({ namespace, name });
    expect(status?.phase).toBe("Running");
  });
  return name;
}

/** What a variable is in the application's process. */
async function variable(domain: string, name: string): Promise<string> {
  const { status, text } = await throughIngress(domain, `/env/${name}`);
  expect(status).toBe(200);
  return text;
}

const clientRuns = (pod: string, ...command: string[]) => exec(namespace, pod, "client", command);

interface WithReferences {
  status: string;
  references?: { ready: boolean; reason?: string; message?: string };
}
const read = async (id: string) => (await call<WithReferences>("GET", `/v1/project/${id}`)).body.data;

test("an application waits for its databases, connects to them by reference, and is rolled when a password is renewed", {
  timeout,
}, async () => {
  const postgresql = databaseProject("db-basic", { type_project: "postgresql", version: "17" });
  const database = await createDatabase(call, postgresql);
  const cache = await createDatabase(call, valkeyProject("cache-basic", "cache"));
  made.push(database.id, cache.id);
  const envs = [
    { name: "DATABASE_URL", value: to(`${postgresql.name}.connection_string`) },
    { name: "CACHE_URL", value: to(`${cache.id}.connection_string`) },
    { name: "LITERAL", value: `$${to("shop-db.password")}` },
  ];
  const app = await createProject(call, httpProject(uniqueName("refers"), { envs }));
  made.push(app.project_id);

  // The databases have just been asked for, and take longer than the API to answer.
  const first = await eventually(async () => {
    const { references } = (await read(app.project_id)) ?? {};
    expect(references).toBeDefined();
    return references;
  });
  expect(first).toMatchObject({ ready: false, reason: "ReferencePending" });
  expect(first?.message).toContain(" -> ");

  await untilReady(database);
  await untilReady(cache);
  await untilStatus(call, app.project_id, "running");
  await untilServing(app.domain);
  expect((await read(app.project_id))?.references).toEqual({ ready: true });
  expect(await variable(app.domain, "LITERAL")).toBe(to("shop-db.password"));

  const psql = await startClient(database);
  const query = (url: string) => clientRuns(psql, "psql", url, "-Atc", "select 'connected'");
  const before = await variable(app.domain, "DATABASE_URL");
  expect((await query(before)).output.trim()).toBe("connected");
  const valkeyClient = await startClient(cache);
  const cacheUrl = await variable(app.domain, "CACHE_URL");
  const ping = await clientRuns(valkeyClient, "valkey-cli", "--insecure", "-u", cacheUrl, "ping");
  expect(ping.output).toContain("PONG");

  const requests = traffic(app.domain);
  const renewed = await call<{ connection: { password: string } }>(
    "POST",
    `/v1/project/${database.id}/database/credentials/renew`,
  );
  expect(renewed.status).toBe(200);
  const password = renewed.body.data?.connection.password ?? "";
  // An instance that ends may answer once more.
  const after = await eventually(
    async () => {
      const url = await variable(app.domain, "DATABASE_URL");
      expect(url).toContain(`:${password}@`);
      return url;
    },
    { within: 180_000, every: 500 },
  );
  await untilStatus(call, app.project_id, "running");
  const { failures, sent } = await requests.stop();
  expect(failures).toEqual([]);
  console.log(`a renewed password rolled the application: 0 of ${sent} requests failed`);
  expect((await query(after)).output.trim()).toBe("connected");

  const shown = await call<{ name: string; value: string }[]>("GET", `/v1/project/${app.project_id}/envs`);
  expect(shown.body.data).toEqual(envs);
});

test("another organization's database is refused as one that does not exist", { timeout }, async () => {
  const body = databaseProject("db-basic", { type_project: "postgresql", version: "17" });
  const database = await createDatabase(call, body);
  made.push(database.id);
  const other = await createOrganization("References");
  const theirs = apiClient(other.api_key);
  const app = await createProject(theirs, httpProject(uniqueName("foreign")));
  try {
    const refusal = async (name: string) => {
      const envs = [{ name: "DATABASE_URL", value: to(`${name}.password`) }];
      const answer = await theirs("PATCH", `/v1/project/${app.project_id}/envs`, { envs });
      expect([answer.status, answer.body.code]).toEqual([400, "REFERENCE_UNKNOWN"]);
      return JSON.stringify(answer.body).replaceAll(name, "NAME");
    };
    expect(await refusal(database.id)).toBe(await refusal("pdoesnotexist"));
    expect(await refusal(body.name)).toBe(await refusal("no-such-database"));
  } finally {
    await deleteProjects(theirs, [app.project_id]);
  }
});
