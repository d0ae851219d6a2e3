import { checkServerIdentity } from "node:tls";
import pg from "pg";
import { expect } from "vitest";
import type { WriteSession } from "./acknowledged.ts";
import { cluster } from "./cluster.ts";
import { type DatabaseProject, databaseAuthority } from "./databases.ts";
import { eventually } from "./eventually.ts";

/** Where a connection goes to, and the name that the certificate must have. */
interface Target {
  host: string;
  port: number;
  name: string;
}

/** Opens one connection as an ordinary client does, the certificate checked. */
async function connect(
  { connection }: DatabaseProject,
  { host, port, name }: Target,
  password: string,
  queryTimeoutMs = 60_000,
): Promise<pg.Client> {
  const client = new pg.Client({
    host,
    port,
    database: connection.database,
    user: connection.username,
    password,
    // An address is no name that TLS sends; the certificate is checked for it all the same.
    ssl: {
      ca: databaseAuthority(),
      checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate),
    },
    connectionTimeoutMillis: 3_000,
    query_timeout: queryTimeoutMs,
    // A session that a fault has cut off must not hold the test.
    keepAlive: true,
  });
  // A connection that ends between two statements fails in the next one.
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

/** Connects with what the creation returned. */
export const connectPostgresql = (
  project: DatabaseProject,
  password = project.connection.password,
): Promise<pg.Client> =>
  connect(
    project,
    { host: project.connection.host, port: project.connection.port, name: project.connection.host },
    password,
  );

/** The same at the address of a node: a node port leads to pods of its own node alone. A query that has no answer after 5 s fails. */
export function connectAtNode(project: DatabaseProject, host: string): Promise<pg.Client> {
  const { port, host: name, password } = project.connection;
  return connect(project, { host, port, name }, password, 5_000);
}

/** Connects to one pod, past every Service. */
export async function connectPod(project: DatabaseProject, pod: string): Promise<pg.Client> {
  const { status } = await cluster.core.readNamespacedPod({ namespace: project.namespace, name: pod });
  if (!status?.podIP) {
    throw new Error(`${pod} has no address`);
  }
  const name = `${pod}.${project.id}-nodes.${project.namespace}.svc`;
  return connect(project, { host: status.podIP, port: 5432, name }, project.connection.password);
}

export const createRows = (client: pg.Client): Promise<unknown> =>
  client.query("CREATE TABLE IF NOT EXISTS rows (id bigint PRIMARY KEY, by text)");

/** Ids of all rows that are there. */
export async function readRows(client: pg.Client): Promise<Set<number>> {
  const { rows } = await client.query<{ id: string }>("SELECT id FROM rows");
  return new Set(rows.map(({ id }) => Number(id)));
}

/** Writes rows over a connection. The term is PostgreSQL's timeline, which every promotion raises. */
export function rowsOver(client: pg.Client, by: string): WriteSession {
  return {
    async insert(id) {
      const insert = {
        text: "INSERT INTO rows VALUES ($1, $2) RETURNING substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline",
        values: [id, by],
        // A writer goes on over another connection.
        query_timeout: 5_000,
      };
      const { rows } = await client.query<{ timeline: string }>(insert);
      return { by, term: Number.parseInt(rows[0]?.timeline ?? "", 16) };
    },
    close: () => client.end(),
  };
}

/** Waits until another session waits for any lock. */
export async function untilBlocked(client: pg.Client): Promise<void> {
  await eventually(async () => {
    const sql = "SELECT count(*)::int AS waiting FROM pg_locks WHERE NOT granted";
    const { rows } = await client.query<{ waiting: number }>(sql);
    expect(rows[0]?.waiting).toBeGreaterThan(0);
  });
}
