import type { KubeClient, KubernetesObject, ObjectRef } from "@slipway/controller-runtime";
import { silentLogger } from "@slipway/process";
import { describe, expect, test } from "vitest";
import {
  databaseOf,
  exampleCredentials,
  exampleDatabase,
  liveOf,
  podOf,
} from "../../../../test/kit/databases/examples.ts";
import { FakeClock } from "../../../../test/kit/processes/fake-clock.ts";
import type { Database } from "../database.ts";
import type { ClusterContext, LiveDatabase } from "../driver.ts";
import { mariadbDriver } from "./driver.ts";
import { passwordHash } from "./sql.ts";

const START = "2026-03-01T00:00:00Z";
const UUID = "71951be9-e5f5-11f1-ab66-3a367bef804d";

const serves = (state = "4", events = "OFF", size = 3) =>
  [
    "run=r",
    "phase=joining",
    `wsrep_cluster_size\t${size}`,
    "wsrep_cluster_status\tPrimary",
    "wsrep_last_committed\t9",
    `wsrep_local_state\t${state}`,
    `wsrep_local_state_uuid\t${UUID}`,
    "wsrep_ready\tON",
    `event_scheduler\t${events}`,
    "version\t11.8.6-MariaDB",
  ].join("\n");
/** One that runs the scheduled events. */
const leads = () => serves("4", "ON");
const waits = (data: string, seqno = -1) =>
  `run=r\nphase=waiting\ndata=${data}\nuuid=${seqno < 0 ? "" : UUID}\nseqno=${seqno}\nsafe=0\n`;

/** A cluster that records what the operator does. */
class World {
  readonly done: string[] = [];
  readonly scripts: string[] = [];
  readonly events: string[] = [];
  /** Orders that members reject. */
  readonly refusals = new Set<string>();
  readonly driver = mariadbDriver();
  readonly clock = new FakeClock(START);
  /** What members answer, by ordinal. */
  answers: (string | undefined)[] = [leads(), serves(), serves()];
  setup = { exitCode: 0, stdout: `11.8.6-MariaDB from Debian\t${UUID}\n`, stderr: "" };
  database: Database = databaseOf({
    project: exampleDatabase({ type: "mariadb", version: "11", plan: "db-basic", instances: 3 }),
  });
  context: ClusterContext = {
    client: this.#client(),
    clock: this.clock,
    log: silentLogger,
    signal: AbortSignal.timeout(5_000),
    credentials: exampleCredentials,
    certificate: { serial: "01", signedAt: new Date("2026-01-01T00:00:00Z") },
    authority: "",
    status: {},
    event: (_, reason) => this.events.push(reason),
    queryMember: (_pod, question) => question(),
    wake: () => {},
  };

  reconcile(live: LiveDatabase) {
    return this.driver.reconcile(this.database, live, this.context);
  }

  #client(): KubeClient {
    const client = {
      patch: async ({ kind }: { kind: string }, { name }: ObjectRef, { metadata }: KubernetesObject) => {
        if (kind === "Project") {
          this.done.push(`${name} accepts ${metadata?.annotations?.["slipway.dev/accept-data-loss"]}`);
          return;
        }
        this.done.push(`${name} is ${metadata?.labels?.["slipway.dev/role"]}`);
      },
      delete: async (_: unknown, { name }: ObjectRef) => this.done.push(`delete ${name}`),
      podExec: async ({ name }: ObjectRef, { command, stdin }: { command: string[]; stdin?: string }) => {
        if (stdin !== undefined) {
          this.done.push(`set up ${name}`);
          this.scripts.push(stdin);
          return this.setup;
        }
        const [, script = "", what = ""] = command;
        if (script.endsWith("ask.sh")) {
          const answer = this.answers[Number(name.at(-1))];
          if (answer === undefined) {
            throw new Error("no answer");
          }
          return { exitCode: 0, stdout: answer, stderr: "" };
        }
        this.done.push(`${what} ${name}`);
        return { exitCode: this.refusals.has(what) ? 1 : 0, stdout: "", stderr: "" };
      },
    };
    return client as unknown as KubeClient;
  }
}

