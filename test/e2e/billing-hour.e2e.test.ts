/**
 * Hours of a clock that the test sets, within minutes, on the stack (--long): projects of every kind over /v1, with leading operators that are killed.
 * What was recorded is charged to the fraction, the audit is clean, and errors that are planted in the ledger are found.
 *
 * It takes a stack of which plans are not metered yet, as hack/up.sh makes it, and nothing else may use its operator. The clock begins in the past and
 * catches up: no change is ever ahead of the cluster's time, and histories of other projects, if there are any, go on when it is back. Their lists of
 * changes stay, as do the prices that were recorded. A deletion has the apiserver's own time.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { parseCatalog, priceListOf } from "@slipway/crds";
import { billableHistories, connectLedger, type Ledger, listPrices, recordPrices } from "@slipway/ledger";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compareCharges, endOfHour } from "../billing/compared-charges.ts";
import { cents } from "../billing/recomputation.ts";
import { forge } from "../kit/ledger/forge.ts";
import { errorsIn } from "../kit/ledger/planted-errors.ts";
import { type SavedRows, saveRows } from "../kit/ledger/saved-rows.ts";
import { isLong } from "../kit/long.ts";
import { behindAt, type ClockSchedule, caughtUpAt, evenSteps } from "../kit/processes/compressed-clock.ts";
import {
  apiClient,
  createProject,
  deleteProjects,
  httpProject,
  retried,
  uniqueName,
  untilStatus,
} from "./support/api.ts";
import { cluster } from "./support/cluster.ts";
import { setOperatorClock } from "./support/compressed-clock.ts";
import { createDatabase, databaseProject, untilReady } from "./support/databases.ts";
import { eventually } from "./support/eventually.ts";
import { deleteJobs, Job } from "./support/jobs.ts";
import { repeating } from "./support/killer.ts";
import { killOperator, leader, systemNamespace } from "./support/operator.ts";
import { operatorVariable } from "./support/operator-settings.ts";
import { admin, createOrganization } from "./support/organization.ts";
import { stack } from "./support/stack.ts";
import { ledgerUrl } from "./support/stack-observer.ts";
import { valkeyProject } from "./support/valkey.ts";

const MINUTE = 60_000;
const WITHIN = { within: 600_000 };

let organization: string;
let call: ReturnType<typeof apiClient>;
let ledger: Ledger;
let role: string;
let giveBack: (() => Promise<void>) | undefined;
let saved: SavedRows | undefined;
let job: Job | undefined;
/** Those with a plan, by what they are. */
const projects: Record<string, string> = {};

beforeAll(async () => {
  if (!isLong) {
    return;
  }
  expect(await operatorVariable("SLIPWAY_BILLING_METERING"), "plans of this stack are metered").not.toBe(
    "true",
  );
  const url = await ledgerUrl();
  role = new URL(url).username;
  ledger = connectLedger({ url, applicationName: "observer", statementTimeoutMs: 0 });
  const created = await createOrganization("Compressed hours");
  organization = created.organization_id;
  call = repeating(apiClient(created.api_key));
  await createProjects();
  await recordFirstPrices();
}, 1_200_000);

afterAll(async () => {
  await saved?.restore();
  await saved?.forget();
  await giveBack?.();
  if (call) {
    await deleteJobs(job ? [job] : []);
    await deleteProjects(call, Object.values(projects));
  }
  await ledger?.destroy();
}, 900_000);

/** One of every kind, which run before anything of them is metered: so their histories begin by the test's clock. */
async function createProjects(): Promise<void> {
  const http = httpProject(uniqueName("hour"));
  projects.shop = (await createProject(call, { ...http, plan: "premium" })).project_id;
  const config = {
    type_project: "worker",
    image: { url: stack.imageHttp, is_public: true },
    instances: 1,
    storage: { persistent: true, capacity: 2, dir_path_to_persist: "/data" },
    envs: [],
    readiness: { command: ["/sample-http", "healthy"] },
  };
  const worker = { ...http, name: uniqueName("hour"), config };
  projects.worker = (await createProject(call, worker)).project_id;
  job = await Job.create(call, { name: uniqueName("hour"), script: "true" });
  const bodies = {
    postgresql: databaseProject("db-basic", {
      ...{ type_project: "postgresql", version: "17" },
      storage: { persistent: true, capacity: 2 },
    }),
    mariadb: databaseProject("db-basic", { type_project: "mariadb", version: "11", instances: 3 }),
    clickhouse: databaseProject("analytics-basic", { type_project: "clickhouse", version: "26.8.6.5" }),
    valkey: valkeyProject("cache-basic", "cache"),
  };
  for (const [kind, database] of Object.entries(bodies)) {
    const place = await createDatabase(call, database, organization);
    projects[kind] = place.id;
    await untilReady(place);
  }
  await untilStatus(call, projects.shop, "running");
  await untilStatus(call, projects.worker, "running");
}

