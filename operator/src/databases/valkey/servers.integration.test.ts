import { credentialKeys } from "@slipway/crds";
import { silentLogger, systemClock } from "@slipway/process";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { waitFor } from "../../../../hack/lib/wait.ts";
import {
  databaseOf,
  exampleCredentials,
  exampleDatabase,
  liveOf,
} from "../../../../test/kit/databases/examples.ts";
import { TestMembers } from "../../../../test/kit/databases/valkey.ts";
import { isLong } from "../../../../test/kit/long.ts";
import { hasRole } from "../common/pods.ts";
import type { Database } from "../database.ts";
import type { ClusterContext, ClusterState } from "../driver.ts";
import { follow, query, switchOver } from "./commands.ts";
import { type Directives, directives } from "./config.ts";
import { valkeyDriver } from "./driver.ts";
import { accounts, nodeAddress } from "./names.ts";

const USER = exampleCredentials[credentialKeys.username] ?? "";
const { admin, monitor } = accounts;

// Servers take long to start on a busy machine.
vi.setConfig({ testTimeout: 300_000 });

let members: TestMembers | undefined;
afterEach(async () => {
  await members?.close();
  members = undefined;
});

const of = (plan: string, profile: Database["profile"] = "key_value"): Database =>
  databaseOf({
    project: exampleDatabase({
      type: "valkey",
      plan,
      version: "9.1.1",
      profile,
      instances: undefined,
      ...(profile === "cache" ? { storage: undefined } : {}),
    }),
  });

const contextOf = (group: TestMembers): ClusterContext => ({
  client: group.client(),
  // The servers are real, and so is the time that the operator waits for them.
  clock: systemClock,
  log: silentLogger,
  signal: AbortSignal.timeout(280_000),
  credentials: exampleCredentials,
  authority: group.authority,
  certificate: { serial: "01", signedAt: new Date("2026-01-01T00:00:00Z") },
  status: {},
  event: () => {},
  queryMember: (_pod, question) => question(),
  wake: () => {},
});

/** Waits until an instance serves. */
async function ready(group: TestMembers, ordinal: number): Promise<void> {
  const serves = async () => (await group.probe(ordinal, "ready.sh")) === 0;
  await waitFor(`instance ${ordinal}`, 120_000, serves).catch((error: Error) => {
    const output = [group.output(ordinal), group.output(ordinal, "sentinel")].map((text) =>
      text.slice(-3_000),
    );
    throw new Error([error.message, ...output].join("\n"));
  });
}

async function started(database: Database): Promise<TestMembers> {
  const group = await TestMembers.make(database);
  members = group;
  for (const ordinal of group.pods.keys()) {
    group.start(ordinal);
  }
  for (const ordinal of group.pods.keys()) {
    await ready(group, ordinal);
  }
  return group;
}

/** What `CONFIG GET` answers, as a file of settings would have it. */
async function inForce(group: TestMembers, name: string): Promise<string> {
  return (await group.ask(0, admin, "CONFIG", "GET", name)).split("\n").slice(1).join("\n");
}

const BYTES = { kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 } as const;

/** A value as a server reports it: in bytes, without quotation marks. */
function reportedValue(name: string, values: Directives[number][1][]): string {
  const plain = values
    .join(" ")
    .replaceAll('"', "")
    .replaceAll(/([0-9]+)(kb|mb|gb)/g, (_, number: string, unit: keyof typeof BYTES) =>
      String(Number(number) * BYTES[unit]),
    );
  return name === "client-output-buffer-limit"
    ? (expect.stringContaining(plain.replace("replica", "slave")) as string)
    : plain;
}

