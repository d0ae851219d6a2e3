import { readFile } from "node:fs/promises";
import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import { type Project, parseCatalog } from "@slipway/crds";
import {
  connectLedger,
  type Ledger,
  listQuotaReservations,
  migrateToLatest,
  quotaRequest,
  releaseQuota,
  reserveQuota,
  setPlanCapacity,
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
  untilUnchanged,
} from "../../../../test/kit/operator/harness.ts";
import { exampleProject } from "../../../../test/kit/operator/projects.ts";
import { startPostgres, type TestPostgres } from "../../../../test/kit/servers/postgresql.ts";
import { projectResource } from "../../resources.ts";
import { ledgerQuotas, type QuotaLedger } from "./quota-ledger.ts";
import { reapQuotas } from "./reaper.ts";
import { QuotaReservations } from "./reservations.ts";

/** An operator on a real apiserver, with a real ledger: what kubectl makes is counted like what the API makes. */

const ALPHA = "slipway-org-alpha";
const BETA = "slipway-org-beta";

let cluster: TestCluster;
let postgres: TestPostgres;
let ledger: Ledger;
let operator: TestOperator;
/** The operator's queries to the ledger, except for the periodic read. */
let queries: string[] = [];

/** The ledger, and a record of its queries. */
function recorded(): QuotaLedger {
  const real = ledgerQuotas(ledger);
  return {
    reserve: (request) => {
      queries.push(`reserve ${request.projectId}`);
      return real.reserve(request);
    },
    release: (identity, condition) => {
      queries.push(`release ${identity.projectId}`);
      return real.release(identity, condition);
    },
    list: real.list,
  };
}
const start = () =>
  startOperator(cluster, { listOrganizations: async () => ["alpha", "beta"], quotas: recorded() });

beforeAll(async () => {
  [cluster, postgres] = await Promise.all([startCluster(), startPostgres()]);
  ledger = connectLedger({ url: postgres.url, applicationName: "test" });
  await migrateToLatest(ledger);
  operator = await start();
  for (const name of [ALPHA, BETA]) {
    await eventually(() => exists(cluster.client, resources.namespaces, { name }));
  }
});
afterAll(async () => {
  await operator?.stop();
  await ledger?.destroy();
  await postgres?.stop();
  await cluster?.stop();
});

const ref = (name: string, namespace = ALPHA) => ({ namespace, name });
const create = (name: string, spec: Partial<Project["spec"]> = {}, namespace = ALPHA) =>
  cluster.client.create<Project>(
    projectResource,
    exampleProject(ref(name, namespace), { plan: "free", exposure: "private", ...spec }),
  );
const patch = (name: string, spec: object) => cluster.client.patch(projectResource, ref(name), { spec });
const remove = (name: string, namespace = ALPHA) =>
  cluster.client.delete(projectResource, ref(name, namespace));
const deleted = (name: string) =>
  eventually(async () => !(await cluster.client.getOrUndefined(projectResource, ref(name))));
const condition = (name: string, expected: string, namespace = ALPHA) =>
  eventually(async () => (await conditionsOf(cluster.client, ref(name, namespace))).includes(expected));
const limit = async (name: string) =>
  (await conditionsOf(cluster.client, ref(name))).find((text) => text.startsWith("LimitExceeded"));
const phase = async (name: string) =>
  (await cluster.client.get<Project>(projectResource, ref(name))).status?.phase;
const deployed = (name: string) => exists(cluster.client, resources.deployments, ref(name));
const reserved = async () =>
  (await listQuotaReservations(ledger)).map((row) => `${row.project_id} ${row.plan} ${row.slots}`).sort();

// Shows: docs/applications.md#conventions: the same rules hold for `kubectl`
// Shows: docs/applications.md#limits: free plan | 2 instances, counted exactly under 50 concurrent
test("a third free instance is refused, and admitted as soon as another project is deleted", async () => {
  await create("first");
  await create("second");
  await condition("first", "Accepted=True/Accepted");
  await condition("second", "Accepted=True/Accepted");
  await create("third");
  await condition("third", "LimitExceeded=True/FreeLimitReached");
  await condition("third", "Accepted=False/FreeLimitReached");
  expect(await phase("third")).toBe("failed");
  expect(await deployed("third")).toBe(false);
  expect(await reserved()).toEqual(["first free 1", "second free 1"]);

  await remove("first");
  await condition("third", "Accepted=True/Accepted");
  expect(await limit("third")).toBeUndefined();
  expect(await reserved()).toEqual(["second free 1", "third free 1"]);
});

