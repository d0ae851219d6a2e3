import { resources } from "@slipway/controller-runtime";
import type { BillableState, Project } from "@slipway/crds";
import { billableHistories, connectLedger, type Ledger, migrateToLatest } from "@slipway/ledger";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  eventually,
  exists,
  startCluster,
  startOperator,
  type TestCluster,
  type TestProcess,
  untilUnchanged,
  whileServed,
} from "../../../test/kit/operator/harness.ts";
import { exampleProject, exampleWorker } from "../../../test/kit/operator/projects.ts";
import { TcpProxy } from "../../../test/kit/processes/tcp-proxy.ts";
import { startPostgres, type TestPostgres } from "../../../test/kit/servers/postgresql.ts";
import { projectResource } from "../resources.ts";
import { ledgerMetering } from "./metering.ts";

/** Between operator and ledger is a network that drops every packet silently. */

const namespace = "slipway-org-alpha";

let cluster: TestCluster;
let postgres: TestPostgres;
let proxy: TcpProxy;
let direct: Ledger;
let ledger: Ledger;
let operator: TestProcess;

const start = (metersPlans = true) =>
  startOperator(cluster, {
    listOrganizations: async () => ["alpha"],
    ingressProbe: async () => "serving",
    metering: ledgerMetering(ledger),
    metersPlans,
  });

beforeAll(async () => {
  [cluster, postgres] = await Promise.all([startCluster(), startPostgres()]);
  proxy = new TcpProxy({ host: "127.0.0.1", port: postgres.port });
  await proxy.up();
  direct = connectLedger({ url: postgres.url, applicationName: "test" });
  await migrateToLatest(direct);
  const url = postgres.url.replace(String(postgres.port), String(proxy.port));
  ledger = connectLedger({ url, applicationName: "slipway-operator", maxConnections: 4 });
  operator = await start();
  await eventually(() => exists(cluster.client, resources.namespaces, { name: namespace }));
});
afterAll(async () => {
  proxy?.stall(false);
  await operator?.stop();
  await Promise.all([ledger?.destroy(), direct?.destroy()]);
  await proxy?.down();
  await postgres?.stop();
  await cluster?.stop();
});

const ref = (name: string) => ({ namespace, name });
const get = (name: string) => cluster.client.get<Project>(projectResource, ref(name));
const patch = (name: string, spec: object) => cluster.client.patch(projectResource, ref(name), { spec });
const listed = async (name: string) => (await get(name)).status?.billing?.changes ?? [];
const historyOf = async (uid = "") => (await billableHistories(direct, [uid]))[0];
const statesOf = async (uid: string | undefined) =>
  (await historyOf(uid))?.changes.map(({ at: _, ...state }) => state) ?? [];
/** Until as many are in the ledger. */
const recorded = (uid: string | undefined, count: number) =>
  eventually(async () => {
    const states = await statesOf(uid);
    return states.length === count && states;
  });
const running = (name: string) =>
  whileServed(cluster.client, ref(name), async () => {
    const project = await get(name);
    return project.status?.phase === "running" && project;
  });

const basic: BillableState = {
  plan: "basic",
  paymentMode: "hourly",
  renews: true,
  instances: 1,
  paused: false,
  billedGb: 0,
};

// Shows: docs/billing.md#what-is-recorded: A project's history is a list of changes
test("what an application has is recorded with each change, and then nothing is written", async () => {
  const created = await cluster.client.create<Project>(
    projectResource,
    exampleProject(ref("shop"), { plan: "basic", instances: 1 }),
  );
  const { uid } = created.metadata;
  expect(await recorded(uid, 1)).toEqual([basic]);
  await running("shop");
  await patch("shop", { instances: 2 });
  await recorded(uid, 2);
  await patch("shop", { plan: "premium", paymentMode: "monthly" });
  await recorded(uid, 3);
  await patch("shop", { paused: true });
  await recorded(uid, 4);
  await patch("shop", { paused: false });
  const two = { ...basic, instances: 2 };
  const premium = { ...two, plan: "premium", paymentMode: "monthly" } as const;
  expect(await recorded(uid, 5)).toEqual([basic, two, premium, { ...premium, paused: true }, premium]);
  await running("shop");
  // Those that the ledger has were dropped with the last one.
  expect((await listed("shop")).length).toBeLessThanOrEqual(2);
  await untilUnchanged(cluster);
  const writes = async () =>
    (await cluster.operatorWrites()).filter((write) => write.includes("/projects/shop"));
  const before = await writes();
  // Each operator reconciles every project once when it begins, before those that come later.
  await operator.stop();
  operator = await start();
  const later = exampleProject(ref("later"), { plan: "basic", instances: 1 });
  await recorded((await cluster.client.create<Project>(projectResource, later)).metadata.uid, 1);
  await untilUnchanged(cluster);
  expect(await writes()).toEqual(before);
});

