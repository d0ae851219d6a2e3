import { annotations, type DatabaseStatus } from "@slipway/crds";
import { silentLogger, systemClock } from "@slipway/process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  databaseOf,
  exampleCredentials,
  exampleDatabase,
  liveOf,
} from "../../../../test/kit/databases/examples.ts";
import { TestGroup } from "../../../../test/kit/databases/mariadb.ts";
import { isLong } from "../../../../test/kit/long.ts";
import { WORK } from "../../backups/agent/protocol.ts";
import { mariadbScripts } from "../../backups/engines/index.ts";
import { hasRole } from "../common/pods.ts";
import type { ClusterContext, ClusterState } from "../driver.ts";
import { mariadbNative } from "../metrics/mariadb.ts";
import { sampleMariadb } from "../metrics/mariadb-sampler.ts";
import { runScript } from "./commands.ts";
import { mariadbDriver } from "./driver.ts";
import { accounts, MARIADB_PORT, memberAddresses } from "./names.ts";

/**
 * Real servers, and an operator that tends them through the scripts in their containers. Two are enough for all that a
 * group does, and either of them leaves the other without a majority; `--long` has the three of a project.
 */
const instances = isLong ? 3 : 2;
const all = Array.from({ length: instances }, (_, ordinal) => ordinal);
const others = all.slice(1);

const project = exampleDatabase({ type: "mariadb", plan: "db-basic", version: "11", instances: 3 });
const database = {
  ...databaseOf({ project }),
  instances,
  members: instances,
  replicas: instances,
  memoryBytes: 192 * 1024 * 1024,
};
const driver = mariadbDriver();
const orders: string[] = [];
let group: TestGroup;
let status: DatabaseStatus = {};
let credentials = exampleCredentials;

beforeAll(async () => {
  group = await TestGroup.make(database);
  for (const ordinal of all) {
    group.start(ordinal);
  }
});
afterAll(() => group?.close());

/** Orders that a member has accepted; it rejects one that it has already. */
function note({ order = "", accepted }: { order?: string; accepted?: boolean }): void {
  if (accepted) {
    orders.push(order);
  }
}

async function reconcile(): Promise<ClusterState> {
  const context: ClusterContext = {
    client: group.client(),
    clock: systemClock,
    log: { ...silentLogger, info: note } as never,
    signal: AbortSignal.timeout(60_000),
    credentials,
    certificate: { serial: "01", signedAt: new Date() },
    authority: group.authority,
    status,
    event: () => {},
    queryMember: (_pod, question) => question(),
    wake: () => {},
  };
  await group.probe();
  const now = { ...database, bootstrapped: status.bootstrappedAt !== undefined };
  const clusterState = await driver.reconcile(
    { ...now, credentialsHash: String(credentials.password) },
    liveOf(group.pods),
    context,
  );
  const { identity = status.identity, credentialsHash = status.credentialsHash } = clusterState;
  const bootstrappedAt = status.bootstrappedAt ?? (clusterState.credentialsHash && new Date().toISOString());
  status = { identity, credentialsHash, bootstrappedAt };
  return clusterState;
}

/** Reconciles the group until its findings are as expected. @throws with them, and the end of the servers' output, after `within` ms */
async function reconciledUntil(
  isExpected: (clusterState: ClusterState) => boolean,
  within: number,
): Promise<ClusterState> {
  const end = Date.now() + within;
  for (;;) {
    const clusterState = await reconcile();
    if (isExpected(clusterState)) {
      return clusterState;
    }
    if (Date.now() > end) {
      const outputs = all.map((ordinal) => `--- ${ordinal}\n${group.output(ordinal).slice(-3_000)}`);
      throw new Error(`${JSON.stringify(clusterState)}\n${outputs.join("\n")}`);
    }
  }
}

/** Reconciles the group until nothing is missing. @returns its state then */
const reconciled = (): Promise<ClusterState> =>
  reconciledUntil(
    (clusterState) => !clusterState.missing && clusterState.credentialsHash !== undefined,
    170_000,
  );

