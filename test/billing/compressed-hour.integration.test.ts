/**
 * Hours that pass within minutes: the operator as a process of its own, over a real apiserver and a real ledger, with a clock that the test sets,
 * killed at random moments, while projects of every kind are created, changed and deleted (--long).
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { resources } from "@slipway/controller-runtime";
import { type BillableState, type Project, priceListOf } from "@slipway/crds";
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
import { chartCatalog, exampleDatabase } from "../kit/databases/examples.ts";
import { auditForged } from "../kit/ledger/audit-forged.ts";
import { forge } from "../kit/ledger/forge.ts";
import { errorsIn, sealedErrorsIn } from "../kit/ledger/planted-errors.ts";
import { sealAll } from "../kit/ledger/seal-all.ts";
import { isLong } from "../kit/long.ts";
import { serveDeployment, startCluster, type TestCluster } from "../kit/operator/harness.ts";
import { exampleJob, exampleProject, exampleWorker } from "../kit/operator/projects.ts";
import {
  behindAt,
  CLOCK_VARIABLE,
  type ClockSchedule,
  caughtUpAt,
  evenSteps,
  ledgerClock,
} from "../kit/processes/compressed-clock.ts";
import { eventually } from "../kit/processes/eventually.ts";
import { OperatorProcess } from "../kit/processes/operator-process.ts";
import { startPostgres, type TestPostgres } from "../kit/servers/postgresql.ts";
import { compareCharges } from "./compared-charges.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
/** How long a change may take to be in the ledger, over operators that are killed, on a busy machine. */
const WITHIN_MS = 240_000;
const namespace = "slipway-org-alpha";

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
  await recordPrices();
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
}, 400_000);
afterAll(async () => {
  await operator?.kill();
  await ledger?.destroy();
  await postgres?.stop();
  await cluster?.stop();
  rmSync(dir, { recursive: true, force: true });
}, 120_000);

const image = { uid: 100, gid: 102 };
const databaseImages = {
  postgresql: { "17": { ...image, image: "registry.example/postgresql:17" } },
  mariadb: { "11": { ...image, image: "registry.example/mariadb:11" } },
  clickhouse: { "26.8.6.5": { ...image, image: "registry.example/clickhouse:26" } },
  valkey: { "9.1.1": { ...image, image: "registry.example/valkey:9" } },
};

/** Prices of long ago, and the catalog's from the middle of the second hour. Nothing but a test records prices of the past. */
async function recordPrices(): Promise<void> {
  const now = priceListOf(chartCatalog, clockNow() + 95 * MINUTE);
  const { basic, ...others } = now.plans;
  const before = {
    ...now,
    from: clockNow() - 90 * 24 * HOUR,
    gbHour: "0.0701",
    resources: { buildMinute: "0.033" },
    plans: { ...others, ...(basic && { basic: { ...basic, hourly: "2.345678901" } }) },
  };
  await ledger.transaction().execute((transaction) =>
    forge(
      transaction,
      ...[before, now].map(
        ({ from, plans, gbHour, resources: used = {} }) =>
          `insert into price_lists (from_at, plans, gb_hour, resources)
           values (to_timestamp(${from / 1_000}), '${JSON.stringify(plans)}', '${gbHour}', '${JSON.stringify(used)}')`,
      ),
    ),
  );
}

const ref = (name: string) => ({ namespace, name });
const database = (name: string, spec: Partial<Project["spec"]>): Project => ({
  ...exampleDatabase(spec),
  metadata: ref(name),
});
const volume = (capacity: number) => ({ persistent: true, capacity, dirPathToPersist: "/data" }) as const;

const STATE: BillableState = {
  plan: "basic",
  paymentMode: "hourly",
  renews: true,
  instances: 1,
  paused: false,
  billedGb: 0,
};

/** Projects, and what is billed of them first. */
const projects: Record<string, [project: Project, first: BillableState]> = {
  shop: [exampleProject(ref("shop")), STATE],
  worker: [exampleWorker(ref("worker"), { storage: volume(2) }), { ...STATE, billedGb: 2 }],
  contract: [
    exampleProject(ref("contract"), { paymentMode: "monthly" }),
    { ...STATE, paymentMode: "monthly" },
  ],
  gone: [exampleProject(ref("gone"), { plan: "premium" }), { ...STATE, plan: "premium" }],
  // Of a database the capacity beyond the one GB that its plan includes, for each instance.
  pg: [
    database("pg", { plan: "db-basic", storage: { persistent: true, capacity: 10 } }),
    { ...STATE, plan: "db-basic", billedGb: 9 },
  ],
  maria: [
    database("maria", { type: "mariadb", version: "11", plan: "db-basic", instances: 3 }),
    { ...STATE, plan: "db-basic", instances: 3, billedGb: 27 },
  ],
  clicks: [
    database("clicks", {
      ...{ type: "clickhouse", version: "26.8.6.5", plan: "analytics-basic" },
      storage: { persistent: true, capacity: 20 },
    }),
    { ...STATE, plan: "analytics-basic", billedGb: 19 },
  ],
  cache: [
    database("cache", {
      ...{ type: "valkey", version: "9.1.1", plan: "db-basic", profile: "key_value", instances: undefined },
      storage: { persistent: true, capacity: 5 },
    }),
    { ...STATE, plan: "db-basic", billedGb: 4 },
  ],
};

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

