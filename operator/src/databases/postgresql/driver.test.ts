import type { KubeClient, KubernetesObject, ObjectRef } from "@slipway/controller-runtime";
import { hashWithPassword } from "@slipway/crds";
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
import { sharedConfig } from "./config.ts";
import { postgresqlDriver } from "./driver.ts";

const START = "2026-03-01T00:00:00Z";

/** A cluster that records what the operator does. */
class World {
  readonly done: string[] = [];
  readonly scripts: string[] = [];
  readonly patches: KubernetesObject[] = [];
  readonly configMaps = new Map<string, Record<string, string>>();
  readonly driver = postgresqlDriver();
  readonly clock = new FakeClock(START);
  /** What `psql` answers to a script. */
  answer = { exitCode: 0, stdout: "17.6|7412345678901234567\n", stderr: "" };
  database: Database;
  context: ClusterContext;

  constructor(database: Database = databaseOf({ project: exampleDatabase({ instances: 3 }) })) {
    this.database = database;
    this.configMaps.set("shop-config", { config: JSON.stringify(sharedConfig(database)) });
    this.configMaps.set("shop-sync", { leader: "shop-0", sync_standby: "shop-1,shop-2" });
    this.context = {
      client: this.#client(),
      clock: this.clock,
      log: silentLogger,
      signal: AbortSignal.timeout(5_000),
      credentials: exampleCredentials,
      authority: "",
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

  #client(): KubeClient {
    const annotated = (name: string): KubernetesObject | undefined => {
      const annotations = this.configMaps.get(name);
      return annotations && { metadata: { name, uid: name, resourceVersion: "1", annotations } };
    };
    const client = {
      getOrUndefined: async (_: unknown, { name }: ObjectRef) => annotated(name),
      patch: async (_: unknown, { name }: ObjectRef, patch: KubernetesObject) => {
        this.done.push(`patch ${name}`);
        this.patches.push(patch);
        this.configMaps.set(name, { ...this.configMaps.get(name), ...patch.metadata?.annotations });
      },
      apply: async (_: unknown, { metadata }: KubernetesObject) => {
        const { leader, member } = metadata?.annotations ?? {};
        this.done.push(`${metadata?.name}: ${leader} to ${member}`);
        this.configMaps.set(metadata?.name ?? "", metadata?.annotations ?? {});
      },
      delete: async (_: unknown, { name }: ObjectRef) => this.done.push(`delete ${name}`),
      podExec: async ({ name }: ObjectRef, { stdin }: { stdin?: string }) => {
        this.done.push(stdin === undefined ? `reload ${name}` : `set up ${name}`);
        if (stdin !== undefined) {
          this.scripts.push(stdin);
        }
        return this.answer;
      },
    };
    return client as unknown as KubeClient;
  }
}

const primary = { role: "primary", startedAt: "2026-02-01T00:00:00Z" } as const;
const replica = { role: "replica", startedAt: "2026-02-01T00:00:00Z" } as const;
const three = () => liveOf([podOf(0, primary), podOf(1, replica), podOf(2, replica)]);

describe("a PostgreSQL cluster", () => {
  test("that has just been initialized gets its accounts, once", async () => {
    const world = new World();
    const clusterState = await world.reconcile(three());
    expect(clusterState).toMatchObject({
      primary: "shop-0",
      runningVersion: "17.6",
      identity: "7412345678901234567",
      credentialsHash: world.database.credentialsHash,
    });
    expect(clusterState.missing).toBeUndefined();
    await world.reconcile(three());
    expect(world.done).toEqual(["set up shop-0"]);
    expect(world.scripts[0]).not.toContain("password-of-the-user");
  });

  test("has its accounts set up again when another process is the primary", async () => {
    const world = new World();
    await world.reconcile(three());
    await world.reconcile(liveOf([podOf(0, replica), podOf(1, primary), podOf(2, replica)]));
    expect(world.done).toEqual(["set up shop-0", "set up shop-1"]);
  });

  test("takes the label from a former leader whose node hangs: its Services lead to the leader alone", async () => {
    const world = new World();
    world.configMaps.set("shop-leader", { leader: "shop-1" });
    const two = liveOf([podOf(0, primary), podOf(1, primary), podOf(2, replica)]);
    expect((await world.reconcile(two)).primary).toBe("shop-1");
    expect(world.done).toEqual(["patch shop-0", "set up shop-1"]);
    expect(world.patches).toEqual([
      { metadata: { uid: expect.any(String), labels: { "slipway.dev/role": "replica" } } },
    ]);
  });

  test.each([
    ["no member has the leader's lock", {}],
    ["the leader has no label yet", { leader: "shop-2" }],
  ])("keeps the labels of two while %s", async (_, annotations) => {
    const world = new World();
    world.configMaps.set("shop-leader", annotations);
    const two = liveOf([podOf(0, primary), podOf(1, primary), podOf(2, replica)]);
    expect((await world.reconcile(two)).primary).toBeUndefined();
    expect(world.done).toEqual([]);
  });

  test("sets the user's password only when it is another one", async () => {
    const world = new World();
    await world.reconcile(three());
    expect(world.scripts[0]).toContain('ALTER ROLE "app" LOGIN PASSWORD');
    const later = new World();
    later.context = { ...later.context, status: { credentialsHash: later.database.credentialsHash } };
    await later.reconcile(three());
    expect(later.scripts[0]).not.toContain('ALTER ROLE "app" LOGIN PASSWORD');
  });

  test("gives references the account that is not in use when the password is another one", async () => {
    const world = new World();
    const first = await world.reconcile(three());
    expect(first.referenceUsername).toBe("slipway_reference_1");
    const { credentialsHash } = world.database;
    const settled = { credentialsHash, referenceUsername: "slipway_reference_1" };
    world.context = { ...world.context, status: settled };
    expect((await world.reconcile(three())).referenceUsername).toBe("slipway_reference_1");
    world.database = { ...world.database, credentialsHash: "another" };
    expect((await world.reconcile(three())).referenceUsername).toBe("slipway_reference_2");
    // The status was not written: nothing is different.
    expect((await world.reconcile(three())).referenceUsername).toBe("slipway_reference_2");
    expect(world.scripts).toHaveLength(2);
    world.context = {
      ...world.context,
      status: { credentialsHash: "another", referenceUsername: "slipway_reference_2" },
    };
    expect((await world.reconcile(three())).referenceUsername).toBe("slipway_reference_2");
    expect(world.scripts).toHaveLength(2);
  });

  test("leaves a password that is kept on its account when the one after it is renewed", async () => {
    const world = new World();
    // The first account has `one`, which is kept; the second has `two`, which nothing was given.
    const credentials = { ...exampleCredentials, "previous-password": "one" };
    const status = { credentialsHash: "of two", referenceUsername: "slipway_reference_2" };
    world.context = { ...world.context, credentials, status };
    expect((await world.reconcile(three())).referenceUsername).toBe("slipway_reference_2");
    // Had no status named `two`, the first one would be in use.
    const unnamed = new World();
    const before = hashWithPassword(exampleCredentials, "one");
    unnamed.context = {
      ...world.context,
      status: { credentialsHash: before, referenceUsername: "slipway_reference_1" },
    };
    expect((await unnamed.reconcile(three())).referenceUsername).toBe("slipway_reference_2");
  });

  test("sets the accounts again when a previous password ends, and leaves the user's own alone", async () => {
    const world = new World();
    const { credentialsHash } = world.database;
    const status = { credentialsHash, referenceUsername: "slipway_reference_2" };
    const credentials = { ...exampleCredentials, "previous-password": "the one before" };
    world.context = { ...world.context, credentials, status };
    await world.reconcile(three());
    world.context = { ...world.context, credentials: exampleCredentials };
    await world.reconcile(three());
    expect(world.scripts).toHaveLength(2);
    expect(world.scripts.join()).not.toContain('ALTER ROLE "app" LOGIN PASSWORD');
    expect(world.scripts.join()).not.toContain("the one before");
  });

  test("of a server that does not apply an account's role gives references the user itself", async () => {
    const world = new World();
    world.answer = { exitCode: 0, stdout: "17.1|7412345678901234567\n", stderr: "" };
    expect((await world.reconcile(three())).referenceUsername).toBeUndefined();
    expect(world.driver.canKeepPassword?.({})).toBe(false);
    expect(world.driver.canKeepPassword?.({ referenceUsername: "slipway_reference_1" })).toBe(true);
  });

  test("does not report credentials that are not in force", async () => {
    const world = new World();
    world.answer = { exitCode: 3, stdout: "", stderr: "psql:<stdin>:4: ERROR:  57P03" };
    const clusterState = await world.reconcile(three());
    expect(clusterState.credentialsHash).toBeUndefined();
    expect(clusterState.missing?.reason).toBe("CredentialsPending");
  });

  test("refuses names that are the platform's own", async () => {
    const world = new World();
    for (const username of ["postgres", "slipway_monitor", "pg_user", "", "a b"]) {
      world.context = { ...world.context, credentials: { ...exampleCredentials, username } };
      expect((await world.reconcile(three())).missing?.reason).toBe("CredentialsPending");
    }
    expect(world.done).toEqual([]);
  });

  test("without a primary is being set up, or has lost it", async () => {
    const world = new World();
    const pods = liveOf([podOf(0, { ready: false })]);
    expect((await world.reconcile(pods)).missing?.reason).toBe("Bootstrapping");
    world.database = { ...world.database, bootstrapped: true };
    expect((await world.reconcile(pods)).missing?.reason).toBe("PrimaryMissing");
  });

  test("gets new shared settings before its pods are replaced", async () => {
    const world = new World();
    world.configMaps.set("shop-config", { config: JSON.stringify({ ttl: 30 }) });
    await world.reconcile(
      liveOf([podOf(0, primary), podOf(1, replica), podOf(2, { ...replica, current: false })]),
    );
    expect(world.done).toEqual(["patch shop-config", "set up shop-0", "delete shop-2"]);
    expect(JSON.parse(world.configMaps.get("shop-config")?.config ?? "")).toEqual(
      sharedConfig(world.database),
    );
  });

  test("switches over to a member that has everything, by one request", async () => {
    const world = new World();
    world.configMaps.set("shop-sync", { leader: "shop-0", sync_standby: "shop-2" });
    const old = { ...primary, current: false };
    const pods = () => liveOf([podOf(0, old), podOf(1, replica), podOf(2, replica)]);
    expect((await world.reconcile(pods())).underWay?.reason).toBe("SwitchingOver");
    await world.reconcile(pods());
    expect(world.done).toEqual(["set up shop-0", "shop-failover: shop-0 to shop-2"]);
  });

  test("switches over to no member that may lack something", async () => {
    const world = new World();
    world.configMaps.set("shop-sync", { leader: "shop-0", sync_standby: "" });
    await world.reconcile(
      liveOf([podOf(0, { ...primary, current: false }), podOf(1, replica), podOf(2, replica)]),
    );
    expect(world.done).toEqual(["set up shop-0"]);
  });

  test("of three that is to be one shrinks once the first member is the primary", async () => {
    const one = databaseOf({ project: exampleDatabase({ instances: 1 }), replicas: 3 });
    const world = new World(one);
    const pods = liveOf([podOf(0, replica), podOf(1, replica), podOf(2, primary)]);
    world.configMaps.set("shop-sync", { leader: "shop-2", sync_standby: "shop-0,shop-1" });
    expect(await world.driver.isCaughtUp(one, pods, world.context)).toBe(false);
    await world.reconcile(pods);
    expect(world.done).toEqual(["set up shop-2", "shop-failover: shop-2 to shop-0"]);
    const isCaughtUp = () => world.driver.isCaughtUp(one, three(), world.context);
    world.answer = { exitCode: 0, stdout: "t\n", stderr: "" };
    expect(await isCaughtUp()).toBe(false);
    world.configMaps.set("shop-leader", { leader: "shop-0" });
    expect(await isCaughtUp()).toBe(true);
    world.answer = { exitCode: 0, stdout: "f\n", stderr: "" };
    expect(await isCaughtUp()).toBe(false);
    world.answer = { exitCode: 2, stdout: "", stderr: "could not connect" };
    expect(await isCaughtUp()).toBe(false);
  });

  test("keeps what it acknowledges on two members until the second is deleted", () => {
    const shrinking = databaseOf({ project: exampleDatabase({ instances: 1 }), replicas: 3 });
    expect(sharedConfig(shrinking).synchronous_mode).toBe("quorum");
    expect(sharedConfig({ ...shrinking, members: 1 }).synchronous_mode).toBe("off");
    expect(sharedConfig({ ...shrinking, members: 2 }).synchronous_mode).toBe("on");
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

  test("that lacks a replica reports it", async () => {
    const world = new World();
    const clusterState = await world.reconcile(
      liveOf([podOf(0, primary), podOf(1, replica), podOf(2, { ready: false })]),
    );
    expect(clusterState).toMatchObject({ primary: "shop-0", missing: { reason: "ReplicasMissing" } });
  });
});