describe("a server", () => {
  test.each([
    ["db-premium", "key_value"],
    ["cache-basic", "cache"],
    ["cache-premium_plus", "cache"],
  ] as const)("on %s of a %s accepts every setting", async (plan, profile) => {
    const database = of(plan, profile);
    const group = await started(database);
    for (const [name, ...values] of directives(database)) {
      // Shown to nobody, but refused where it is unknown.
      if (name === "sanitize-dump-payload") {
        continue;
      }
      expect([name, await inForce(group, name)]).toEqual([name, reportedValue(name, values)]);
    }
  });

  test("permits each account what it is for, and nothing else", async () => {
    const group = await started(of("db-premium"));
    const as = (user: string) => (line: string) => group.ask(0, user, ...line.split(" "));
    const user = as(USER);
    for (const allowed of [
      "SET a 1",
      "EXPIRE a 100",
      "EVAL return(redis.call('GET',KEYS[1])) 1 a",
      "PUBLISH news it",
      "KEYS *",
      "CLIENT LIST",
      "CLIENT SETNAME it",
      "XADD queue * a 1",
      "SCAN 0",
      "FLUSHDB",
      "INFO memory",
      "ROLE",
      "WAIT 0 10",
      "ACL WHOAMI",
    ]) {
      expect([allowed, await user(allowed)]).toEqual([
        allowed,
        expect.not.stringMatching(/^(ERR|NOPERM)/) as string,
      ]);
    }
    for (const refused of [
      "CONFIG GET maxmemory",
      "CONFIG SET maxmemory 0",
      "CONFIG REWRITE",
      "DEBUG SLEEP 0",
      "SHUTDOWN NOSAVE",
      "ACL LIST",
      "ACL SETUSER other on",
      "ACL DELUSER slipway_monitor",
      "REPLICAOF NO ONE",
      "FAILOVER",
      "SAVE",
      "BGSAVE",
      "BGREWRITEAOF",
      "MONITOR",
      "CLIENT KILL TYPE normal",
      "CLIENT PAUSE 1",
      "MODULE LIST",
      "MODULE LOAD /tmp/it.so",
      "CLUSTER RESET",
      "LATENCY RESET",
      "SLOWLOG GET",
      "SWAPDB 0 1",
      "MIGRATE 127.0.0.1 1 a 0 1",
    ]) {
      expect([refused, await user(refused)]).toEqual([
        refused,
        expect.stringMatching(/^NOPERM|^ERR (DEBUG|MODULE) command not allowed/) as string,
      ]);
    }
    for (const allowed of ["PING", "INFO", "DBSIZE", "LATENCY LATEST", "SLOWLOG LEN"]) {
      expect([allowed, await as(monitor)(allowed)]).toEqual([
        allowed,
        expect.not.stringMatching(/^(ERR|NOPERM)/) as string,
      ]);
    }
    for (const refused of [
      "GET a",
      "KEYS *",
      "SCAN 0",
      "SLOWLOG GET",
      "CLIENT LIST",
      "CONFIG GET *",
      "RANDOMKEY",
    ]) {
      expect([refused, await as(monitor)(refused)]).toEqual([
        refused,
        expect.stringMatching(/^NOPERM/) as string,
      ]);
    }
    expect(await group.ask(0, "default", "PING")).toMatch(/AUTH failed|NOAUTH|WRONGPASS/);
  });

  test("sets the project's new password without ending its sessions", async () => {
    const group = await started(of("db-premium"));
    const context = contextOf(group);
    const renewed = { ...exampleCredentials, [credentialKeys.password]: "another-password" };
    const driver = valkeyDriver();
    const session = group.session(0);
    expect(await session.set("a", "1")).toBe("OK");
    const clusterState = await driver.reconcile(
      { ...group.database, credentialsHash: "renewed" },
      liveOf(group.pods),
      {
        ...context,
        credentials: renewed,
      },
    );
    expect(clusterState).toMatchObject({
      primary: "shop-0",
      runningVersion: expect.stringMatching(/^9\.1\./) as string,
      credentialsHash: "renewed",
    });
    expect(await session.get("a")).toBe("1");
    expect(await group.ask(0, USER, "PING")).toMatch(/WRONGPASS/);

    // The one before it, for as long as it is kept.
    const give = (credentials: typeof exampleCredentials) =>
      driver.reconcile({ ...group.database, credentialsHash: "renewed" }, liveOf(group.pods), {
        ...context,
        credentials,
      });
    const before = exampleCredentials[credentialKeys.password] ?? "";
    await give({ ...renewed, [credentialKeys.previousPassword]: before });
    expect(await group.ask(0, USER, "PING")).toMatch(/PONG/);
    await give(renewed);
    expect(await group.ask(0, USER, "PING")).toMatch(/WRONGPASS/);
    expect(await session.get("a")).toBe("1");
    session.disconnect();
  });
});

/**
 * Counts on an instance until it no longer does, while `change` makes another one the primary, which must have the last number that
 * was acknowledged: nothing of that may be lost; what was not may have been done.
 */