/** Where no operator has recorded prices: one whose clock is behind may not record the first ones. */
async function recordFirstPrices(): Promise<void> {
  if ((await listPrices(ledger)).length === 0) {
    const where = { name: "slipway-catalog", namespace: systemNamespace };
    const { data } = await cluster.core.readNamespacedConfigMap(where);
    await recordPrices(ledger, priceListOf(parseCatalog(data?.["catalog.yaml"] ?? ""), Date.now()));
  }
}

/** Kills the leader with SIGKILL at random moments until `stop`. @returns `stop`, which gives how often */
function startKilling() {
  let isOver = false;
  let kills = 0;
  const killing = (async () => {
    while (!isOver) {
      await sleep(10_000 + Math.random() * 20_000);
      await leader()
        .then(killOperator)
        .then(
          () => {
            kills += 1;
          },
          // None leads, or it has ended.
          () => undefined,
        );
    }
  })();
  return async () => {
    isOver = true;
    await killing;
    return kills;
  };
}

interface Had {
  plan: string;
  instances: number;
  paused: boolean;
}

/** Uids of the organization's projects, by id. */
async function uids(): Promise<Map<string, string>> {
  const { rows } = await sql<{ id: string; uid: string }>`
    select project_id as id, project_uid as uid from plan_meters where organization_id = ${organization}`.execute(
    ledger,
  );
  return new Map(rows.map(({ id, uid }) => [id, uid]));
}
const uidOf = async (name: string): Promise<string> => (await uids()).get(projects[name] ?? "") ?? "";
const historyOf = async (name: string) => (await billableHistories(ledger, [await uidOf(name)]))[0];
const hadOf = async (name: string): Promise<Had[]> =>
  ((await historyOf(name))?.changes ?? []).map(({ plan, instances, paused }) => ({
    plan,
    instances,
    paused,
  }));

/** What each project that was changed had, in order. */
const expected = new Map<string, Had[]>();

/** Changes a project over /v1, and waits until it is recorded. */
async function change(
  name: string,
  [method, path, body]: readonly [string, string, object?],
  had: Partial<Had>,
): Promise<void> {
  const all = expected.get(name) ?? (await hadOf(name));
  const next = [...all, { ...(all.at(-1) as Had), ...had }];
  expected.set(name, next);
  const url = `/v1/project/${projects[name]}${path}`;
  const answer = await retried(() => call(method, url, body));
  expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  await eventually(async () => expect(await hadOf(name)).toEqual(next), WITHIN);
}

/** What /v1 says that plans cost, in 10^-18 cents, over the cycles of the test. */
async function plansUsage(from: number): Promise<bigint> {
  interface Usage {
    kinds: readonly { kind: string; amount: string }[];
  }
  const cycles = new Set([from, Date.now()].map((at) => new Date(at).toISOString().slice(0, 7)));
  let total = 0n;
  for (const cycle of cycles) {
    const { status, body } = await call<Usage>("GET", `/v1/organization/usage?cycle=${cycle}`);
    expect(status).toBe(200);
    for (const { kind, amount } of body.data?.kinds ?? []) {
      const value = amount.startsWith("-") ? -cents(amount.slice(1)) : cents(amount);
      total += kind.startsWith("job_") ? 0n : value;
    }
  }
  return total;
}

interface Audit {
  clean: boolean;
  plan_charges: number;
  /** How often each code was found. */
  counts?: Readonly<Record<string, number>>;
  findings: readonly { code: string }[];
}

/** The command ends with 1 where something is found. */
async function audit(): Promise<Audit> {
  const args = ["billing", "audit", "--organization", organization];
  return admin<Audit>(...args).catch((error: { stdout?: string }) => {
    if (!error.stdout?.startsWith("{")) {
      throw error;
    }
    return JSON.parse(error.stdout) as Audit;
  });
}

