/**
 * Hours that pass within minutes: the operator as a process of its own, over a real apiserver and a real ledger, with a clock that the test sets,
 * killed at random moments, while projects of every kind are created, changed and deleted (--long).
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { resources } from "@slipway/controller-runtime";
import type { BillableState, PriceList, Project } from "@slipway/crds";
import {
  billableHistories,
  connectLedger,
  insertOrganization,
  type Ledger,
  migrateToLatest,
  recordBuild,
} from "@slipway/ledger";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { root } from "../../hack/lib/paths.ts";
import { projectResource } from "../../operator/src/resources.ts";
import { auditForged } from "../kit/ledger/audit-forged.ts";
import { forge } from "../kit/ledger/forge.ts";
import { errorsIn, sealedErrorsIn } from "../kit/ledger/planted-errors.ts";
import { sealAll } from "../kit/ledger/seal-all.ts";
import { isLong } from "../kit/long.ts";
import { serveDeployment, startCluster, type TestCluster } from "../kit/operator/harness.ts";
import { exampleJob } from "../kit/operator/projects.ts";
import {
  behindAt,
  CLOCK_VARIABLE,
  type ClockSchedule,
  caughtUpAt,
  evenSteps,
  ledgerClock,
} from "../kit/processes/compressed-clock.ts";
import { eventually } from "../kit/processes/eventually.ts";
import { startKilling } from "../kit/processes/killed-operator.ts";
import { OperatorProcess } from "../kit/processes/operator-process.ts";
import { startPostgres, type TestPostgres } from "../kit/servers/postgresql.ts";
import { compareCharges, endOfHour } from "./compared-charges.ts";
import {
  buildOf,
  databaseImages,
  namespace,
  pricesUntil,
  projects,
  ref,
  STATE,
  volume,
} from "./compressed-projects.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** How long a change may take to be in the ledger, over operators that are killed, on a busy machine. */
const WITHIN_MS = 600_000;

/** Two hours in steps of ten minutes, an hour a minute, and a day in steps of two hours. */
const dayBehind = 24 * HOUR;
const schedule: ClockSchedule = {
  began: Date.now() + MINUTE,
  everyMs: 10_000,
  behindMs: [
    ...evenSteps(10 * MINUTE, 12).map((ms) => ms + dayBehind),
    ...evenSteps(2 * HOUR, dayBehind / (2 * HOUR)),
  ],
  pauseDivisor: 6,
};
const clockNow = (): number => Date.now() - behindAt(schedule, Date.now());
const untilClock = (at: number) => eventually("the clock", () => clockNow() >= at, WITHIN_MS);

const dir = mkdtempSync(join(tmpdir(), "slipway-hour-"));
let cluster: TestCluster;
let postgres: TestPostgres;
let ledger: Ledger;
let operator: OperatorProcess;
/** What goes on beside the test, however far that came. */
const stops: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  if (!isLong) {
    return;
  }
  [cluster, postgres] = await Promise.all([startCluster({ isShared: false }), startPostgres()]);
  ledger = connectLedger({ url: postgres.url, applicationName: "test", statementTimeoutMs: 60_000 });
  await migrateToLatest(ledger);
  await insertOrganization(ledger, { id: "alpha", name: "Alpha" });
  for (const statement of ledgerClock(schedule, "slipway").set) {
    await sql.raw(statement).execute(ledger);
  }
  // From the middle of the second hour on there are others.
  await recordPrices(pricesUntil(clockNow() + 95 * MINUTE));
  await cluster.client.create(resources.namespaces, { metadata: { name: "slipway-system" } });
  const images = join(dir, "images.yaml");
  writeFileSync(images, JSON.stringify(databaseImages));
  operator = new OperatorProcess({
    ...{ kubeconfig: cluster.api.kubeconfig, ledgerUrl: postgres.url, identity: "operator", dir },
    env: {
      NODE_OPTIONS: `--import=${join(root, "test/kit/processes/compressed-clock.ts")}`,
      [CLOCK_VARIABLE]: JSON.stringify(schedule),
      SLIPWAY_BILLING_METERING: "true",
      SLIPWAY_DATABASE_IMAGES_FILE: images,
      // An hour that jumps by is no rollout that takes too long.
      SLIPWAY_ROLLOUT_DEADLINE_SECONDS: "3600",
      SLIPWAY_PLAN_CHANGE_SECONDS: "3600",
    },
    restarts: true,
  });
  operator.start();
  await eventually(
    "the organization's namespace",
    () => cluster.client.getOrUndefined(resources.namespaces, { name: namespace }),
    WITHIN_MS,
  );
}, 900_000);
afterAll(async () => {
  await Promise.all(stops.map((stop) => stop()));
  await operator?.kill();
  await ledger?.destroy();
  await postgres?.stop();
  await cluster?.stop();
  rmSync(dir, { recursive: true, force: true });
}, 400_000);