/** Whom a member takes the user for, or why it refuses it. */
async function loginOn(ordinal: number, password?: string): Promise<string> {
  try {
    const session = await group.session(ordinal, { password });
    const [row] = await session.query<{ user: string }[]>("SELECT CURRENT_USER() AS user");
    await session.end();
    return row?.user ?? "";
  } catch (error) {
    return (error as Error).message;
  }
}

/** Rows of a table, as a member has them that has applied what the others had. */
async function rowsOf(ordinal: number, table: string): Promise<number> {
  const session = await group.session(ordinal);
  await session.query("SET SESSION wsrep_sync_wait = 1");
  const [row] = await session.query<{ n: number }[]>(`SELECT COUNT(*) AS n FROM app.${table}`);
  await session.end();
  return row?.n ?? 0;
}

/** A number that distinguishes a member's newest row from others' among those that the event `tick` has inserted; 0 without any. */
async function lastTick(ordinal: number, member: string): Promise<number> {
  const session = await group.session(ordinal);
  const [row] = await session.query<{ last: number | null }[]>(
    "SELECT MAX(id) AS last FROM app.ticks WHERE member = ?",
    [member],
  );
  await session.end();
  return row?.last ?? 0;
}

interface ScheduledEvent {
  name: string;
  status: string;
}

/** The project's events, as a member keeps them, with what must stay as it is. */
async function eventsOf(ordinal: number): Promise<ScheduledEvent[]> {
  const session = await group.session(ordinal);
  const events = await session.query<ScheduledEvent[]>(
    `SELECT EVENT_NAME AS name, STATUS AS status, DEFINER, CHARACTER_SET_CLIENT, COLLATION_CONNECTION, EVENT_DEFINITION
      FROM information_schema.EVENTS ORDER BY 1`,
  );
  await session.end();
  return [...events];
}

/** What a statement of the platform's own answers. */
async function local(ordinal: number, statement: string): Promise<string> {
  const pod = group.pods[ordinal];
  if (!pod) {
    throw new Error("no such member");
  }
  const context = { client: group.client(), signal: AbortSignal.timeout(10_000) };
  return (await runScript(pod, statement, context)).stdout.trim();
}

const LIMIT_MS = 180_000;

