import { createHash } from "node:crypto";
import type { KubeClient, KubernetesObject, ObjectRef } from "@slipway/controller-runtime";
import { labels } from "@slipway/crds";
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
import type { Node } from "../../metrics/nodes.ts";
import { MemberAccess } from "../common/member-access.ts";
import type { Database } from "../database.ts";
import type { ClusterContext, LiveDatabase } from "../driver.ts";
import { clickhouseDriver } from "./driver.ts";
import { type Server, StatementError } from "./http-client.ts";

const example = (instances: number, features?: Record<string, boolean>) =>
  databaseOf({
    project: exampleDatabase({
      type: "clickhouse",
      plan: instances === 1 ? "analytics-basic" : "analytics-business",
      version: "26.8.6.5",
      instances,
    }),
    features,
  });

/** Servers and a cluster that record what the operator does. */
class World {
  readonly done: string[] = [];
  readonly asked: Server[] = [];
  /** What servers answer; an error is thrown. */
  answers: Record<string, string | Error> = { "SELECT version": "26.8.6.5", "system.replicas": "0" };
  readonly driver = clickhouseDriver(async (server, statements) => {
    this.asked.push(server);
    return statements.map((statement) => {
      this.done.push(`${server.name.split(".")[0]}: ${statement}`);
      const [, answer = ""] = Object.entries(this.answers).find(([part]) => statement.includes(part)) ?? [];
      if (answer instanceof Error) {
        throw answer;
      }
      return answer;
    });
  });
  database: Database;
  context: ClusterContext;

  constructor(database: Database = example(1)) {
    this.database = database;
    this.context = {
      client: this.#client(),
      clock: new FakeClock("2026-03-01T00:00:00Z"),
      log: silentLogger,
      signal: AbortSignal.timeout(5_000),
      authority: "the authority",
      credentials: exampleCredentials,
      certificate: { serial: "01", signedAt: new Date("2026-01-01T00:00:00Z") },
      status: {},
      event: () => {},
      queryMember: (_pod, question) => question(),
      wake: () => {},
    };
  }

  reconcile(live: LiveDatabase) {
    return this.driver.reconcile(this.database, live, this.context);
  }

  /** What was done since this was asked last, statements to their first three words. */
  steps(): string[] {
    return this.done.splice(0).map((step) => step.split(" ").slice(0, 4).join(" "));
  }

  #client(): KubeClient {
    const client = {
      getOrUndefined: async (_: unknown, { name }: ObjectRef) => ({
        metadata: { name, uid: `uid-${name.split("-")[1]}` },
        status: { podIP: "192.0.2.7" },
      }),
      patch: async (_: unknown, { name }: ObjectRef, patch: KubernetesObject) =>
        this.done.push(`${name} is ${patch.metadata?.labels?.[labels.role]}`),
      delete: async (_: unknown, { name }: ObjectRef) => this.done.push(`delete ${name}`),
    };
    return client as unknown as KubeClient;
  }
}

const primary = { role: "primary", startedAt: "2026-02-01T00:00:00Z" } as const;
const replica = { role: "replica", startedAt: "2026-02-01T00:00:00Z" } as const;
const SET_UP = ["shop-0: CREATE DATABASE IF", "shop-0: CREATE USER IF"];
const GRANTS = ["shop-0: GRANT ALL ON", "shop-0: GRANT CREATE TEMPORARY", "shop-0: SELECT version() FORMAT"];

