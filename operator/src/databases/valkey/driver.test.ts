import { createHash } from "node:crypto";
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
import { valkeyDriver } from "./driver.ts";
import { nodeAddress } from "./names.ts";

const valkey = (plan: string, more: { replicas?: number } = {}): Database =>
  databaseOf({
    project: exampleDatabase({
      type: "valkey",
      plan,
      version: "9.1.1",
      profile: "key_value",
      instances: undefined,
    }),
    ...more,
  });

const primary = { role: "primary" } as const;
const replica = { role: "replica" } as const;
const three = () => liveOf([podOf(0, primary), podOf(1, replica), podOf(2, replica)]);
const PASSWORD_HASH = createHash("sha256").update("password-of-the-user").digest("hex");

/** Servers that answer, and all that the operator did, in words. */
class World {
  readonly done: string[] = [];
  readonly driver = valkeyDriver();
  readonly clock = new FakeClock("2026-03-01T00:00:00Z");
  /** What each pod reports: how many follow it, whom it follows, or nothing. */
  readonly reported = new Map<string, number | string | undefined>();
  database: Database;
  context: ClusterContext;

  constructor(database = valkey("db-premium_plus")) {
    this.database = database;
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
    this.lead(0);
  }

  /** One of them is the primary, all others follow it. */
  lead(ordinal: number): void {
    for (const one of [0, 1, 2]) {
      this.reported.set(`shop-${one}`, one === ordinal ? 2 : nodeAddress(this.database, ordinal));
    }
  }

  reconcile(live: LiveDatabase) {
    return this.driver.reconcile(this.database, live, this.context);
  }

  #answer(name: string, stdin: string): string {
    const commands = stdin.split("\n").filter((line) => line !== "" && !line.startsWith("INFO"));
    this.done.push(
      ...commands.filter((line) => !line.startsWith("CONFIG SET")).map((line) => `${name}: ${line}`),
    );
    const reported = this.reported.get(name);
    if (reported === undefined) {
      return "Could not connect to Valkey at localhost:6379: Connection refused\n";
    }
    const replicas = Array.from({ length: Number(reported) || 0 }, (_, i) => `slave${i}:ip=x,state=online`);
    const role =
      typeof reported === "number" ? ["role:master", ...replicas] : ["role:slave", `master_host:${reported}`];
    return [...commands.map(() => "OK"), "valkey_version:9.1.2", ...role, ""].join("\n");
  }

  #client(): KubeClient {
    const client = {
      patch: async (_: unknown, { name }: ObjectRef, { metadata }: KubernetesObject) =>
        this.done.push(`label ${name} ${metadata?.labels?.["slipway.dev/role"]}`),
      delete: async (_: unknown, { name }: ObjectRef) => this.done.push(`delete ${name}`),
      podExec: async (
        { name }: ObjectRef,
        options: { command: string[]; stdin?: string; container: string },
      ) => {
        if (options.container === "sentinel") {
          this.done.push(`${name}: ${options.command.slice(-4).join(" ")}`);
          return { exitCode: 0, stdout: "OK\n", stderr: "" };
        }
        return { exitCode: 0, stdout: this.#answer(name, options.stdin ?? ""), stderr: "" };
      },
    };
    return client as unknown as KubeClient;
  }
}

/** A world whose instances have got the project's account. */
async function withAccounts(database?: Database): Promise<World> {
  const world = new World(database);
  await world.reconcile(three());
  world.done.length = 0;
  return world;
}

