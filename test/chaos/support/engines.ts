/** Databases of every engine, as tests that run for all of them use them. */
import type { WriteSession } from "../../e2e/support/acknowledged.ts";
import * as clickhouse from "../../e2e/support/clickhouse.ts";
import { type DatabaseProject, databaseProject } from "../../e2e/support/databases.ts";
import * as mariadb from "../../e2e/support/mariadb.ts";
import * as postgresql from "../../e2e/support/postgresql.ts";
import * as valkey from "../../e2e/support/valkey.ts";

/** A change of a spec, as a JSON patch. */
export type Change = readonly object[];

export interface Engine {
  readonly name: string;
  /** The body of a creation, of as many instances as the embedded stack's engine has at most. */
  body(): object;
  /** Sizes that it may be changed to, largest first; none where it has one. */
  readonly sizes: readonly Change[];
  /** Plans that it may be changed to, and back. */
  readonly plans: readonly Change[];
  /** Milliseconds before a fault in which what was acknowledged may be lost: its replication is asynchronous. */
  readonly windowMs: number;
  /** Opens a session that writes rows, with their table there. */
  open(project: DatabaseProject): Promise<WriteSession>;
  /** Ids of all rows. */
  rows(project: DatabaseProject): Promise<Set<number>>;
}

const replace = (path: string, value: unknown): Change => [{ op: "replace", path: `/spec/${path}`, value }];
const plans = (...names: string[]): Change[] => names.map((name) => replace("plan", name));
const instances = (...counts: number[]): Change[] => counts.map((count) => replace("instances", count));

export const postgresqlDriver: Engine = {
  name: "PostgreSQL",
  body: () => databaseProject("db-basic", { type_project: "postgresql", version: "17", instances: 3 }),
  sizes: instances(3, 2, 1),
  plans: plans("db-premium", "db-basic"),
  windowMs: 0,
  open: async (project) => {
    const client = await postgresql.connectPostgresql(project);
    await postgresql.createRows(client);
    return postgresql.rowsOver(client, "outside");
  },
  rows: async (project) => {
    const client = await postgresql.connectPostgresql(project);
    return postgresql.readRows(client).finally(() => client.end());
  },
};

export const mariadbDriver: Engine = {
  name: "MariaDB",
  body: () => databaseProject("db-basic", { type_project: "mariadb", version: "11", instances: 3 }),
  sizes: [],
  plans: plans("db-premium", "db-basic"),
  windowMs: 0,
  open: async (project) => {
    const client = await mariadb.connectMariadb(project);
    await mariadb.createRows(client);
    return mariadb.rowsOver(client, "outside");
  },
  rows: async (project) => {
    const client = await mariadb.connectMariadb(project);
    return mariadb.readRows(client).finally(() => client.destroy());
  },
};

export const valkeyDriver: Engine = {
  name: "Valkey",
  body: () => valkey.valkeyProject("db-premium_plus", "key_value"),
  // A service's instances are its plan's.
  sizes: plans("db-premium_plus", "db-basic"),
  plans: [],
  windowMs: 1_000,
  open: async (project) => valkey.rowsOver(await valkey.connectValkey(project), "outside"),
  rows: async (project) => {
    const client = await valkey.connectValkey(project);
    return valkey.readRows(client).finally(() => client.disconnect());
  },
};

/** One instance: the embedded stack's engine does not replicate. */
export const clickhouseDriver: Engine = {
  name: "ClickHouse",
  body: () => databaseProject("analytics-basic", { type_project: "clickhouse", version: "26.8.6.5" }),
  sizes: [],
  plans: plans("analytics-premium", "analytics-basic"),
  windowMs: 0,
  open: async ({ connection }) => {
    const client = clickhouse.connectClickhouse(connection);
    await clickhouse.createIds(client);
    return clickhouse.idsOver(client, "outside");
  },
  rows: ({ connection }) => clickhouse.withClickhouse(connection, clickhouse.readIds),
};