// Shows: docs/billing.md#what-is-recorded: of an application or a worker the persistent capacity of its volume
test("a worker's volume is billed, a rejected change is not, and a pause of a rejected project is", async () => {
  const storage = { persistent: true, capacity: 2, dirPathToPersist: "/data" } as const;
  const worker = exampleWorker(ref("worker"), { plan: "basic", instances: 1, storage });
  const { uid } = (await cluster.client.create<Project>(projectResource, worker)).metadata;
  const one = { ...basic, billedGb: 2 };
  expect(await recorded(uid, 1)).toEqual([one]);
  await patch("worker", { plan: "no-such-plan" });
  await eventually(async () => {
    const { conditions = [] } = (await get("worker")).status ?? {};
    return conditions.some(({ reason }) => reason === "UnknownPlan");
  });
  await patch("worker", { paused: true });
  expect(await recorded(uid, 2)).toEqual([one, { ...one, paused: true }]);
});

// Shows: docs/adr/0032-recorded-changes.md#decision: the number of its Deployment, which an autoscaler may have set
test("of an autoscaled application the autoscaler's number is recorded", async () => {
  const autoscaling = { enabled: true, maxInstances: 5, cpuTargetPercentage: 60 };
  const project = exampleProject(ref("scaled"), { plan: "premium", instances: 1, autoscaling });
  const { uid } = (await cluster.client.create<Project>(projectResource, project)).metadata;
  await recorded(uid, 1);
  await running("scaled");
  await cluster.client.patch(resources.deployments, ref("scaled"), { spec: { replicas: 4 } });
  expect(await recorded(uid, 2)).toEqual(
    [1, 4].map((instances) => ({ ...basic, plan: "premium", instances })),
  );
});

// Shows: docs/adr/0032-recorded-changes.md#decision: A ledger that is away delays it alone
test("while the ledger is away changes wait in the status, in order, and a deleted project waits for its end", async () => {
  const project = exampleProject(ref("late"), { plan: "basic", instances: 1 });
  const { uid } = (await cluster.client.create<Project>(projectResource, project)).metadata;
  await recorded(uid, 1);
  await running("late");
  proxy.stall(true);
  for (const instances of [2, 3]) {
    await patch("late", { instances });
    await eventually(async () => (await listed("late")).at(-1)?.instances === instances);
  }
  await cluster.client.delete(projectResource, ref("late"), {});
  const deleted = await eventually(async () => {
    const current = await get("late");
    return current.status?.billing?.changes.at(-1)?.deleted && current;
  });
  await operator.stop();
  operator = await start();
  await eventually(async () => {
    const { conditions = [] } = (await get("late")).status ?? {};
    return conditions.some(
      ({ type, message }) => type === "Terminating" && message?.includes("being recorded"),
    );
  });
  expect(await statesOf(uid)).toEqual([basic]);
  proxy.stall(false);
  await eventually(
    async () => (await cluster.client.getOrUndefined(projectResource, ref("late"))) === undefined,
  );
  expect(await statesOf(uid)).toEqual([1, 2, 3].map((instances) => ({ ...basic, instances })));
  const { deletedAt } = (await historyOf(uid)) ?? {};
  expect(deletedAt).toBeGreaterThanOrEqual(Date.parse(deleted.metadata.deletionTimestamp ?? ""));
});

// Shows: docs/adr/0032-recorded-changes.md#decision: A history goes on after what the ledger has
test("a status that went back to an earlier state goes on after the ledger's history", async () => {
  const project = exampleProject(ref("back"), { plan: "basic", instances: 1 });
  const { uid } = (await cluster.client.create<Project>(projectResource, project)).metadata;
  await recorded(uid, 1);
  await running("back");
  for (const count of [2, 3]) {
    await patch("back", { instances: count });
    await recorded(uid, count);
  }
  await operator.stop();
  const { status, ...current } = await get("back");
  const first = { ...status?.billing?.changes.at(-1), number: 2, instances: 1 };
  await cluster.client.updateStatus(projectResource, {
    ...current,
    status: { ...status, billing: { changes: [first] } },
  } as Project);
  operator = await start();
  const states = await recorded(uid, 4);
  expect(states.map(({ instances }) => instances)).toEqual([1, 2, 3, 3]);
  const { rows } = await sql<{ number: number }>`
    select number from billable_changes where project_uid = ${uid} order by at, number`.execute(direct);
  expect(rows.map(({ number }) => number)).toEqual([1, 2, 3, 4]);
});

test("nothing is reported where plans are not metered", async () => {
  await operator.stop();
  operator = await start(false);
  await cluster.client.create<Project>(projectResource, exampleProject(ref("free"), { plan: "basic" }));
  const { status, metadata } = await running("free");
  expect(status?.billing).toBeUndefined();
  const writes = await untilUnchanged(cluster);
  expect(await historyOf(metadata.uid)).toBeUndefined();
  // Turned on, each project is written once.
  await operator.stop();
  operator = await start();
  await recorded((await get("free")).metadata.uid, 1);
  expect(await untilUnchanged(cluster)).toBe(writes + 1);
});
