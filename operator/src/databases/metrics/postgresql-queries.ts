/** What PostgreSQL is queried for; every name in the answer is a fact's. Read with `pg_read_all_stats` and nothing more. */

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