/** The ledger has them already, for nothing but a test records prices of the past. */
async function recordPrices(lists: readonly PriceList[]): Promise<void> {
  await ledger.transaction().execute((transaction) =>
    forge(
      transaction,
      ...lists.map(
        ({ from, plans, gbHour, resources: used = {} }) =>
          `insert into price_lists (from_at, plans, gb_hour, resources)
           values (to_timestamp(${from / 1_000}), '${JSON.stringify(plans)}', '${gbHour}', '${JSON.stringify(used)}')`,
      ),
    ),
  );
}

/** What each project had, in order, as the test changed it. */
const expected = new Map<string, BillableState[]>();
const uids = new Map<string, string>();
const uidOf = (name: string) => uids.get(name) ?? "";
const historyOf = async (name: string) => (await billableHistories(ledger, [uidOf(name)]))[0];
const statesOf = async (name: string) =>
  ((await historyOf(name))?.changes ?? []).map(({ at: _, ...state }) => state);

/** Waits until the ledger has what the test expects of a project, and no more. */
const recorded = (name: string) =>
  eventually(
    `${name}: ${JSON.stringify(expected.get(name)?.at(-1))}`,
    async () => (await statesOf(name)).length >= (expected.get(name)?.length ?? 0),
    WITHIN_MS,
  );

/** Changes a project's spec, by which it has something else from then on. */
async function change(name: string, spec: object, state: Partial<BillableState>): Promise<void> {
  const states = expected.get(name) ?? [];
  expected.set(name, [...states, { ...(states.at(-1) ?? STATE), ...state }]);
  await cluster.client.patch(projectResource, ref(name), { spec });
  await recorded(name);
}

/** Plays what makes applications serve, until `stop`. */
function serve() {
  let isOver = false;
  const serving = (async () => {
    while (!isOver) {
      for (const name of ["shop", "worker", "contract", "gone"]) {
        await serveDeployment(cluster.client, ref(name)).catch(() => undefined);
      }
      await sleep(500);
    }
  })();
  return async () => {
    isOver = true;
    await serving;
  };
}

/** A status that an operator wrote which saw a change late, and ended then: its time is charged by now. No operator may run. */
async function seeLate(name: string): Promise<void> {
  const states = expected.get(name) ?? [];
  const before = states.at(-1) ?? STATE;
  const late = { ...before, instances: 2 };
  const last = (await historyOf(name))?.changes.at(-1)?.at ?? 0;
  const listed = { number: states.length + 1, at: new Date(last + 5 * MINUTE).toISOString(), ...late };
  const status = { billing: { changes: [listed] } };
  await cluster.client.patch(projectResource, ref(name), { status }, { subresource: "status" });
  // After that it has what its spec says.
  expected.set(name, [...states, late, before]);
}

/** Until a project is charged up to an instant. */
const meteredUntil = (name: string, at: number) =>
  eventually(
    `charges of ${name}`,
    async () => {
      // One that is not killed may have ended itself as the clock stepped.
      operator.start();
      const { rows } = await sql<{ until: Date | null }>`
        select metered_until as until from plan_meters where project_uid = ${uidOf(name)}`.execute(ledger);
      return (rows[0]?.until?.getTime() ?? 0) >= at;
    },
    WITHIN_MS,
  );

/** Until all is charged that was final eleven minutes ago, and no late change waits. @returns that instant */
async function charged(): Promise<number> {
  const finalBefore = Date.now() - 11 * MINUTE;
  await eventually(
    "all is charged",
    async () => {
      const { rows } = await sql<object>`select from plan_meters where late_from is not null`.execute(ledger);
      await sleep(1_000);
      return rows.length === 0 && (await compareCharges(ledger, "alpha", finalBefore)).differing.length === 0;
    },
    WITHIN_MS,
    // What differs then is compared again, and printed.
  ).catch(() => undefined);
  return finalBefore;
}