async function expectNothingLost(
  group: TestMembers,
  ordinal: number,
  change: () => Promise<string>,
): Promise<void> {
  const session = group.session(ordinal);
  await session.set("count", 0);
  let counting = true;
  const counted = (async () => {
    let count = 0;
    while (counting) {
      const incremented = await session.incr("count").catch(() => undefined);
      if (incremented === undefined) {
        return count;
      }
      count = incremented;
    }
    return count;
  })();
  const next = await change();
  counting = false;
  const last = await counted;
  session.disconnect();
  const kept = Number(await group.ask(Number(next.slice(-1)), USER, "GET", "count"));
  expect(kept - last === 0 || kept - last === 1).toBe(true);
  expect(last).toBeGreaterThan(0);
}

/** The primary, once it is another one. */
const another = (before: string, replicated: () => Promise<string | undefined>): Promise<string> =>
  waitFor("another primary", 120_000, async () => {
    const name = await replicated();
    return name === undefined || name === before ? false : name;
  });

describe("three servers and their Sentinels", () => {
  /** Running instances, and the reconciles of the operator. */
  async function three() {
    const group = await started(of("db-premium_plus"));
    const wake = vi.fn();
    const context = { ...contextOf(group), wake };
    const driver = valkeyDriver();
    onTestFinished(() => driver.forget?.(group.database.uid));
    const reconcile = (): Promise<ClusterState> =>
      driver.reconcile(group.database, liveOf(group.pods), context);
    /** The primary, once the replicas follow it. */
    const replicated = () =>
      waitFor("replicas that follow", 120_000, async () => {
        for (const ordinal of group.pods.keys()) {
          await group.probe(ordinal, "ready.sh");
        }
        const clusterState = await reconcile();
        return clusterState.missing || clusterState.underWay ? false : clusterState.primary;
      });
    const primary = () => group.pods.findIndex((pod) => hasRole(pod, "primary"));
    const [first, second, third] = group.pods;
    if (!first || !second || !third) {
      throw new Error("too few pods");
    }
    return { group, context, wake, reconcile, replicated, primary, pods: [first, second, third] as const };
  }

  test("agree on a primary, follow it, and have another one take over in an orderly way", async () => {
    const { group, context, replicated, pods } = await three();
    expect(await replicated()).toBe("shop-0");
    expect(group.pods.map(({ metadata }) => metadata.labels?.["slipway.dev/role"])).toEqual([
      "primary",
      "replica",
      "replica",
    ]);
    for (const ordinal of group.pods.keys()) {
      await waitFor("a Sentinel that is no longer patient", 60_000, async () => {
        const fields = (await group.askSentinel(ordinal, "SENTINEL", "PRIMARY", "primary")).split("\n");
        return fields[fields.indexOf("down-after-milliseconds") + 1] === "3000";
      });
      expect(await group.askSentinel(ordinal, "SENTINEL", "DEBUG")).toMatch(/TILT-PERIOD\n5000/);
    }
    const priority = "CONFIG SET replica-priority 100";
    expect(await query(pods[0], [priority], context)).toMatchObject({ role: "primary", followers: 2 });
    const following = { role: "replica", linked: true, follows: nodeAddress(group.database, 0) };
    expect(await query(pods[1], [], context)).toMatchObject(following);
    expect(await query(pods[1], ["NONSENSE"], context)).toBeUndefined();

    await group.ask(2, admin, "REPLICAOF", "NO", "ONE");
    expect(await follow(group.database, pods[2], pods[0], context)).toMatchObject({ role: "replica" });
    await replicated();

    await expectNothingLost(group, 0, async () => {
      await waitFor("a switchover", 60_000, async () => (await switchOver(pods[1], context)) === "OK");
      return another("shop-0", replicated);
    });
  });

  test("hand over what was acknowledged before the primary's pod ends, though its Sentinel has ended", async () => {
    const { group, replicated } = await three();
    const before = await replicated();
    const ordinal = Number(before.slice(-1));
    await expectNothingLost(group, ordinal, async () => {
      await group.kill(ordinal, "sentinel");
      // The others must know the replicas.
      await waitFor("a replica in its place", 60_000, async () => {
        expect(await group.probe(ordinal, "stop.sh")).toBe(0);
        return /role:slave/.test(await group.ask(ordinal, monitor, "INFO", "replication"));
      });
      return another(before, replicated);
    });
    // A replica ends without that.
    expect(await group.probe(ordinal, "stop.sh")).toBe(0);
    expect(await replicated()).not.toBe(before);
  });

  test.skipIf(!isLong)(
    "replace a primary that crashed, and one that lost its data while all were away (--long)",
    async () => {
      const { group, wake, replicated, reconcile, primary } = await three();
      await replicated();
      // From now on Sentinels publish another primary.
      await waitFor(
        "Sentinels that are listened to",
        60_000,
        async () => (await reconcile()).requeueAfterMs === 60_000,
      );
      expect(wake).not.toHaveBeenCalled();
      const crashed = primary();
      expect(await group.ask(crashed, USER, "SET", "a", "1")).toBe("OK");
      // Whom they do not know cannot take its place. Once they know all, they ask the primary for its replicas less often.
      for (const ordinal of group.pods.keys()) {
        await waitFor("a Sentinel that knows the replicas", 60_000, async () => {
          const fields = (await group.askSentinel(ordinal, "SENTINEL", "PRIMARY", "primary")).split("\n");
          const known = fields[fields.findIndex((word) => /^num-(slaves|replicas)$/.test(word)) + 1] === "2";
          return known && /INFO-PERIOD\n10000/.test(await group.askSentinel(ordinal, "SENTINEL", "DEBUG"));
        });
      }
      await group.kill(crashed);
      await waitFor("word of a failover", 120_000, async () => wake.mock.calls.length > 0);
      await waitFor("a failover", 120_000, async () => {
        await reconcile();
        return primary() !== crashed && (await group.ask(primary(), USER, "SET", "b", "2")) === "OK";
      });
      group.startOne(crashed, "database");
      await ready(group, crashed);
      await replicated();
      expect(await group.ask(crashed, USER, "MGET", "a", "b")).toBe("1\n2");

      const last = primary();
      for (const ordinal of group.pods.keys()) {
        await group.kill(ordinal, "sentinel");
        await group.kill(ordinal);
      }
      await group.emptyData(last);
      for (const ordinal of group.pods.keys()) {
        group.start(ordinal);
      }
      expect(await replicated()).not.toBe(`shop-${last}`);
      for (const ordinal of group.pods.keys()) {
        await ready(group, ordinal);
        expect(await group.ask(ordinal, USER, "MGET", "a", "b")).toBe("1\n2");
      }
    },
  );

  test("are not promoted before they have synchronized once, on volumes that are new", async () => {
    const { group, replicated, reconcile } = await three();
    expect(await replicated()).toBe("shop-0");
    expect(await group.ask(0, USER, "SET", "a", "1")).toBe("OK");
    // Copies that take long: of a large database, or on a slow network.
    expect(await group.ask(0, admin, "CONFIG", "SET", "repl-diskless-sync-delay", "600")).toBe("OK");
    for (const ordinal of [1, 2]) {
      await group.kill(ordinal);
      await group.emptyData(ordinal);
      group.startOne(ordinal, "database");
      await waitFor("a replica that has begun", 60_000, async () =>
        (await group.ask(ordinal, admin, "INFO", "replication")).includes("master_link_status:down"),
      );
    }
    for (const ordinal of group.pods.keys()) {
      await waitFor("a Sentinel that knows the replicas", 60_000, async () => {
        const fields = (await group.askSentinel(ordinal, "SENTINEL", "PRIMARY", "primary")).split("\n");
        return fields[fields.findIndex((field) => /^num-(slaves|replicas)$/.test(field)) + 1] === "2";
      });
    }
    // The operator raises no priority before they are linked.
    await reconcile();
    await group.kill(0);
    await waitFor("a failover that is aborted, or ends with a promotion", 120_000, async () => {
      const logs = [...group.pods.keys()].map((ordinal) => group.output(ordinal, "sentinel")).join("\n");
      return /failover-abort-no-good|\+promoted-/.test(logs);
    });
    for (const ordinal of [1, 2]) {
      expect(await group.ask(ordinal, admin, "INFO", "replication")).toContain("role:slave");
    }

    group.startOne(0, "database");
    for (const ordinal of group.pods.keys()) {
      await ready(group, ordinal);
    }
    await waitFor("replicas that may be promoted", 60_000, async () => {
      await reconcile();
      const infos = await Promise.all(
        [1, 2].map((ordinal) => group.ask(ordinal, admin, "INFO", "replication")),
      );
      return infos.every((info) => info.includes("slave_priority:100"));
    });
    for (const ordinal of group.pods.keys()) {
      expect(await group.ask(ordinal, USER, "GET", "a")).toBe("1");
    }
  });
});