describe("a ClickHouse server", () => {
  test("that has just come up gets its database and its user, once", async () => {
    const world = new World();
    const clusterState = await world.reconcile(liveOf([podOf(0)]));
    expect(clusterState).toMatchObject({
      primary: "shop-0",
      runningVersion: "26.8.6.5",
      credentialsHash: world.database.credentialsHash,
    });
    expect(clusterState.missing).toBeUndefined();
    expect(world.steps()).toEqual(["shop-0 is primary", ...SET_UP, "shop-0: ALTER USER app", ...GRANTS]);
    expect(world.asked).toEqual([
      {
        ip: "192.0.2.7",
        port: 8443,
        name: "shop-0.shop-nodes.slipway-org-alpha.svc",
        authority: "the authority",
        user: "slipway_admin",
        password: "password-of-the-superuser",
      },
    ]);
    await world.reconcile(liveOf([podOf(0, { role: "primary" })]));
    expect(world.steps()).toEqual([]);
  });

  test("receives the hash of the password alone, with another salt each time", async () => {
    const salts = new Set<string>();
    for (let i = 0; i < 2; i += 1) {
      const world = new World();
      await world.reconcile(liveOf([podOf(0, primary)]));
      const statement = world.done.find((step) => step.includes("ALTER USER")) ?? "";
      const [, hash, salt = ""] = /BY '(\w{64})' SALT '(\w{32})'$/.exec(statement) ?? [];
      expect(hash).toBe(createHash("sha256").update(`password-of-the-user${salt}`).digest("hex"));
      expect(world.done.join()).not.toContain("password-of");
      salts.add(salt);
    }
    expect(salts.size).toBe(2);
  });

  test("keeps a password that is in force, and sets another one", async () => {
    const world = new World();
    world.context = { ...world.context, status: { credentialsHash: world.database.credentialsHash } };
    await world.reconcile(liveOf([podOf(0, primary)]));
    expect(world.steps()).toEqual([...SET_UP, ...GRANTS]);
    world.database = { ...world.database, credentialsHash: "another" };
    expect((await world.reconcile(liveOf([podOf(0, primary)]))).credentialsHash).toBe("another");
    expect(world.steps()).toContain("shop-0: ALTER USER app");
  });

  test("accepts a previous password while that is given, and then the current one alone", async () => {
    const world = new World();
    const { credentialsHash } = world.database;
    const credentials = { ...exampleCredentials, "previous-password": "the one before" };
    world.context = { ...world.context, credentials, status: { credentialsHash } };
    await world.reconcile(liveOf([podOf(0, primary)]));
    const statement = () => world.done.findLast((step) => step.includes("ALTER USER")) ?? "";
    const both =
      /IDENTIFIED WITH sha256_hash BY '\w{64}' SALT '\w{32}', sha256_hash BY '(\w{64})' SALT '(\w{32})'$/;
    const [, hash, salt = ""] = both.exec(statement()) ?? [];
    expect(hash).toBe(createHash("sha256").update(`the one before${salt}`).digest("hex"));
    const previousPassword = { until: "2026-03-02T00:00:00Z" };
    const status = { credentialsHash, previousPassword };
    world.context = { ...world.context, credentials: exampleCredentials, status };
    await world.reconcile(liveOf([podOf(0, primary)]));
    expect(statement()).toMatch(/IDENTIFIED WITH sha256_hash BY '\w{64}' SALT '\w{32}'$/);
    world.steps();
    world.context = { ...world.context, status: { credentialsHash } };
    await world.reconcile(liveOf([podOf(0, primary)]));
    expect(world.steps()).toEqual([]);
  });

  test("that rejects a statement reports no credentials, and is queried again", async () => {
    const world = new World();
    world.answers["CREATE USER"] = new StatementError(500, "999");
    const clusterState = await world.reconcile(liveOf([podOf(0, primary)]));
    expect(clusterState).toMatchObject({ primary: "shop-0", missing: { reason: "CredentialsPending" } });
    expect(clusterState.credentialsHash).toBeUndefined();
    delete world.answers["CREATE USER"];
    expect((await world.reconcile(liveOf([podOf(0, primary)]))).missing).toBeUndefined();
  });

  test("is not queried on a node that is not ready", async () => {
    const world = new World();
    const node: Node = {
      metadata: { name: "a" },
      status: { conditions: [{ type: "Ready", status: "Unknown" }] },
    };
    const members = new MemberAccess({ get: () => node }, world.context.clock);
    world.context = { ...world.context, queryMember: (pod, question) => members.run(pod, question) };
    const live = liveOf([podOf(0, primary)]);
    expect((await world.reconcile(live)).missing?.reason).toBe("CredentialsPending");
    await expect(world.driver.isCaughtUp(world.database, live, world.context)).rejects.toThrow(
      "node is not ready",
    );
    expect(world.asked).toEqual([]);
    node.status = { conditions: [{ type: "Ready", status: "True" }] };
    expect((await world.reconcile(live)).missing).toBeUndefined();
  });

  test("is set up again when it is another process", async () => {
    const world = new World();
    await world.reconcile(liveOf([podOf(0, primary)]));
    world.steps();
    await world.reconcile(liveOf([podOf(0, { ...primary, startedAt: "2026-02-02T00:00:00Z" })]));
    expect(world.steps()[0]).toBe(SET_UP[0]);
  });

  test("has a replicated database, but not where it cannot replicate", async () => {
    const databaseOfWorld = async (world: World) => {
      await world.reconcile(liveOf([podOf(0, primary)]));
      return world.done.find((step) => step.includes("CREATE DATABASE"));
    };
    expect(await databaseOfWorld(new World())).toBe(
      "shop-0: CREATE DATABASE IF NOT EXISTS app ENGINE = Replicated('/clickhouse/databases/app', '{shard}', '{replica}')",
    );
    expect(await databaseOfWorld(new World(example(1, { replication: false })))).toBe(
      "shop-0: CREATE DATABASE IF NOT EXISTS app",
    );
  });

  test("of which names are the platform's, or would need an escape, is not set up", async () => {
    const world = new World();
    for (const username of ["default", "slipway_admin", "", "a b", "a'"]) {
      world.context = { ...world.context, credentials: { ...exampleCredentials, username } };
      expect((await world.reconcile(liveOf([podOf(0)]))).missing?.reason).toBe("CredentialsPending");
    }
    for (const database of ["system", "INFORMATION_SCHEMA", "a-b"]) {
      world.context = { ...world.context, credentials: { ...exampleCredentials, database } };
      expect((await world.reconcile(liveOf([podOf(0)]))).missing?.reason).toBe("CredentialsPending");
    }
    expect(world.done).toEqual([]);
  });

  test("that is being replaced is no fault, one that crashes repeatedly is", async () => {
    const world = new World();
    const starting = liveOf([podOf(0, { ready: false })]);
    expect((await world.reconcile(starting)).missing?.reason).toBe("Bootstrapping");
    world.database = { ...world.database, bootstrapped: true };
    const leaving = podOf(0, { deleting: true, ready: false });
    const lost = { type: "Ready", status: "False", lastTransitionTime: "2026-02-01T00:00:00Z" };
    const left = { ...leaving, status: { ...leaving.status, conditions: [lost] } };
    for (const live of [starting, liveOf([]), liveOf([left])]) {
      expect(await world.reconcile(live)).toMatchObject({
        missing: { reason: "PrimaryMissing" },
        underWay: { reason: "RollingOut" },
      });
    }
    const pod = podOf(0, { ready: false });
    const crashed = {
      name: "database",
      ready: false,
      state: { waiting: { reason: "CrashLoopBackOff" } },
    };
    const broken = { ...pod, status: { ...pod.status, containerStatuses: [crashed] } };
    const clusterState = await world.reconcile(liveOf([broken]));
    expect(clusterState.missing?.reason).toBe("PrimaryMissing");
    expect(clusterState.underWay).toBeUndefined();
  });

  test("that is outdated is replaced, and a pod that is stuck first", async () => {
    const world = new World();
    const clusterState = await world.reconcile(liveOf([podOf(0, { ...primary, current: false })]));
    expect(clusterState.underWay?.reason).toBe("RollingOut");
    expect(world.steps().at(-1)).toBe("delete shop-0");
    await world.reconcile(liveOf([podOf(0, { ready: false, current: false })]));
    expect(world.steps()).toEqual(["shop-0 is replica", "delete shop-0"]);
  });
});

