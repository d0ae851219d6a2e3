/** Reads the statistics of a PostgreSQL server as its monitoring account. */

import pg from "pg";
import type { Facts } from "./facts.ts";
import { STATEMENTS_KNOWN, STATEMENTS_QUERY, statisticsQuery } from "./postgresql-queries.ts";
import type { Reading } from "./snapshot.ts";

/** Where and as whom a server is read. */
export interface Server {
  /** Address of the pod. */
  host: string;
  port: number;
  /** Name in the server's certificate. */
  serverName: string;
  /** PEM of the databases' authority; undefined speaks without TLS, as only tests do. */
  ca: string | undefined;
  user: string;
  password: string;
  /** The project's own database, which is reported on and not connected to. */
  database: string;
  /** Identifies one container of the pod. */
  container: string;
}

/** Oldest version with the views that are read. */
const OLDEST_MAJOR = 15;

/** @throws when the server does not answer, refuses the account, or is of an older version */
export async function samplePostgresql(server: Server, signal: AbortSignal): Promise<Reading> {
  const client = new pg.Client({
    host: server.host,
    port: server.port,
    user: server.user,
    password: server.password,
    database: "postgres",
    application_name: "slipway-monitor",
    ssl: server.ca === undefined ? false : { ca: server.ca, servername: server.serverName },
  });
  // The query that waits for a lost connection fails, too.
  client.on("error", () => undefined);
  const hangUp = () => void client.end().catch(() => undefined);
  signal.addEventListener("abort", hangUp, { once: true });
  try {
    await client.connect();
    return await read(client, server);
  } finally {
    signal.removeEventListener("abort", hangUp);
    hangUp();
  }
}

async function read(client: pg.Client, { database, container }: Server): Promise<Reading> {
  const major = await majorOf(client);
  const facts = await factsOf(client, statisticsQuery(major), database);
  const { now, started } = facts ?? {};
  if (facts === undefined || typeof now !== "number") {
    throw new Error("the server reported no statistics");
  }
  const statements = await statementsOf(client, database);
  return {
    raw: {
      process: `${container}/${String(started)}`,
      clockMs: now * 1_000,
      facts: { ...facts, ...statements },
    },
    // Nothing is reported of a database that does not exist yet, nor of statements that could not be read.
    incomplete: statements === undefined || facts.database_size === null,
  };
}

async function majorOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ number: string }>(
    "select current_setting('server_version_num') as number",
  );
  const major = Math.floor(Number(rows[0]?.number) / 10_000);
  if (!(major >= OLDEST_MAJOR)) {
    throw new Error("the server's version is not known");
  }
  return major;
}

/** Empty where the image has no such extension: then latencies have no source. Undefined where it could not be read. */
async function statementsOf(client: pg.Client, database: string): Promise<Facts | undefined> {
  try {
    const known = await client.query(STATEMENTS_KNOWN);
    return known.rowCount === 0 ? {} : await factsOf(client, STATEMENTS_QUERY, database);
  } catch {
    return undefined;
  }
}

async function factsOf(client: pg.Client, query: string, database: string): Promise<Facts | undefined> {
  const { rows } = await client.query<{ facts: Facts }>(query, [database]);
  return rows[0]?.facts;
}
