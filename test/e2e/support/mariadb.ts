import { setTimeout as sleep } from "node:timers/promises";
import mariadb, { type Connection } from "mariadb";
import type { WriteSession } from "./acknowledged.ts";
import { cluster } from "./cluster.ts";
import { type DatabaseProject, databaseAuthority } from "./databases.ts";
import { type Address, podAddress } from "./forward.ts";

export type MariadbClient = Connection;

/** Of each member. */
const PORT = 3306;

/** Opens one connection as an ordinary client does, the certificate checked for the name. */
async function connect(
  { connection }: DatabaseProject,
  { host, port, name }: { host: string; port: number; name: string },
  password: string,
): Promise<MariadbClient> {
  // The driver checks the host's name, or another one that its types do not know of.
  const ssl = { ca: databaseAuthority(), ...(name === host ? {} : { servername: name }) };
  const client = await mariadb.createConnection({
    host,
    port,
    user: connection.username,
    password,
    database: connection.database,
    ssl,
    bigIntAsNumber: true,
    connectTimeout: 3_000,
  });
  // A connection that ends between two statements fails in the next one.
  client.on("error", () => undefined);
  return client;
}

/** Connects with what the creation returned. */
export const connectMariadb = (
  project: DatabaseProject,
  password = project.connection.password,
): Promise<MariadbClient> => {
  const { host, port } = project.connection;
  return connect(project, { host, port, name: host }, password);
};

/** Connects to one pod, past every Service. */
export async function connectPod(project: DatabaseProject, pod: string): Promise<MariadbClient> {
  const { status } = await cluster.core.readNamespacedPod({ namespace: project.namespace, name: pod });
  if (!status?.podIP) {
    throw new Error(`${pod} has no address`);
  }
  return connectAt(project, pod, { host: status.podIP, port: PORT });
}

/** The same from a machine that has no route to addresses of pods. */
export const connectForwarded = async (project: DatabaseProject, pod: string): Promise<MariadbClient> =>
  connectAt(project, pod, await podAddress(project.namespace, pod, PORT));

function connectAt(project: DatabaseProject, pod: string, address: Address): Promise<MariadbClient> {
  const name = `${pod}.${project.id}-nodes.${project.namespace}.svc`;
  return connect(project, { ...address, name }, project.connection.password);
}

export const createRows = (client: MariadbClient): Promise<unknown> =>
  client.query("CREATE TABLE IF NOT EXISTS kept (id BIGINT PRIMARY KEY, said VARCHAR(64))");

/** Ids of all rows that the group has acknowledged by now. */
export async function readRows(client: MariadbClient): Promise<Set<number>> {
  await client.query("SET SESSION wsrep_sync_wait = 1");
  const rows = await client.query<{ id: number }[]>("SELECT id FROM kept");
  return new Set(rows.map(({ id }) => id));
}

/** Writes rows over a connection. Galera has no terms: every member of the part with a majority may take writes. */
export function rowsOver(client: MariadbClient, by: string): WriteSession {
  return {
    async insert(id) {
      await inTime(client.query("INSERT INTO kept VALUES (?, ?)", [id, by]));
      return { by, term: 0 };
    },
    close: async () => client.destroy(),
  };
}

/** A session that a fault has cut off must not hold the test. */
async function inTime(statement: Promise<unknown>): Promise<void> {
  const late = new AbortController();
  try {
    await Promise.race([
      statement,
      sleep(15_000, undefined, { signal: late.signal }).then(() => {
        throw new Error("no answer within 15 s");
      }),
    ]);
  } finally {
    late.abort();
  }
}
