/** Reads the figures of a MariaDB server as its monitoring account. */

import type { Connection } from "mariadb";
import { OWN_SCHEMA } from "../mariadb/names.ts";
import type { Facts } from "./facts.ts";
import { STATUS_NAMES } from "./mariadb.ts";
import type { Server } from "./postgresql-sampler.ts";
import type { Reading } from "./snapshot.ts";

/** Longest time until the server greets, and of each answer, in milliseconds. */
const PATIENCE_MS = 8_000;

/** A SHOW needs no right; so a member that is in no group answers it, too. */
const STATUS_QUERY = `SHOW GLOBAL STATUS WHERE Variable_name IN (${STATUS_NAMES.map((name) => `'${name}'`).join(",")})`;
const LIMIT_QUERY = "SHOW GLOBAL VARIABLES LIKE 'max_connections'";

interface Line {
  Variable_name: string;
  Value: string;
}

/** @throws when the server does not answer, or refuses the account */
export async function sampleMariadb(server: Server, signal: AbortSignal): Promise<Reading> {
  const { host, port, user, password, ca, serverName, container, database } = server;
  // The name is checked as well, though the driver's types do not know of it.
  const ssl = { ca, servername: serverName };
  // For the first server: it takes 34 MB.
  const { createConnection } = await import("mariadb");
  const connection = await connect(
    createConnection({
      host,
      port,
      user,
      password,
      ...(ca === undefined ? {} : { ssl }),
      connectTimeout: PATIENCE_MS,
      socketTimeout: PATIENCE_MS,
      bigIntAsNumber: true,
    }),
    signal,
  );
  // The query that waits for a lost connection fails, too.
  connection.on("error", () => undefined);
  const hangUp = () => connection.destroy();
  signal.addEventListener("abort", hangUp, { once: true });
  try {
    const status = await connection.query<Line[]>(STATUS_QUERY);
    const clockMs = Date.now();
    const limits = await connection.query<Line[]>(LIMIT_QUERY);
    const size = await sizeOf(connection, database);
    const facts: Facts = {
      ...Object.fromEntries(
        [...status, ...limits].map(({ Variable_name, Value }) => [Variable_name.toLowerCase(), Value]),
      ),
      database_size: size ?? null,
    };
    if (facts.uptime === undefined) {
      throw new Error("the server reported no figures");
    }
    return { raw: { process: container, clockMs, facts }, incomplete: size === undefined };
  } finally {
    signal.removeEventListener("abort", hangUp);
    hangUp();
  }
}

/** A connection that nobody waits for any more is closed once it is open. */
async function connect(opening: Promise<Connection>, signal: AbortSignal): Promise<Connection> {
  const given = Promise.withResolvers<never>();
  const abandon = () => given.reject(new Error("the sample was abandoned"));
  signal.addEventListener("abort", abandon, { once: true });
  try {
    return await Promise.race([opening, given.promise]);
  } catch (error) {
    void opening.then(
      (late) => late.destroy(),
      () => undefined,
    );
    throw error;
  } finally {
    signal.removeEventListener("abort", abandon);
  }
}

/** Bytes of the project's tables; undefined where they cannot be read now. */
async function sizeOf(connection: Connection, database: string): Promise<number | undefined> {
  try {
    const [row] = await connection.query<{ size: number | null }[]>(
      `SELECT ${OWN_SCHEMA}.database_size(?) AS size`,
      [database],
    );
    return row?.size ?? undefined;
  } catch {
    return undefined;
  }
}