describe("a group", () => {
  test(
    "begins once, and the others get a copy over TLS",
    async () => {
      const clusterState = await reconciled();
      expect(clusterState.primary).toBe("shop-0");
      expect(clusterState.runningVersion).toMatch(/^11\.8\./);
      expect(orders).toEqual(["initialize"]);
      const session = await group.session(0);
      await session.query("CREATE TABLE app.kept (id INT PRIMARY KEY AUTO_INCREMENT)");
      for (let i = 0; i < 10; i += 1) {
        await session.query("INSERT INTO app.kept () VALUES ()");
      }
      await session.end();
      for (const ordinal of all) {
        expect(await rowsOf(ordinal, "kept")).toBe(10);
      }
      for (const ordinal of others) {
        expect(group.output(ordinal)).toContain("cafile='/etc/slipway/tls/ca.crt'");
        expect(group.output(ordinal)).toContain("ssl://");
      }
    },
    LIMIT_MS,
  );

  test("accepts no connection without TLS, nor an account of the system over the network", async () => {
    await expect(group.session(0, { plain: true })).rejects.toThrow(/secure|1045/i);
    await expect(group.session(0, { user: "root", password: "" })).rejects.toThrow(/denied/i);
    await expect(group.session(0, { user: "mysql", password: "" })).rejects.toThrow(/denied/i);
  });

  test("permits the project's user everything in its database, and nothing else", async () => {
    const session = await group.session(0);
    await session.query("CREATE VIEW app.seen AS SELECT 1 AS one");
    await session.query(
      "CREATE TRIGGER app.before_kept BEFORE INSERT ON app.kept FOR EACH ROW SET NEW.id = NEW.id",
    );
    await session.query("DROP TRIGGER app.before_kept");
    for (const refused of [
      "CREATE DATABASE other",
      "SELECT * FROM mysql.global_priv",
      "SET GLOBAL wsrep_on = OFF",
      "CREATE USER another",
      "SELECT slipway.database_size('app')",
    ]) {
      await expect(session.query(refused), refused).rejects.toThrow(/denied/i);
    }
    await session.end();
  });

  test("shows the monitoring account its figures, and no statement nor table", async () => {
    const [user, password] = [accounts.monitor, exampleCredentials["monitor-password"] ?? ""];
    const watched = await group.session(0);
    const slow = watched.query("SELECT SLEEP(1) AS secret_text");
    const session = await group.session(0, { user, password });
    expect(JSON.stringify(await session.query("SHOW FULL PROCESSLIST"))).not.toContain("secret_text");
    await expect(session.query("SELECT * FROM app.kept")).rejects.toThrow(/denied/i);
    await slow;
    await session.end();
    await watched.end();
  });

  test("is sampled within two hundredths of what was done", async () => {
    const server = {
      host: group.address(0),
      port: MARIADB_PORT,
      serverName: memberAddresses(database)[0] ?? "",
      ca: group.authority,
      user: accounts.monitor,
      password: exampleCredentials["monitor-password"] ?? "",
      database: "app",
      container: "pod/start",
    };
    const sample = () => sampleMariadb(server, AbortSignal.timeout(10_000));
    const session = await group.session(0);
    const before = await sample();
    for (let i = 0; i < 500; i += 1) {
      await session.query("INSERT INTO app.kept () VALUES ()");
    }
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    const after = await sample();
    await session.end();
    const native = mariadbNative(after.raw, before.raw, { replicas: 2 });
    const first = mariadbNative(before.raw, undefined, { replicas: 2 });
    const counted = (native.activity.queries_total ?? 0) - (first.activity.queries_total ?? 0);
    expect(Math.abs(counted - 500)).toBeLessThanOrEqual(10);
    const seconds = (after.raw.clockMs - before.raw.clockMs) / 1_000;
    expect((native.activity.queries_per_second ?? 0) * seconds).toBeCloseTo(counted, 3);
    expect(native.storage.database_size_bytes).toBeGreaterThan(16_384);
    expect(native.connections.max).toBeGreaterThan(30);
    expect(native.replication).toMatchObject({ status: "synced", replicas_available: instances - 1 });
    expect(after.incomplete).toBe(false);
    await expect(
      sampleMariadb({ ...server, password: "wrong" }, AbortSignal.timeout(10_000)),
    ).rejects.toThrow();
    await expect(
      sampleMariadb({ ...server, serverName: "another.name" }, AbortSignal.timeout(10_000)),
    ).rejects.toThrow();
  });

  test("sets a new password without ending sessions", async () => {
    const session = await group.session(0);
    credentials = { ...exampleCredentials, password: "another password of the user's" };
    await reconciled();
    expect(await session.query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
    await session.end();
    const renewed = await group.session(0, { password: credentials.password });
    await renewed.end();
    await expect(group.session(0)).rejects.toThrow(/denied/i);
    credentials = exampleCredentials;
    await reconciled();
  });

  // Shows: docs/references.md#renewing-a-password: the previous password is refused by the engine
  test("accepts a previous password on every member, until it ends", async () => {
    const renewed = { ...exampleCredentials, password: "renewed" };
    credentials = { ...renewed, "previous-password": exampleCredentials.password ?? "" };
    await reconciled();
    for (const ordinal of all) {
      await expect.poll(() => loginOn(ordinal, "renewed")).toBe("app@%");
      expect(await loginOn(ordinal)).toBe("app@%");
    }
    credentials = renewed;
    status = { ...status, previousPassword: { until: "2026-01-01T00:00:00Z" } };
    await reconciled();
    for (const ordinal of all) {
      await expect.poll(() => loginOn(ordinal)).toMatch(/denied/i);
      expect(await loginOn(ordinal, "renewed")).toBe("app@%");
    }
    credentials = exampleCredentials;
    await reconciled();
  });

  test("is backed up whatever the user has set as its own password", async () => {
    const session = await group.session(0);
    await session.query("CREATE PROCEDURE app.count_kept() SELECT COUNT(*) FROM app.kept");
    await session.query("SET PASSWORD = PASSWORD('nobody else knows it')");
    const exchange = "/tmp/exchange";
    const credentialOf = (key: string) => String(exampleCredentials[key as keyof typeof exampleCredentials]);
    const { dump, credentials: keys, dumpCredentials, dumpVariables } = mariadbScripts;
    const env = {
      DATABASE_HOST: memberAddresses(database)[0] ?? "",
      ...Object.fromEntries(
        Object.entries({ ...keys, ...dumpCredentials }).map(([name, key]) => [name, credentialOf(key)]),
      ),
      ...dumpVariables,
    };
    const agent = `until [ -p ${exchange}/data ]; do sleep 0.1; done; cat ${exchange}/data >${exchange}/stored`;
    const exports = Object.entries(env).map(([name, value]) => `export ${name}='${value}'`);
    const script = dump.replaceAll(WORK, exchange);
    const all = `rm -rf ${exchange}; mkdir ${exchange}; ${exports.join("; ")}; { ${agent}; } & sh -c "$(cat)" 2>&1; wait; cat ${exchange}/contents; grep -c 'PROCEDURE .count_kept' ${exchange}/stored`;
    const { stdout } = await group.exec(0, ["/bin/sh", "-c", all], script);
    const [row] = await session.query<{ n: number }[]>("SELECT COUNT(*) AS n FROM app.kept");
    expect(stdout.trim().split("\n").slice(-2)).toEqual([`\`kept\`\t${row?.n}`, "1"]);
    await session.query("SET PASSWORD = PASSWORD(?)", [credentialOf("password")]);
    await session.end();
    const backup = { user: accounts.backup, password: credentialOf("superuser-password") };
    const reading = await group.session(0, backup);
    await expect(reading.query("DELETE FROM app.kept")).rejects.toThrow(/denied/i);
    await expect(reading.query("SELECT * FROM mysql.global_priv")).rejects.toThrow(/denied/i);
    await reading.end();
  });

  test(
    "runs scheduled events on the primary alone, and on the member that takes its place",
    async () => {
      const session = await group.session(0);
      await session.query("CREATE TABLE app.ticks (id INT PRIMARY KEY AUTO_INCREMENT, member VARCHAR(64))");
      const every = "ON SCHEDULE EVERY 1 SECOND";
      const tick = "DO INSERT INTO app.ticks (member) VALUES (@@wsrep_node_name)";
      await session.query(`CREATE EVENT app.tick ${every} ${tick}`);
      await session.query(`CREATE EVENT app.\`tick's \`\`other\`\` — é\` ${every} DO SET @nothing = 'é'`);
      await session.query(`CREATE EVENT app.born_disabled ${every} DISABLE ${tick}`);
      // Not due: the scheduler writes an event's status back with each run, and undoes a DISABLE that it did not see (MariaDB's).
      await session.query(`CREATE EVENT app.altered ${every} STARTS NOW() + INTERVAL 1 DAY ${tick}`);
      await session.query("ALTER EVENT app.altered DISABLE");
      const before = await eventsOf(0);
      expect(before.map(({ name, status: is }) => `${name} ${is}`)).toEqual([
        "altered DISABLED",
        "born_disabled DISABLED",
        "tick ENABLED",
        "tick's `other` — é ENABLED",
      ]);
      await expect.poll(() => lastTick(0, "shop-0")).toBeGreaterThan(0);
      await expect.poll(() => local(0, "SELECT COUNT(*) FROM slipway.disabled_events")).toBe("2");
      // What the others keep of them does not have what the user requested.
      expect(new Set((await eventsOf(1)).map(({ status: is }) => is))).toEqual(
        new Set(["SLAVESIDE_DISABLED"]),
      );

      const [first] = group.pods;
      const annotated = { ...first?.metadata.annotations };
      if (first) {
        first.metadata.annotations = { ...annotated, [annotations.settingsHash]: "before" };
      }
      await reconciledUntil(() => group.pods.slice(1).some((pod) => hasRole(pod, "primary")), 60_000);
      if (first) {
        first.metadata.annotations = annotated;
      }
      const next = group.pods.findIndex((pod) => hasRole(pod, "primary"));
      await expect
        .poll(async () =>
          (await reconcile()).primary === `shop-${next}` ? lastTick(next, `shop-${next}`) : 0,
        )
        .toBeGreaterThan(0);
      expect(await eventsOf(next)).toEqual(before);
      const last = await lastTick(next, "shop-0");
      const seen = await lastTick(next, `shop-${next}`);
      await expect.poll(() => lastTick(next, `shop-${next}`)).toBeGreaterThan(seen + 2 * instances);
      expect(await lastTick(next, "shop-0")).toBe(last);
      await session.end();
    },
    LIMIT_MS,
  );

  test(
    "that loses all members together continues from the one that has most, with all that was acknowledged",
    async () => {
      const session = await group.session(0);
      await session.query("CREATE TABLE app.lost (id INT PRIMARY KEY)");
      let acknowledged = 0;
      const writing = (async () => {
        for (let id = 1; ; id += 1) {
          await session.query("INSERT INTO app.lost VALUES (?)", [id]);
          acknowledged = id;
        }
      })().catch(() => undefined);
      await expect.poll(() => acknowledged).toBeGreaterThan(50);
      await Promise.all(all.map((ordinal) => group.end(ordinal, "SIGKILL")));
      await writing;
      orders.length = 0;
      for (const ordinal of others) {
        group.start(ordinal);
      }
      // One that does not answer may have had the last of them.
      const waiting = await reconcile();
      expect(waiting.missing?.reason).toBe("Recovering");
      expect(orders).toEqual([]);
      group.start(0);
      await reconciled();
      expect(orders).toEqual(["bootstrap"]);
      for (const ordinal of all) {
        expect(await rowsOf(ordinal, "lost")).toBeGreaterThanOrEqual(acknowledged);
      }
      const ticks = await rowsOf(0, "ticks");
      await expect
        .poll(async () => {
          await reconcile();
          return rowsOf(0, "ticks");
        })
        .toBeGreaterThan(ticks);
    },
    LIMIT_MS,
  );

  test(
    "that has lost its majority is revived from the member that is left, once the others have reported their positions",
    async () => {
      await Promise.all(others.map((ordinal) => group.end(ordinal, "SIGKILL")));
      orders.length = 0;
      await expect
        .poll(async () => (await reconcile()).missing?.reason, { timeout: 60_000 })
        .toBe("Recovering");
      // Whoever has the majority by now, if anybody, may run the events: its own probe sees to that.
      const scheduler = "SHOW GLOBAL VARIABLES LIKE 'event_scheduler'";
      await expect
        .poll(async () => {
          await group.probe();
          return local(0, scheduler);
        })
        .toMatch(/OFF$/);
      for (const ordinal of others) {
        group.start(ordinal);
      }
      await reconciled();
      expect(orders).toEqual(["revive"]);
    },
    LIMIT_MS,
  );

  test(
    "that is stopped in order starts again with everything",
    async () => {
      const rows = await rowsOf(0, "kept");
      await Promise.all(all.map((ordinal) => group.end(ordinal, "SIGTERM")));
      orders.length = 0;
      for (const ordinal of all) {
        group.start(ordinal);
      }
      await reconciled();
      expect(orders).toEqual(["bootstrap"]);
      for (const ordinal of all) {
        expect(await rowsOf(ordinal, "kept")).toBe(rows);
      }
      expect(await group.alive(0)).toBe(0);
    },
    LIMIT_MS,
  );
});