describe("several ClickHouse servers", () => {
  const three = () => liveOf([podOf(0, primary), podOf(1, replica), podOf(2, replica)]);

  test("each have the database, and the user from one of them", async () => {
    const world = new World(example(3));
    const clusterState = await world.reconcile(three());
    expect(clusterState.missing).toBeUndefined();
    const users = world.done.filter((step) => step.includes("CREATE USER"));
    expect(users).toHaveLength(1);
    for (const pod of ["shop-0", "shop-1", "shop-2"]) {
      expect(world.done.some((step) => step.startsWith(`${pod}: CREATE DATABASE`))).toBe(true);
    }
  });

  test("route clients to one, and to another when it does not serve", async () => {
    const world = new World(example(3));
    await world.reconcile(
      liveOf([podOf(0, { ...primary, ready: false }), podOf(1, replica), podOf(2, replica)]),
    );
    expect(world.done.slice(0, 2)).toEqual(["shop-0 is replica", "shop-1 is primary"]);
    world.done.length = 0;
    const back = liveOf([podOf(0, replica), podOf(1, primary), podOf(2, replica)]);
    expect((await world.reconcile(back)).primary).toBe("shop-1");
    expect(world.done.some((step) => step.includes(" is "))).toBe(false);
  });

  test("are replaced one at a time, the primary last", async () => {
    const world = new World(example(3));
    const old = { current: false };
    const step = async (live: LiveDatabase) => {
      await world.reconcile(live);
      return world.done.splice(0).filter((one) => !one.includes(": "));
    };
    const [a, b, c] = [
      { ...primary, ...old },
      { ...replica, ...old },
      { ...replica, ...old },
    ];
    expect(await step(liveOf([podOf(0, a), podOf(1, b), podOf(2, c)]))).toEqual(["delete shop-2"]);
    expect(
      await step(liveOf([podOf(0, a), podOf(1, b), podOf(2, { ready: false, role: "replica" })])),
    ).toEqual([]);
    expect(await step(liveOf([podOf(0, a), podOf(1, b), podOf(2, replica)]))).toEqual(["delete shop-1"]);
    const last = liveOf([podOf(0, a), podOf(1, replica), podOf(2, replica)]);
    expect(await step(last)).toEqual(["shop-0 is replica", "shop-1 is primary"]);
  });

  test("that have lost their Keepers report it", async () => {
    const world = new World(example(3));
    world.answers["system.replicas"] = "2";
    expect((await world.reconcile(three())).missing?.reason).toBe("Recovering");
  });

  test("forget servers that are no longer requested, once they are deleted", async () => {
    const world = new World(example(2));
    world.answers["system.clusters"] = "shop-0\t1\nshop-1\t0\nshop-2\t0";
    await world.reconcile(liveOf([podOf(0, primary), podOf(1, replica)]));
    expect(world.done.filter((step) => step.includes("DROP"))).toEqual([
      "shop-0: SYSTEM DROP DATABASE REPLICA '1|shop-2' FROM DATABASE app",
      "shop-0: SYSTEM DROP REPLICA 'shop-2' FROM DATABASE app",
    ]);
    const shrinking = new World({ ...example(2), replicas: 3, members: 3 });
    shrinking.answers["system.clusters"] = "shop-2\t0";
    await shrinking.reconcile(three());
    const kept = new World(example(2));
    kept.answers["system.clusters"] = "shop-2\t0";
    const claims = [{ metadata: { name: "data-shop-2" } }];
    await kept.reconcile(liveOf([podOf(0, primary), podOf(1, replica)], { claims }));
    for (const { done } of [shrinking, kept]) {
      expect(done.filter((step) => step.includes("DROP"))).toEqual([]);
    }
  });

  test("are fewer once clients are routed to one that stays", async () => {
    const two = example(2);
    const led = liveOf([podOf(0, replica), podOf(1, replica), podOf(2, primary)]);
    const world = new World({ ...two, replicas: 3, members: 3 });
    const isCaughtUp = (live = three()) => world.driver.isCaughtUp(two, live, world.context);
    expect(await isCaughtUp(led)).toBe(false);
    expect((await world.reconcile(led)).primary).toBe("shop-0");
    expect(await isCaughtUp()).toBe(true);
    world.answers = { inserts_in_queue: "1", ...world.answers };
    expect(await isCaughtUp()).toBe(false);
  });

  test("are rejected where servers cannot replicate", () => {
    const { refuse } = new World().driver;
    const project = exampleDatabase({ type: "clickhouse", instances: 2 });
    const { plan, image } = example(2);
    expect(refuse?.(project, plan, image)).toBeUndefined();
    const substitute = { ...image, features: { replication: false } };
    expect(refuse?.(project, plan, substitute)?.reason).toBe("FeatureNotSupported");
    expect(refuse?.(exampleDatabase({ instances: 1 }), plan, substitute)).toBeUndefined();
  });
});