/**
 * Kills the operator with SIGKILL at random moments, and starts it again, until `stop`: one in four as it starts, and the others once they lead, for
 * on a busy machine none would come so far. @returns `stop`, which gives how often
 */
function startKilling() {
  const ended = new AbortController();
  let kills = 0;
  const pause = (ms: number) => sleep(ms, undefined, { signal: ended.signal }).catch(() => undefined);
  const leaders = () => readFileSync(operator.log, "utf8").split("became leader").length;
  const killing = (async () => {
    while (!ended.signal.aborted) {
      const before = leaders();
      for (let waited = 0; waited < 60 && kills % 4 !== 3 && leaders() === before; waited += 1) {
        await pause(1_000);
      }
      await pause(Math.random() * 25_000);
      if (!ended.signal.aborted) {
        await operator.kill();
        operator.start();
        kills += 1;
      }
    }
  })();
  return async () => {
    ended.abort();
    await killing;
    return kills;
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
      const { rows } = await sql<{ until: Date | null }>`
        select metered_until as until from plan_meters where project_uid = ${uidOf(name)}`.execute(ledger);
      return (rows[0]?.until?.getTime() ?? 0) >= at;
    },
    WITHIN_MS,
  );

/** Until all projects are charged up to eleven minutes ago, and no late change waits. */
const charged = () =>
  eventually(
    "all is charged",
    async () => {
      const { rows } = await sql<{ waiting: number }>`
        select count(*)::int as waiting from plan_meters where late_from is not null
          or (not ended and coalesce(metered_until, '-infinity') < now() - interval '11 minutes')`.execute(
        ledger,
      );
      return rows[0]?.waiting === 0;
    },
    WITHIN_MS,
  );

// Shows: docs/billing.md#metering: after hours without the ledger or the operator the same ones as without
test.skipIf(!isLong)(
  "over hours of a compressed clock, with operators that are killed, all is recorded once and charged exactly, and each planted error is found (--long)",
  async () => {
    const stopServing = serve();
    const stopKilling = startKilling();
    for (const [name, [project, first]] of Object.entries(projects)) {
      const { metadata } = await cluster.client.create<Project>(projectResource, project);
      uids.set(name, metadata.uid ?? "");
      expected.set(name, [first]);
    }
    const storage = volume(3);
    await cluster.client.create(projectResource, exampleJob(ref("nightly"), { storage }));
    const began = clockNow();
    await recordBuild(ledger, buildOf("shop", began));
    await Promise.all(Object.keys(projects).map(recorded));

    await change("cache", { paused: true }, { paused: true });
    await change("maria", { paused: true }, { paused: true });
    await untilClock(((await historyOf("shop"))?.changes[0]?.at ?? 0) + 65 * MINUTE);
    await change("shop", { instances: 3 }, { instances: 3 });
    await change("maria", { plan: "db-premium" }, { plan: "db-premium" });
    await change("worker", { plan: "premium" }, { plan: "premium" });
    await change("contract", { plan: "premium", instances: 2 }, { plan: "premium", instances: 2 });
    await change("pg", { storage: { persistent: true, capacity: 12 } }, { billedGb: 11 });
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
    const stopAgain = startKilling();
    await recorded("worker");
    await change("shop", { instances: 1 }, { instances: 1 });
    await untilClock(caughtUpAt(schedule));
    const all = kills + (await stopAgain());
    await charged();
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
    const { facts, differing } = await compareCharges(ledger, "alpha");
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
  1_800_000,
);

const buildOf = (project: string, began: number) => ({
  ...{ organization_id: "alpha", project_id: project, project_uid: uidOf(project), id: "b1" },
  ...{ triggered_by: "manual" as const, branch: null, tag: null, commit_sha: null, commit_message: null },
  ...{ status: "success" as const, digest: null, error_code: null, error_message: null },
  created_at: new Date(began - 60_000),
  started_at: new Date(began - 50_000),
  ran_from: new Date(began - 40_000),
  ran_until: new Date(began + 151_000),
  finished_at: new Date(began + 160_000),
});

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