// Shows: docs/billing.md#metering: after hours without the ledger or the operator the same ones as without
test.skipIf(!isLong)(
  "over hours of a compressed clock, with operators that are killed, all is recorded once and charged exactly, and each planted error is found (--long)",
  async () => {
    const stopServing = serve();
    const stopKilling = startKilling(operator);
    stops.push(stopServing, stopKilling);
    for (const [name, [project, first]] of Object.entries(projects)) {
      const { metadata } = await cluster.client.create<Project>(projectResource, project);
      uids.set(name, metadata.uid ?? "");
      expected.set(name, [first]);
    }
    const storage = volume(3);
    await cluster.client.create(projectResource, exampleJob(ref("nightly"), { storage }));
    const began = clockNow();
    await recordBuild(ledger, buildOf(uidOf("shop"), began));
    await Promise.all(Object.keys(projects).map(recorded));

    await change("cache", { paused: true }, { paused: true });
    await change("maria", { paused: true }, { paused: true });
    await untilClock(((await historyOf("shop"))?.changes[0]?.at ?? 0) + 65 * MINUTE);
    await change("shop", { instances: 3 }, { instances: 3 });
    await change("maria", { plan: "db-premium" }, { plan: "db-premium" });
    await change("worker", { plan: "premium" }, { plan: "premium" });
    await change("contract", { plan: "premium", instances: 2 }, { plan: "premium", instances: 2 });
    await change("pg", { storage: { persistent: true, capacity: 12 } }, { billedGb: 11 });
    await untilClock(endOfHour((await historyOf("shop"))?.changes ?? []));
    await change("shop", { paused: true }, { paused: true });
    await change("maria", { paused: false }, { paused: false });
    await change("clicks", { paused: true }, { paused: true });
    await change("shop", { paused: false, plan: "premium" }, { paused: false, plan: "premium" });
    await change("cache", { paused: false }, { paused: false });
    await cluster.client.delete(projectResource, ref("gone"), {});
    await eventually("the end of gone", async () => (await historyOf("gone"))?.deletedAt, WITHIN_MS);

    await untilClock(caughtUpAt(schedule) - 8 * HOUR);
    const kills = await stopKilling();
    await meteredUntil("worker", clockNow() - HOUR);
    await operator.kill();
    await seeLate("worker");
    operator.start();
    const stopAgain = startKilling(operator);
    stops.push(stopAgain);
    await recorded("worker");
    await change("shop", { instances: 1 }, { instances: 1 });
    await untilClock(caughtUpAt(schedule));
    const all = kills + (await stopAgain());
    const finalBefore = await charged();
    await eventually("the job's storage is charged", async () => (await storageHours()) > 0, WITHIN_MS);
    await operator.stop();
    await stopServing();
    console.log(`killed: ${all}`);
    expect(all).toBeGreaterThan(5);
    // As one does that is read while the clock steps.
    expect(operator.crashes.filter((how) => !how.includes("clock is ahead"))).toEqual([]);

    for (const [name, states] of expected) {
      expect([name, await statesOf(name)]).toEqual([name, states]);
    }
    const { facts, differing } = await compareCharges(ledger, "alpha", finalBefore);
    console.log(`compared: ${facts} facts`);
    expect(differing).toEqual([]);
    expect(facts).toBeGreaterThan(8 * 24);
    const { rows } = await sql<{ kind: string; adjusts: boolean }>`
      select distinct kind, adjusts is not null as adjusts from plan_charges`.execute(ledger);
    const kinds = rows.map(({ kind, adjusts }) => `${kind} ${adjusts}`);
    expect(kinds).toEqual(
      expect.arrayContaining([
        ...["instance_hour", "storage_hour", "term", "credit", "build_minute"].map((kind) => `${kind} false`),
        "instance_hour true",
      ]),
    );
    await auditAndPlant();
  },
  3_600_000,
);

async function storageHours(): Promise<number> {
  const { rows } = await sql<{ count: number }>`select count(*)::int as count from storage_hours`.execute(
    ledger,
  );
  return rows[0]?.count ?? 0;
}

/** Nothing is found, each error that is planted is, and nothing once it is taken back. */
async function auditAndPlant(): Promise<void> {
  const clean = async () => {
    const { findings } = await auditForged(ledger, []);
    expect(findings.kept).toEqual([]);
  };
  await clean();
  await sealAll(ledger);
  await clean();
  const uid = uidOf("shop");
  const storage = `${uidOf("worker")}/storage_hour/0`;
  const target = { uid, hour: `${uid}/instance_hour/0/0`, storage, adds: 2 };
  const missed: string[] = [];
  for (const { what, code, statements } of [...errorsIn(target), ...sealedErrorsIn(target)]) {
    const { findings } = await auditForged(ledger, statements);
    if (!findings.counts.has(code)) {
      missed.push(`${what}: ${JSON.stringify(findings.kept)}`);
    }
    await clean();
  }
  expect(missed).toEqual([]);
}