const bootstrapped = (world: World) => {
  world.database = { ...world.database, bootstrapped: true };
  world.context = { ...world.context, status: { identity: UUID } };
};
const startedAt = "2026-02-01T00:00:00Z";
const primary = { role: "primary", startedAt } as const;
const replica = { role: "replica", startedAt } as const;
const three = () => liveOf([podOf(0, primary), podOf(1, replica), podOf(2, replica)]);
const bare = (ready = true) => liveOf([0, 1, 2].map((ordinal) => podOf(ordinal, { ready })));

describe("a MariaDB group", () => {
  test("that is new begins with one member, once all exist", async () => {
    const world = new World();
    world.answers = [waits("none"), waits("none"), undefined];
    expect((await world.reconcile(bare(false))).missing?.reason).toBe("Bootstrapping");
    expect(world.done).toEqual([]);
    world.answers = [waits("none"), waits("none"), waits("none")];
    expect((await world.reconcile(bare(false))).missing?.reason).toBe("Bootstrapping");
    expect(world.done).toEqual(["initialize shop-0"]);
  });

  test("gets its accounts before anybody else can join", async () => {
    const world = new World();
    world.answers = [serves(), waits("none"), waits("none")];
    const clusterState = await world.reconcile(bare(false));
    expect(world.done).toEqual([
      "shop-1 is replica",
      "shop-2 is replica",
      "settle shop-0",
      "shop-0 is primary",
      "set up shop-0",
    ]);
    expect(clusterState).toMatchObject({
      primary: "shop-0",
      identity: UUID,
      missing: { reason: "Bootstrapping" },
    });
    expect(clusterState.credentialsHash).toBeUndefined();
  });

  test("counts as set up once every member is in it", async () => {
    const world = new World();
    const clusterState = await world.reconcile(three());
    expect(clusterState.missing).toBeUndefined();
    expect(clusterState).toMatchObject({
      primary: "shop-0",
      runningVersion: "11.8.6",
      identity: UUID,
      credentialsHash: world.database.credentialsHash,
    });
    await world.reconcile(three());
    expect(world.done).toEqual(["set up shop-0"]);
  });

  test("that all have left continues from the member that has most", async () => {
    const world = new World();
    bootstrapped(world);
    world.answers = [waits("whole", 7), waits("whole", 9), waits("whole", 8)];
    expect((await world.reconcile(three())).missing?.reason).toBe("PrimaryMissing");
    expect(world.done).toEqual(["bootstrap shop-1"]);
  });

  test("waits for a member that does not answer, and reports it", async () => {
    const world = new World();
    bootstrapped(world);
    world.answers = [waits("whole", 7), waits("whole", 9), undefined];
    expect((await world.reconcile(three())).missing?.reason).toBe("Recovering");
    expect(world.done).toEqual([]);
  });

  test("that may have lost something is left alone, and reports it once", async () => {
    const world = new World();
    bootstrapped(world);
    world.answers = [waits("whole", 7), waits("whole", 9), waits("none")];
    expect((await world.reconcile(three())).missing?.reason).toBe("RecoveryRefused");
    await world.reconcile(three());
    expect(world.done).toEqual([]);
    expect(world.events).toEqual(["RecoveryRefused"]);
  });

  test("has another member take the writes when the primary is deleted, which has applied everything", async () => {
    const world = new World();
    bootstrapped(world);
    world.answers = [undefined, serves(), serves()];
    const clusterState = await world.reconcile(
      liveOf([podOf(0, { ...primary, ready: false }), podOf(1, replica), podOf(2, replica)]),
    );
    expect(world.done).toEqual(["shop-0 is replica", "settle shop-1", "shop-1 is primary", "set up shop-1"]);
    expect(clusterState).toMatchObject({ primary: "shop-1", missing: { reason: "ReplicasMissing" } });
  });

  test("keeps a primary that is ready and slow to answer, for a while", async () => {
    const world = new World();
    bootstrapped(world);
    world.answers = [undefined, serves(), serves()];
    expect(await world.reconcile(three())).toMatchObject({ primary: "shop-0" });
    expect(world.done).toEqual([]);
    await world.clock.advance(10_000);
    expect(await world.reconcile(three())).toMatchObject({ primary: "shop-1" });
  });

  test("does not report credentials that are not in force", async () => {
    const world = new World();
    world.setup = { exitCode: 1, stdout: "", stderr: "ERROR 1205 (HY000) at line 2: Lock wait timeout" };
    const clusterState = await world.reconcile(three());
    expect(clusterState.credentialsHash).toBeUndefined();
    expect(clusterState.missing?.reason).toBe("CredentialsPending");
  });

  test("sets the user's password only when it is another one", async () => {
    const world = new World();
    world.context = { ...world.context, status: { credentialsHash: world.database.credentialsHash } };
    await world.reconcile(three());
    expect(world.scripts[0]).not.toMatch(/^ALTER USER `app`@'%' IDENTIFIED/m);
  });

  test("accepts a previous password while that is given, and then the current one alone", async () => {
    const world = new World();
    const { credentialsHash } = world.database;
    const credentials = { ...exampleCredentials, "previous-password": "the one before" };
    world.context = { ...world.context, credentials, status: {} };
    await world.reconcile(three());
    const [current, previous] = [exampleCredentials.password ?? "", "the one before"].map(
      (password) => `mysql_native_password USING '${passwordHash(password)}'`,
    );
    expect(world.scripts[0]).toContain(
      `ALTER USER \`app\`@'%' IDENTIFIED VIA ${current} OR ${previous} REQUIRE SSL`,
    );
    await world.reconcile(three());
    expect(world.scripts).toHaveLength(1);
    const previousPassword = { until: "2026-03-02T00:00:00Z" };
    const status = { credentialsHash, previousPassword };
    world.context = { ...world.context, credentials: exampleCredentials, status };
    await world.reconcile(three());
    expect(world.scripts[1]).toContain(`ALTER USER \`app\`@'%' IDENTIFIED VIA ${current} REQUIRE SSL`);
    world.context = { ...world.context, status: { credentialsHash } };
    await world.reconcile(three());
    expect(world.scripts).toHaveLength(2);
  });

  test("of three that is to be fewer hands over to one that stays, and then needs only that one", async () => {
    const world = new World();
    const shrinking = { ...world.database, instances: 1, bootstrapped: true };
    world.database = shrinking;
    world.answers = [serves(), serves(), leads()];
    const led = liveOf([podOf(0, replica), podOf(1, replica), podOf(2, primary)]);
    const isCaughtUp = (live: LiveDatabase) => world.driver.isCaughtUp(shrinking, live, world.context);
    expect(await isCaughtUp(led)).toBe(false);
    await world.reconcile(led);
    expect(world.done.filter((step) => step.includes(" is "))).toEqual([
      "shop-2 is replica",
      "shop-0 is primary",
    ]);
    expect(await isCaughtUp(three())).toBe(true);
    world.answers[0] = serves("2");
    expect(await isCaughtUp(three())).toBe(false);
    world.answers[0] = undefined;
    expect(await isCaughtUp(three())).toBe(false);
  });

  test("of which fewer are requested continues from the member that has most, also where that is to be stopped", async () => {
    const world = new World();
    bootstrapped(world);
    world.database = { ...world.database, instances: 1 };
    world.answers = [waits("whole", 7), waits("whole", 9), undefined];
    expect((await world.reconcile(bare(false))).missing?.reason).toBe("Recovering");
    expect(world.done).toEqual([]);
    world.answers[2] = waits("whole", 8);
    await world.reconcile(bare(false));
    expect(world.done).toEqual(["bootstrap shop-1"]);
  });

  test("continues without a lost instance once a person accepts that, records it, and never again by the same annotation", async () => {
    const world = new World();
    bootstrapped(world);
    const text = `1/${UUID}/9`;
    world.answers = [waits("whole", 7), waits("whole", 9), waits("none")];
    const refused = (await world.reconcile(bare(false))).missing;
    expect(refused?.reason).toBe("RecoveryRefused");
    expect(refused?.message).toContain(`slipway.dev/accept-data-loss=${text}`);
    world.context = { ...world.context, acceptDataLoss: text };
    world.refusals.add("bootstrap");
    await world.reconcile(bare(false));
    expect(world.events).toEqual(["RecoveryRefused"]);
    world.refusals.clear();
    await world.reconcile(bare(false));
    expect(world.events).toEqual(["RecoveryRefused", "DataLossAccepted"]);
    expect(world.done).toEqual(["bootstrap shop-1", "bootstrap shop-1", "shop accepts null"]);
  });

  test("removes an annotation that it does not need", async () => {
    const world = new World();
    world.context = { ...world.context, acceptDataLoss: `1/${UUID}/9` };
    await world.reconcile(three());
    expect(world.done).toContain("shop accepts null");
    expect(world.events).toEqual([]);
  });

  test("changes replicas first, then the primary's place, then the primary", async () => {
    const world = new World();
    await world.reconcile(
      liveOf([podOf(0, primary), podOf(1, replica), podOf(2, { ...replica, current: false })]),
    );
    const moved = await world.reconcile(
      liveOf([podOf(0, { ...primary, current: false }), podOf(1, replica), podOf(2, replica)]),
    );
    expect(moved.underWay?.reason).toBe("SwitchingOver");
    await world.reconcile(
      liveOf([podOf(0, { ...replica, current: false }), podOf(1, primary), podOf(2, replica)]),
    );
    expect(world.done).toEqual([
      "set up shop-0",
      "delete shop-2",
      "note shop-0",
      "shop-0 is replica",
      "settle shop-1",
      "shop-1 is primary",
      "set up shop-1",
      "rest shop-0",
      "lead shop-1",
      "delete shop-0",
    ]);
  });

  test("has one primary after a reconcile that routes to one and hands over to another", async () => {
    const world = new World();
    // The primary was lost during a rollout: the first member serves, and is yet to be replaced.
    world.answers = [serves(), serves(), serves()];
    await world.reconcile(
      liveOf([podOf(0, { ...replica, current: false }), podOf(1, replica), podOf(2, replica)]),
    );
    expect(world.done.filter((step) => step.includes(" is "))).toEqual([
      "shop-0 is primary",
      "shop-0 is replica",
      "shop-1 is primary",
    ]);
    world.done.length = 0;
    await world.reconcile(
      liveOf([podOf(0, { ...primary, current: false }), podOf(1, primary), podOf(2, replica)]),
    );
    expect(world.done.filter((step) => step.includes(" is "))).toEqual([
      "shop-1 is replica",
      "shop-0 is replica",
      "shop-1 is primary",
    ]);
  });

  test("has nobody take over who gives a copy", async () => {
    const world = new World();
    world.answers = [leads(), serves("2"), serves("2")];
    await world.reconcile(
      liveOf([podOf(0, { ...primary, current: false }), podOf(1, replica), podOf(2, replica)]),
    );
    expect(world.done).toEqual(["set up shop-0"]);
  });

  test("has nobody run scheduled events before all others in the group are known to run none", async () => {
    const world = new World();
    bootstrapped(world);
    const moved = () =>
      liveOf([podOf(0, { ...replica, ready: false }), podOf(1, primary), podOf(2, replica)]);
    const reconcile = async (...answers: (string | undefined)[]) => {
      world.answers = answers;
      world.done.length = 0;
      const { requeueAfterMs } = await world.reconcile(moved());
      return [requeueAfterMs, ...world.done.filter((done) => /^(lead|rest)/.test(done))];
    };
    // It is silent, and still counted.
    expect(await reconcile(undefined, serves(), serves())).toEqual([1_000]);
    // Without a majority it runs none, whatever it reports, once it has the order.
    expect(await reconcile(undefined, serves("4", "OFF", 2), serves("4", "OFF", 2))).toEqual([
      1_000,
      "lead shop-1",
    ]);
    expect(await reconcile(leads(), serves(), serves())).toEqual([1_000, "rest shop-0", "lead shop-1"]);
    expect(await reconcile(serves(), leads(), leads())).toEqual([1_000, "rest shop-2"]);
    expect(await reconcile(serves(), leads(), serves())).toEqual([1_000]);
    world.refusals.add("rest");
    expect(await reconcile(leads(), serves(), serves())).toEqual([1_000, "rest shop-0"]);
  });

  test("reads a new certificate without a restart, once it is mounted", async () => {
    const world = new World();
    await world.reconcile(three());
    world.context = { ...world.context, certificate: { serial: "02", signedAt: new Date(START) } };
    await world.reconcile(three());
    expect(world.done).toEqual(["set up shop-0"]);
    await world.clock.advance(200_000);
    await world.reconcile(three());
    await world.reconcile(three());
    expect(world.done).toEqual(["set up shop-0", "reload shop-0", "reload shop-1", "reload shop-2"]);
  });
});
