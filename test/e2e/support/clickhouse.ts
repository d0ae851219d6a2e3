import { type ClickHouseClient, ClickHouseLogLevel, createClient } from "@clickhouse/client";
import type { WriteSession } from "./acknowledged.ts";
import { type Connection, databaseAuthority } from "./databases.ts";

/** ClickHouse's own client, with what creation returned; the server's certificate is checked. */
export function connectClickhouse({
  connectionString,
}: Pick<Connection, "connectionString">): ClickHouseClient {
  const { host, pathname, username, password } = new URL(connectionString);
  return createClient({
    url: `https://${host}`,
    username,
    password,
    database: pathname.slice(1),
    tls: { ca_cert: Buffer.from(databaseAuthority()) },
    // Failures are reported by the tests.
    log: { level: ClickHouseLogLevel.OFF },
  });
}

/** Runs `use` with a client, and closes it. */
export async function withClickhouse<T>(
  connection: Pick<Connection, "connectionString">,
  use: (client: ClickHouseClient) => Promise<T>,
): Promise<T> {
  const client = connectClickhouse(connection);
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

/** The one value that a query answers. */
export async function answerOf(client: ClickHouseClient, query: string): Promise<string> {
  const answer = await client.query({ query, format: "TabSeparated" });
  return (await answer.text()).trimEnd();
}

/** A table with as many rows, each acknowledged when this resolves. */
export async function writeRows(client: ClickHouseClient, rows: number): Promise<void> {
  await client.command({
    query: "CREATE TABLE rows (id UInt64, text String) ENGINE = MergeTree ORDER BY id",
  });
  const values = Array.from({ length: rows }, (_, id) => ({ id, text: `row ${id}` }));
  await client.insert({ table: "rows", values, format: "JSONEachRow" });
}

/** How many rows there are, and whether they are those that were written. */
export const readRows = (client: ClickHouseClient): Promise<string> =>
  answerOf(
    client,
    "SELECT concat(toString(count()), ' ', toString(sum(id))) FROM rows WHERE text = concat('row ', toString(id))",
  );

export const createIds = (client: ClickHouseClient): Promise<unknown> =>
  client.command({
    query: "CREATE TABLE IF NOT EXISTS ids (id UInt64, by String) ENGINE = MergeTree ORDER BY id",
  });

/** Ids of all rows that `idsOver` wrote. */
export async function readIds(client: ClickHouseClient): Promise<Set<number>> {
  return new Set((await answerOf(client, "SELECT id FROM ids")).split("\n").map(Number));
}

/** Writes rows one at a time. The engine does not count its primaries. */
export function idsOver(client: ClickHouseClient, by: string): WriteSession {
  return {
    async insert(id) {
      await client.insert({ table: "ids", values: [{ id, by }], format: "JSONEachRow" });
      return { by, term: 0 };
    },
    close: () => client.close(),
  };
}
