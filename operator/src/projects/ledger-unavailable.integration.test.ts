import { resources } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import {
  connectLedger,
  type Ledger,
  listDeployments,
  listQuotaReservations,
  migrateToLatest,
  recordDeployment,
} from "@slipway/ledger";
import { silentLogger } from "@slipway/process";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  conditionsOf,
  eventually,
  exists,
  startCluster,
  startOperator,
  type TestCluster,
  type TestOperator,
} from "../../../test/kit/operator/harness.ts";
import { exampleProject } from "../../../test/kit/operator/projects.ts";
import { TcpProxy } from "../../../test/kit/processes/tcp-proxy.ts";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import { projectResource } from "../resources.ts";
import { ledgerDeployments, reapDeployments } from "./deployments/reaper.ts";
import { ledgerQuotas } from "./quotas/quota-ledger.ts";

/** A network between operator and ledger that drops every packet silently. */

const ALPHA = "slipway-org-alpha";

let cluster: TestCluster;
let postgres: TestPostgres;
let proxy: TcpProxy;
let direct: Ledger;
let ledger: Ledger;
let operator: TestOperator;

beforeAll(async () => {
  [cluster, postgres] = await Promise.all([startCluster(), startPostgres()]);
  proxy = new TcpProxy({ host: "127.0.0.1", port: postgres.port });
  await proxy.up();
  direct = connectLedger({ url: postgres.url, applicationName: "test" });
  await migrateToLatest(direct);
  const url = postgres.url.replace(String(postgres.port), String(proxy.port));
  ledger = connectLedger({ url, applicationName: "slipway-operator", maxConnections: 4 });
  operator = await startOperator(cluster, {
    listOrganizations: async () => ["alpha"],
    quotas: ledgerQuotas(ledger),
    recordDeployment: (row) => recordDeployment(ledger, row),
  });
  await eventually(() => exists(cluster.client, resources.namespaces, { name: ALPHA }));
});
afterAll(async () => {
  proxy?.stall(false);
  await operator?.stop();
  await Promise.all([ledger?.destroy(), direct?.destroy()]);
  await proxy?.down();
  await postgres?.stop();
  await cluster?.stop();
});

const ref = (name: string) => ({ namespace: ALPHA, name });
const uids = new Map<string, string>();
const create = async (name: string) => {
  const project = exampleProject(ref(name), { plan: "basic", exposure: "private" });
  const { metadata } = await cluster.client.create<Project>(projectResource, project);
  uids.set(name, metadata.uid ?? "");
};
const patch = (name: string, spec: object) => cluster.client.patch(projectResource, ref(name), { spec });
const condition = (name: string, expected: string) =>
  eventually(async () => (await conditionsOf(cluster.client, ref(name))).includes(expected), 90_000);
const isSeen = async (name: string) => {
  const { metadata, status } = await cluster.client.get<Project>(projectResource, ref(name));
  return status?.observedGeneration === metadata.generation;
};
const history = async (projectId: string) => {
  const window = { from: new Date(0), to: new Date(Date.now() + 60_000) };
  const rows = await listDeployments(direct, {
    organizationId: "alpha",
    projectId,
    projectUid: uids.get(projectId) ?? "",
    ...window,
  });
  return rows.map(({ status, finished_at }) => `${status} ${finished_at === null ? "open" : "ended"}`);
};

test("a deletion records the end of the deployment under way", async () => {
  await create("short");
  await eventually(async () => (await history("short")).join() === "in_progress open");
  await cluster.client.delete(projectResource, ref("short"));
  await eventually(async () => !(await cluster.client.getOrUndefined(projectResource, ref("short"))));
  expect(await history("short")).toEqual(["superseded ended"]);
});

test("delays no project for long", async () => {
  for (const name of ["kept", "deleted"]) {
    await create(name);
    await eventually(async () => (await history(name)).join() === "in_progress open");
  }
  proxy.stall(true);
  await Promise.all(["new", "newer", "newest"].map(create));
  for (const name of ["new", "newer", "newest"]) {
    await condition(name, "Accepted=False/LedgerUnavailable");
  }
  // The same projects are reconciled again, and so are the others.
  await patch("new", { name: "renamed-while-silent" });
  await eventually(() => isSeen("new"), 90_000);
  await cluster.client.delete(resources.deployments, ref("kept"));
  await eventually(() => exists(cluster.client, resources.deployments, ref("kept")), 90_000);
  await cluster.client.delete(projectResource, ref("deleted"));
  await eventually(
    async () => !(await cluster.client.getOrUndefined(projectResource, ref("deleted"))),
    20_000,
  );

  proxy.stall(false);
  for (const name of ["new", "newer", "newest"]) {
    await condition(name, "Accepted=True/Accepted");
  }
  const reserved = (await listQuotaReservations(direct)).map((row) => row.project_id);
  expect(reserved).toEqual(expect.arrayContaining(["kept", "new", "newer", "newest"]));
});

test("what was not recorded is ended by the reaper, and nothing that is under way", async () => {
  // The state of a project that was deleted while the ledger was unavailable.
  await direct
    .updateTable("deployments")
    .set({ status: "in_progress", finished_at: null })
    .where("project_id", "=", "deleted")
    .execute();
  const options = {
    deployments: ledgerDeployments(direct),
    client: cluster.client,
    projects: { hasSynced: true, get: () => undefined } as never,
    log: silentLogger,
  };
  const { signal } = new AbortController();
  await reapDeployments(options, signal);
  expect(await history("deleted")).toEqual(["in_progress open"]);
  await direct
    .updateTable("deployments")
    .set({ created_at: new Date(Date.now() - 180_000) })
    .execute();
  await reapDeployments(options, signal);
  expect(await history("deleted")).toEqual(["superseded ended"]);
  expect(await history("kept")).toEqual(["in_progress open"]);
});
