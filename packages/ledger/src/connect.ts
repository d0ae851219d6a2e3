import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient, sql } from "kysely";
import pg from "pg";
import type { LedgerSchema } from "./schema.ts";

export type Ledger = Kysely<LedgerSchema>;

export interface ConnectOptions {
  /** PostgreSQL connection URL. */
  url: string;
  /** Shown in pg_stat_activity. */
  applicationName: string;
  /** Most connections of this process. Default 8. */
  maxConnections?: number;
  /**
   * Longest time of one statement in milliseconds. Default 10,000. 0 is for migrations: no limit, and none on the wait for
   * a lock.
   */
  statementTimeoutMs?: number;
  /** Called for errors of connections that no query waits on; the pool replaces them automatically. */
  onIdleError?: (error: Error) => void;
}

/** How long a query waits for a connection, also to a busy server, which starts a process for it and verifies the password (SCRAM). */
const CONNECT_TIMEOUT_MS = 6_000;
/** How long a connection is kept that nothing uses. */
const IDLE_TIMEOUT_MS = 60_000;
/** How much longer than the server this side waits for an answer: a silent network ends no statement here. */
const ANSWER_GRACE_MS = 1_000;
/** How long a statement waits for a lock: its holder is quick, or lost. */
const LOCK_TIMEOUT_MS = 3_000;
/** How long the server keeps a transaction, and its locks, whose client says nothing. */
const IDLE_IN_TRANSACTION_MS = 5_000;
const IDLE_IN_MIGRATION_MS = 60_000;
/** The server asks a silent client for a sign of life, and gives it up within a minute instead of hours. */
const SERVER_KEEP_ALIVE =
  "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3 -c tcp_user_timeout=60000";
/** An idle connection gets a keepalive probe after so long. */
const KEEP_ALIVE_DELAY_MS = 10_000;

/**
 * Opens a pool on the ledger. No connection is made before the first query; a lost one is replaced by the next query,
 * and one that does not answer is abandoned a second after the statement's own time. The server in turn ends a transaction
 * whose client falls silent, so that a lost one's locks are free within seconds. Only a server that takes writes is used: of a
 * ledger with two instances the primary, also after a failover. Close it with `ledger.destroy()`.
 */
export function connectLedger(options: ConnectOptions): Ledger {
  const statementTimeoutMs = options.statementTimeoutMs ?? 10_000;
  const pool = new pg.Pool({
    connectionString: options.url,
    application_name: options.applicationName,
    max: options.maxConnections ?? 8,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    statement_timeout: statementTimeoutMs,
    query_timeout: statementTimeoutMs > 0 ? statementTimeoutMs + ANSWER_GRACE_MS : 0,
    lock_timeout: statementTimeoutMs > 0 ? LOCK_TIMEOUT_MS : 0,
    idle_in_transaction_session_timeout:
      statementTimeoutMs > 0 ? IDLE_IN_TRANSACTION_MS : IDLE_IN_MIGRATION_MS,
    options: SERVER_KEEP_ALIVE,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    verify: (client, done) => {
      refuseStandby(client).then(() => done(), done);
    },
  });
  // Without listeners a database restart would end the process: the pool listens to idle connections only, so each
  // connection gets one for the moments in which a query holds it. What the query itself meets rejects its promise.
  // Only the message is kept: pg attaches the whole client to the error, with secrets that must not be logged.
  const report = (error: Error) => options.onIdleError?.(new Error(error.message));
  pool.on("error", report);
  pool.on("connect", (client) => client.on("error", report));
  return new Kysely<LedgerSchema>({ dialect: new PostgresDialect({ pool: boundedPool(pool) }) });
}

/**
 * A Service may still lead to the primary of before while that is a standby by now. Nothing is written there, and what is read may be of the
 * past. @throws Error for such a server
 */
async function refuseStandby(client: pg.PoolClient): Promise<void> {
  const { rows } = await client.query<{ transaction_read_only: string }>("show transaction_read_only");
  if (rows[0]?.transaction_read_only !== "off") {
    throw new Error("the ledger's server takes no writes: it is a standby");
  }
}

/** SQLSTATE of a write to a server that takes none. */
const READ_ONLY = "25006";

/**
 * A pool that gives no connection out again on which a query failed without an answer of the server: pg's
 * `query_timeout` ends the wait, but the query continues there, and the next query would wait behind it. Nor one whose server
 * takes no writes any more.
 */
export function boundedPool(pool: pg.Pool): PostgresPool {
  return {
    options: pool.options,
    connect: async () => boundedClient(await pool.connect()),
    end: () => pool.end(),
  };
}

function boundedClient(client: pg.PoolClient): PostgresPoolClient {
  let lost: unknown;
  const query = async (text: string, parameters: readonly unknown[]): Promise<unknown> => {
    // The rollback of a transaction whose connection is lost: the server does it automatically.
    if (lost !== undefined) {
      throw lost;
    }
    try {
      return await client.query(text, [...parameters]);
    } catch (error) {
      if (!(error instanceof pg.DatabaseError) || error.code === READ_ONLY) {
        lost = error;
      }
      throw error;
    }
  };
  const release = (destroy = false): void => client.release(destroy || lost !== undefined);
  // Nothing here streams, so there are no cursors.
  return { query, release } as PostgresPoolClient;
}

/** What the ledger's clock says. @throws when the database is away */
export async function ledgerTime(ledger: Ledger): Promise<Date> {
  const { rows } = await sql<{ now: Date }>`select clock_timestamp() as now`.execute(ledger);
  const [row] = rows;
  if (!row) {
    throw new Error("the ledger does not say its time");
  }
  return row.now;
}

/**
 * How many standbys have every commit before it is acknowledged; 0 for a ledger of one instance, or where the account may not see it.
 * @throws when the database is away
 */
export async function countSynchronousStandbys(ledger: Ledger): Promise<number> {
  const { rows } = await sql<{ standbys: number }>`select count(*)::int as standbys from pg_stat_replication
    where state = 'streaming' and sync_state in ('sync', 'quorum')`.execute(ledger);
  return rows[0]?.standbys ?? 0;
}