test("a paused project releases its quota, and is refused when others have reserved it", async () => {
  await patch("second", { paused: true });
  await eventually(async () => (await reserved()).join() === "third free 1");
  await create("fourth");
  await condition("fourth", "Accepted=True/Accepted");
  await patch("second", { paused: false });
  await condition("second", "LimitExceeded=True/FreeLimitReached");
  expect(await reserved()).toEqual(["fourth free 1", "third free 1"]);

  await patch("third", { paused: true });
  await condition("second", "Accepted=True/Accepted");
  expect(await reserved()).toEqual(["fourth free 1", "second free 1"]);
  await remove("third");
  await deleted("third");
});

test("more instances and another plan are counted; a refused change leaves what runs unchanged", async () => {
  await patch("second", { instances: 2 });
  await condition("second", "LimitExceeded=True/FreeLimitReached");
  const deployment = await cluster.client.get<KubernetesObject & { spec: { replicas: number } }>(
    resources.deployments,
    ref("second"),
  );
  expect(deployment.spec.replicas).toBe(1);
  expect(await reserved()).toEqual(["fourth free 1", "second free 1"]);

  await patch("fourth", { plan: "basic" });
  await condition("second", "Accepted=True/Accepted");
  expect(await reserved()).toEqual(["fourth basic 1", "second free 2"]);
});

// Shows: docs/applications.md#errors-project-creation: 409 | `INSUFFICIENT_PLAN_CAPACITY`
test("a plan's capacity counts over organizations, and frees in any of them", async () => {
  await setPlanCapacity(ledger, "basic", 1);
  await create("elsewhere", { plan: "basic" }, BETA);
  await condition("elsewhere", "LimitExceeded=True/PlanCapacityReached", BETA);
  await remove("fourth");
  await condition("elsewhere", "Accepted=True/Accepted", BETA);
  await setPlanCapacity(ledger, "basic", null);
  expect(await reserved()).toEqual(["elsewhere basic 1", "second free 2"]);
});

test("an unchanged platform writes nothing and sends the ledger no query, also after a restart", async () => {
  const before = await untilUnchanged(cluster, () => queries.length);
  queries = [];
  await operator.stop();
  operator = await start();
  await untilUnchanged(cluster, () => queries.length);
  operator.catalogChanged();
  await untilUnchanged(cluster, () => queries.length);
  expect(queries).toEqual([]);
  expect((await cluster.operatorWrites()).slice(before)).toEqual([]);
});

test("while the ledger is unavailable a new project waits, accepted ones continue, and all recovers automatically", async () => {
  await postgres.crash();
  await operator.stop();
  operator = await start();
  await create("waiting", { plan: "basic" });
  await condition("waiting", "Accepted=False/LedgerUnavailable");
  expect(await phase("waiting")).toBe("creating");
  expect(await deployed("waiting")).toBe(false);
  // Its children are kept as ever, although its quota cannot be queried.
  await cluster.client.delete(resources.deployments, ref("second"));
  await eventually(() => deployed("second"));
  expect(await conditionsOf(cluster.client, ref("second"))).toContain("Accepted=True/Accepted");

  await postgres.restart();
  await condition("waiting", "Accepted=True/Accepted");
  expect(await reserved()).toEqual(["elsewhere basic 1", "second free 2", "waiting basic 1"]);
});

test("a deletion does not wait for the ledger, and the reaper releases the quota", async () => {
  await postgres.crash();
  await remove("waiting");
  await deleted("waiting");
  await postgres.restart();
  await eventually(async () => (await reserved()).includes("waiting basic 1"));
  // A creation under way: a quota without a project, for the moment.
  const text = await readFile(
    new URL("../../../../charts/slipway/files/catalog.yaml", import.meta.url),
    "utf8",
  );
  const spec = exampleProject(ref("young"), { plan: "basic" }).spec;
  const plan = parseCatalog(text).httpPlans.find((each) => each.plan === "basic");
  await reserveQuota(ledger, quotaRequest({ organizationId: "alpha", projectId: "young" }, spec, plan));
  await ledger
    .updateTable("project_slots")
    .set({ taken_at: new Date(Date.now() - 180_000) })
    .where("project_id", "!=", "young")
    .execute();

  const projects = { hasSynced: true, get: () => undefined };
  const quotas = new QuotaReservations(ledgerQuotas(ledger), silentLogger, () => performance.now());
  const reaper = { quotas, client: cluster.client, projects: projects as never, log: silentLogger };
  await reapQuotas(reaper, new AbortController().signal);
  expect(await reserved()).toEqual(["elsewhere basic 1", "second free 2", "young basic 1"]);
  await releaseQuota(ledger, "young", "alpha");
});
