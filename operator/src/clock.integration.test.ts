import { type KubernetesObject, resources } from "@slipway/controller-runtime";
import type { Project } from "@slipway/crds";
import { connectLedger, type Ledger, ledgerTime, migrateToLatest, recordJobRuns } from "@slipway/ledger";
import { systemClock } from "@slipway/process";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  eventually,
  exists,
  startCluster,
  startOperator,
  type TestCluster,
} from "../../test/kit/operator/harness.ts";
import { exampleJob } from "../../test/kit/operator/projects.ts";
import { startPostgres, type TestPostgres } from "../../test/kit/servers/postgresql.ts";
import { ledgerBilling } from "./billing/billing.ts";
import { projectResource } from "./resources.ts";

/** Two whole operators with an election, a real kube-apiserver and a real PostgreSQL. */

const NAMESPACE = "slipway-org-alpha";
const SIX_HOURS = 6 * 3_600_000;
const ref = { namespace: NAMESPACE, name: "job" };

let cluster: TestCluster;
let postgres: TestPostgres;
let ledger: Ledger;

beforeAll(async () => {
  [cluster, postgres] = await Promise.all([startCluster(), startPostgres()]);
  ledger = connectLedger({ url: postgres.url, applicationName: "test", maxConnections: 8 });
  await migrateToLatest(ledger);
  await cluster.client.create(resources.namespaces, { metadata: { name: "slipway-system" } });
});
afterAll(async () => {
  await ledger?.destroy();
  await postgres?.stop();
  await cluster?.stop();
});

/** An operator whose clock is ahead by `aheadMs()`. */
function start(identity: string, aheadMs: () => number) {
  return startOperator(cluster, {
    identity,
    listOrganizations: async () => ["alpha"],
    clock: { ...systemClock, now: () => new Date(Date.now() + aheadMs()) },
    runs: { record: (rows) => recordJobRuns(ledger, rows) },
    billing: ledgerBilling(ledger),
    ledgerTime: () => ledgerTime(ledger),
    leaderElection: { namespace: "slipway-system", name: "slipway-operator" },
  });
}

async function holder(): Promise<string | undefined> {
  type Lease = KubernetesObject & { spec?: { holderIdentity?: string } };
  const lease = { namespace: "slipway-system", name: "slipway-operator" };
  const live = await cluster.client.getOrUndefined<Lease>(resources.leases, lease);
  return live?.spec?.holderIdentity;
}

const project = () => cluster.client.get<Project>(projectResource, ref);

async function hoursCharged(): Promise<number> {
  const { rows } = await sql<{ hours: number }>`select count(*)::int as hours from storage_hours`.execute(
    ledger,
  );
  return rows[0]?.hours ?? -1;
}

// Shows: docs/jobs.md#clocks: a leader six hours ahead decides and charges nothing, and one with the
test("a leader whose clock is set six hours ahead neither decides nor charges anything, and releases its lease to one whose clock is right", async () => {
  let aheadMs = 0;
  const first = await start("first", () => aheadMs);
  await eventually(() => exists(cluster.client, resources.namespaces, { name: NAMESPACE }));
  await cluster.client.create<Project>(
    projectResource,
    exampleJob(ref, {
      storage: { persistent: true, capacity: 1, dirPathToPersist: "/data" },
      job: { cron: "* * * * *" },
    }),
  );
  await eventually(async () => (await project()).status?.job?.scheduledSince !== undefined);
  await eventually(async () => (await hoursCharged()) === 1);
  const before = (await project()).status?.job;

  aheadMs = SIX_HOURS;
  // What wakes every controller and the meter: they would count 360 occurrences as missed, and six hours as begun.
  await cluster.client.patch(projectResource, ref, { metadata: { annotations: { touched: "1" } } });
  expect(String(await first.ended)).toMatch(/clock is ahead of others .*apiserver: 21\d{3}.*ledger: 21\d{3}/);
  expect(await hoursCharged()).toBe(1);
  expect((await project()).status?.job).toEqual(before);

  // One that starts with such a clock waits, unready; its sibling leads.
  const wrong = await start("wrong", () => SIX_HOURS);
  const right = await start("right", () => 0);
  await eventually(async () => (await holder()) === "right");
  expect(await wrong.metrics()).toMatch(/slipway_clock_skew_seconds{reference="apiserver"} 21\d{3}/);
  expect(await wrong.metrics()).toContain("slipway_clock_trusted 0");
  expect(await right.metrics()).toContain("slipway_clock_trusted 1");
  const since = new Date((await project()).status?.job?.scheduledSince ?? 0);
  await eventually(async () => {
    const state = (await project()).status?.job;
    return (
      (state?.missed ?? 0) <= (Date.now() - since.getTime()) / 60_000 && state?.nextScheduledAt !== undefined
    );
  });
  await wrong.stop();
  await right.stop();
  expect(await hoursCharged()).toBe(1);
}, 240_000);