describe("instances", () => {
  test("get the project's account as a hash, once for each process", async () => {
    const world = new World();
    const clusterState = await world.reconcile(three());
    expect(world.done).toHaveLength(3);
    expect(world.done[0]).toMatch(`shop-0: ACL SETUSER app reset on #${PASSWORD_HASH} ~*`);
    expect(world.done.join()).not.toContain("password-of");
    expect(clusterState).toMatchObject({
      primary: "shop-0",
      runningVersion: "9.1.2",
      credentialsHash: world.database.credentialsHash,
    });
    expect(clusterState.missing ?? clusterState.underWay).toBeUndefined();
    world.done.length = 0;
    await world.reconcile(three());
    expect(world.done).toEqual([]);
  });

  test("get a new password, which is in force once every one that serves has it", async () => {
    const world = await withAccounts();
    world.database = { ...world.database, credentialsHash: "another" };
    world.reported.set("shop-2", undefined);
    expect((await world.reconcile(three())).credentialsHash).toBeUndefined();
    expect(world.done.filter((line) => line.includes("ACL SETUSER"))).toHaveLength(3);
    world.lead(0);
    world.done.length = 0;
    expect((await world.reconcile(three())).credentialsHash).toBe("another");
    expect(world.done).toHaveLength(1);
  });

  test("accept a previous password while that is given, and then the current one alone", async () => {
    const world = await withAccounts();
    const hash = createHash("sha256").update("the one before").digest("hex");
    const credentials = { ...exampleCredentials, "previous-password": "the one before" };
    world.context = { ...world.context, credentials };
    expect((await world.reconcile(three())).credentialsHash).toBe(world.database.credentialsHash);
    expect(world.done).toHaveLength(3);
    expect(world.done[0]).toMatch(`shop-0: ACL SETUSER app reset on #${PASSWORD_HASH} #${hash} ~*`);
    world.done.length = 0;
    await world.reconcile(three());
    expect(world.done).toEqual([]);
    world.context = { ...world.context, credentials: exampleCredentials };
    world.reported.set("shop-2", undefined);
    expect((await world.reconcile(three())).credentialsHash, "not everywhere").toBeUndefined();
    world.lead(0);
    expect((await world.reconcile(three())).credentialsHash).toBe(world.database.credentialsHash);
    expect(world.done.at(-1)).toMatch(`shop-2: ACL SETUSER app reset on #${PASSWORD_HASH} ~*`);
  });

  test("are relabelled when another one has taken over", async () => {
    const world = await withAccounts();
    world.lead(1);
    world.reported.set("shop-0", undefined);
    const live = liveOf([podOf(0, { ...primary, ready: false }), podOf(1, replica), podOf(2, replica)]);
    const clusterState = await world.reconcile(live);
    expect(world.done).toEqual(["label shop-0 replica", "label shop-1 primary"]);
    expect(clusterState).toMatchObject({ primary: "shop-1", missing: { reason: "ReplicasMissing" } });
  });

  test("that stay detached get the command to follow, but not before Sentinels had their time", async () => {
    const world = await withAccounts();
    world.reported.set("shop-2", 0);
    await world.reconcile(three());
    await world.clock.advance(19_000);
    await world.reconcile(three());
    expect(world.done).toEqual([]);
    await world.clock.advance(1_000);
    await world.reconcile(three());
    expect(world.done).toEqual([`shop-2: REPLICAOF ${nodeAddress(world.database, 0)} 6379`]);
  });

  test("without a primary are reported so", async () => {
    const world = await withAccounts();
    world.reported.set("shop-0", undefined);
    world.database = { ...world.database, bootstrapped: true };
    const live = liveOf([podOf(0, { ...primary, ready: false }), podOf(1, replica), podOf(2, replica)]);
    const clusterState = await world.reconcile(live);
    expect(clusterState).toMatchObject({ missing: { reason: "PrimaryMissing" } });
    expect(clusterState.primary).toBeUndefined();
    expect(world.done).toEqual([]);
  });
});

describe("new pods", () => {
  const old = { current: false } as const;

  test("replace replicas first, and the primary after another has taken over", async () => {
    const world = await withAccounts();
    await world.reconcile(
      liveOf([podOf(0, { ...primary, ...old }), podOf(1, replica), podOf(2, { ...replica, ...old })]),
    );
    expect(world.done).toEqual(["delete shop-2"]);
    world.done.length = 0;
    const live = liveOf([podOf(0, { ...primary, ...old }), podOf(1, replica), podOf(2, replica)]);
    const clusterState = await world.reconcile(live);
    expect(world.done).toEqual(["shop-1: SENTINEL FAILOVER primary COORDINATED"]);
    expect(clusterState.underWay?.reason).toBe("SwitchingOver");
  });

  test("replace the only one immediately", async () => {
    const world = new World(valkey("db-premium"));
    world.reported.set("shop-0", 0);
    await world.reconcile(liveOf([podOf(0, { ...primary, ...old })]));
    expect(world.done.at(-1)).toBe("delete shop-0");
  });
});

describe("fewer instances", () => {
  const fewer = valkey("db-premium", { replicas: 3 });

  test("wait until the primary is one that stays", async () => {
    const world = await withAccounts(fewer);
    world.lead(2);
    const live = liveOf([podOf(0, replica), podOf(1, replica), podOf(2, primary)]);
    expect(await world.driver.isCaughtUp(fewer, live, world.context)).toBe(false);
    await world.reconcile(live);
    expect(world.done).toEqual(["shop-0: SENTINEL FAILOVER primary COORDINATED"]);
  });

  test("are stopped once the primary is one that stays, reports it itself, and every other one agrees", async () => {
    const world = await withAccounts(fewer);
    const isCaughtUp = () => world.driver.isCaughtUp(fewer, three(), world.context);
    expect(await isCaughtUp()).toBe(true);
    for (const [pod, reported] of [
      ["shop-0", undefined],
      ["shop-0", nodeAddress(fewer, 1)],
      ["shop-2", undefined],
      ["shop-2", 0],
      ["shop-2", nodeAddress(fewer, 1)],
    ] as const) {
      world.lead(0);
      world.reported.set(pod, reported);
      expect(await isCaughtUp(), `${pod}: ${reported}`).toBe(false);
    }
  });
});

test.each(["default", "slipway_admin", "a b", ""])("the username %j is refused", async (username) => {
  const world = new World();
  world.context = { ...world.context, credentials: { ...exampleCredentials, username } };
  expect((await world.reconcile(three())).missing?.reason).toBe("CredentialsPending");
  expect(world.done).toEqual([]);
});
