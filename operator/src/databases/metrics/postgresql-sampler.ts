/** Reads the statistics of a PostgreSQL server as its monitoring account. */

import pg from "pg";
import type { Facts } from "./facts.ts";
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

// What PostgreSQL is queried for; every name in the answer is a fact's. Read with `pg_read_all_stats` and nothing more.

/** Where the statistics of checkpoints are, which moved with version 17. */
function checkpoints(major: number): string {
  if (major < 17) {
    return `select checkpoints_timed + checkpoints_req as done, buffers_checkpoint as buffers, stats_reset
      from pg_stat_bgwriter`;
  }
  // 17 counts a timed one also where it had nothing to do; 18 counts those that were done.
  const primary = major >= 18 ? "num_done" : "num_timed + num_requested";
  return `select case when pg_is_in_recovery() then restartpoints_done else ${primary} end as done,
      buffers_written as buffers, stats_reset
    from pg_stat_checkpointer`;
}

const epoch = (moment: string) => `extract(epoch from ${moment})::float8`;

/**
 * One row with one column `facts`.
 * @param major of the server: 15 or later
 * The first parameter is the name of the project's database.
 */
export function statisticsQuery(major: number): string {
  return `
    select json_build_object(
      'now', ${epoch("clock_timestamp()")},
      'started', ${epoch("pg_postmaster_start_time()")},
      'in_recovery', pg_is_in_recovery(),
      'max_connections', current_setting('max_connections')::int,
      'sessions', s.sessions, 'sessions_active', s.active, 'sessions_idle', s.idle, 'sessions_waiting', s.waiting,
      'commits', d.xact_commit, 'rollbacks', d.xact_rollback,
      'rows_returned', d.tup_returned, 'rows_fetched', d.tup_fetched,
      'rows_written', d.tup_inserted + d.tup_updated + d.tup_deleted,
      'temp_files', d.temp_files, 'temp_bytes', d.temp_bytes,
      'buffer_hits', d.blks_hit, 'buffer_reads', d.blks_read, 'deadlocks', d.deadlocks,
      'database_reset', ${epoch("d.stats_reset")},
      'database_size', case when d.datid is not null then pg_database_size(d.datid) end,
      'wal_bytes', w.wal_bytes, 'wal_reset', ${epoch("w.stats_reset")},
      'checkpoints', c.done, 'checkpoint_buffers', c.buffers, 'checkpoints_reset', ${epoch("c.stats_reset")},
      'replicas_streaming', r.streaming, 'replicas_lag_bytes', r.lag_bytes, 'replicas_lag_seconds', r.lag_seconds,
      'replay_lag_bytes', case when pg_is_in_recovery()
        then greatest(pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), 0) end,
      'replayed', case when pg_is_in_recovery() then ${epoch("pg_last_xact_replay_timestamp()")} end
    ) as facts
    from (
      select count(*) as sessions, count(*) filter (where state = 'active') as active,
        count(*) filter (where state = 'idle') as idle, count(*) filter (where wait_event_type = 'Lock') as waiting
      from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()
    ) s
    cross join pg_stat_wal w
    cross join (${checkpoints(major)}) c
    cross join (
      select count(*) as streaming,
        case when not pg_is_in_recovery() then max(greatest(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn), 0)) end
          as lag_bytes,
        ${epoch("max(replay_lag)")} as lag_seconds
      from pg_stat_replication where state = 'streaming'
    ) r
    left join pg_stat_database d on d.datname = $1`;
}

/** Whether the extension that reports latencies exists. */
export const STATEMENTS_KNOWN = "select from pg_extension where extname = 'pg_stat_statements'";

/** Sums over the project's database, without reading any statement's text. */
export const STATEMENTS_QUERY = `
  select json_build_object(
    'statement_calls', coalesce(sum(s.calls), 0), 'statement_ms', coalesce(sum(s.total_exec_time), 0),
    'statements_dropped', (select dealloc from pg_stat_statements_info),
    'statements_reset', (select ${epoch("stats_reset")} from pg_stat_statements_info)
  ) as facts
  from pg_stat_statements(showtext := false) s
  where s.dbid = (select oid from pg_database where datname = $1)`;