// Shows: docs/billing.md#metering: each charge is recorded once
test.skipIf(!isLong)(
  "over compressed hours, with leaders that are killed, projects of every kind are charged exactly, and planted errors are found (--long)",
  async () => {
    const schedule: ClockSchedule = {
      began: Date.now() + 3 * MINUTE,
      everyMs: 10_000,
      behindMs: evenSteps(5 * MINUTE, 48),
      pauseDivisor: 6,
    };
    const clockNow = () => Date.now() - behindAt(schedule, Date.now());
    const from = clockNow();
    giveBack = await setOperatorClock(schedule, {
      ledger,
      role,
      settings: {
        SLIPWAY_BILLING_METERING: "true",
        // Minutes that jump by are no rollout that takes too long.
        SLIPWAY_ROLLOUT_DEADLINE_SECONDS: "3600",
        SLIPWAY_PLAN_CHANGE_SECONDS: "3600",
      },
    });
    const stopKilling = startKilling();
    await eventually(
      async () => expect([...(await uids()).keys()].sort()).toEqual(Object.values(projects).sort()),
      WITHIN,
    );
    await change("worker", ["PATCH", "/plan", { plan: "premium" }], { plan: "premium" });
    await change("postgresql", ["POST", "/pause"], { paused: true });
    const began = (await historyOf("shop"))?.changes[0]?.at ?? 0;
    await eventually(async () => expect(clockNow()).toBeGreaterThan(began + 62 * MINUTE), WITHIN);
    await change("shop", ["PATCH", "/autoscaling", { instances: 2 }], { instances: 2 });
    await change("valkey", ["POST", "/pause"], { paused: true });
    const hourEnds = endOfHour((await historyOf("shop"))?.changes ?? []);
    await eventually(async () => expect(clockNow()).toBeGreaterThan(hourEnds), WITHIN);
    await change("shop", ["POST", "/pause"], { paused: true });
    await change("postgresql", ["POST", "/resume"], { paused: false });
    await change("shop", ["POST", "/resume"], { paused: false });
    await eventually(async () => expect(Date.now()).toBeGreaterThan(caughtUpAt(schedule)), WITHIN);
    const kills = await stopKilling();
    console.log(`killed: ${kills}`);
    const run = await (job as Job).running();
    await (job as Job).ended(run.id);
    expect(kills).toBeGreaterThan(3);

    for (const [name, had] of expected) {
      expect([name, await hadOf(name)]).toEqual([name, had]);
    }
    await eventually(async () => {
      const { facts, differing, total } = await compareCharges(
        ledger,
        organization,
        // An hour is charged ten minutes after its end.
        Date.now() - 11 * MINUTE,
      );
      expect(differing).toEqual([]);
      // Some hours of seven projects.
      expect(facts).toBeGreaterThan(20);
      expect(await plansUsage(from)).toBe(total);
    }, WITHIN);

    // Nothing is metered from here on: what is planted and taken back is all that changes.
    await giveBack();
    giveBack = undefined;
    await auditAndPlant();
  },
  3_600_000,
);

/** Nothing is found, each error that is planted is, and nothing once it is undone. */
async function auditAndPlant(): Promise<void> {
  expect(await audit()).toMatchObject({ clean: true });
  const uid = await uidOf("shop");
  const adds = (await hadOf("shop")).findIndex(({ instances }) => instances === 2) + 1;
  const storage = `${await uidOf("worker")}/storage_hour/0`;
  const rows = await saveRows(ledger, organization);
  saved = rows;
  const missed: string[] = [];
  for (const { what, code, statements } of errorsIn({
    uid,
    hour: `${uid}/instance_hour/0/0`,
    storage,
    adds,
  })) {
    await ledger.transaction().execute((transaction) => forge(transaction, ...statements));
    const { clean, findings } = await audit();
    if (clean || !findings.some((finding) => finding.code === code)) {
      missed.push(`${what}: ${JSON.stringify(findings)}`);
    }
    await rows.restore();
    expect(await audit()).toMatchObject({ clean: true });
  }
  await rows.forget();
  saved = undefined;
  expect(missed).toEqual([]);
}
