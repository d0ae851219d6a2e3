/** From what PostgreSQL reports of itself to the snapshot's groups. Pure. docs/databases-metrics.md has the sources. */

import type { PostgresqlMetrics } from "@slipway/crds";
import { count, Interval, number, type RawSample, ratio, sum } from "./facts.ts";

/** What only the platform knows. */
export interface Expected {
  /** Instances beside the primary. */
  replicas: number;
}

/** @param before an earlier sample of the instance, for rates */
export function postgresqlNative(
  now: RawSample,
  before: RawSample | undefined,
  expected: Expected,
): PostgresqlMetrics {
  const { facts } = now;
  const interval = Interval.between(before, now);
  /** Of counters that are reset together. */
  const since = (reset: string) => (interval?.same(reset) ? interval : undefined);
  const current = count(facts.sessions);
  const max = count(facts.max_connections);
  const hits = count(facts.buffer_hits);
  const reads = count(facts.buffer_reads);
  const started = number(facts.started);
  return {
    connections: {
      current,
      max,
      utilization_ratio: ratio(current, max),
      active: count(facts.sessions_active),
      idle: count(facts.sessions_idle),
    },
    activity: {
      commits_total: count(facts.commits),
      rollbacks_total: count(facts.rollbacks),
      transactions_per_second: since("database_reset")?.rate("commits", "rollbacks") ?? null,
      rows_returned_total: count(facts.rows_returned),
      rows_fetched_total: count(facts.rows_fetched),
      rows_written_total: count(facts.rows_written),
      temp_files_total: count(facts.temp_files),
      temp_bytes_total: count(facts.temp_bytes),
    },
    cache: { buffer_hits_total: hits, buffer_reads_total: reads, hit_ratio: ratio(hits, sum(hits, reads)) },
    storage: { database_size_bytes: count(facts.database_size) },
    locks: {
      waiting_total: null,
      waiting: count(facts.sessions_waiting),
      deadlocks_total: count(facts.deadlocks),
    },
    latency: {
      average_query_latency_ms: averageLatency(since("statements_reset")),
      slow_queries_total: null,
    },
    reliability: {
      up: true,
      uptime_seconds: started === null ? null : Math.max(0, now.clockMs / 1_000 - started),
      wal_bytes_total: count(facts.wal_bytes),
      wal_bytes_per_second: since("wal_reset")?.rate("wal_bytes") ?? null,
      checkpoints_total: count(facts.checkpoints),
      checkpoint_buffers_total: count(facts.checkpoint_buffers),
      ...replication(now, expected),
    },
  };
}

/** Of what ran between the two samples; statements that were forgotten meanwhile would be missing in the sums. */
function averageLatency(interval: Interval | undefined): number | null {
  if (!interval?.same("statements_dropped")) {
    return null;
  }
  const calls = interval.growth("statement_calls");
  const milliseconds = interval.growth("statement_ms");
  return calls === null || calls === 0 || milliseconds === null ? null : milliseconds / calls;
}

function replication({ facts, clockMs }: RawSample, { replicas }: Expected) {
  if (typeof facts.in_recovery !== "boolean") {
    return {
      role: null,
      replicas_available: null,
      replicas_expected: replicas,
      lag_seconds: null,
      lag_bytes: null,
    };
  }
  if (!facts.in_recovery) {
    const bytes = count(facts.replicas_lag_bytes);
    return {
      role: "primary",
      replicas_available: count(facts.replicas_streaming),
      replicas_expected: replicas,
      // The server forgets the time once a replica has caught up and nothing is written.
      lag_seconds: bytes === 0 ? 0 : number(facts.replicas_lag_seconds),
      lag_bytes: bytes,
    };
  }
  const bytes = count(facts.replay_lag_bytes);
  const replayed = number(facts.replayed);
  return {
    role: "replica",
    replicas_available: null,
    replicas_expected: replicas,
    lag_seconds: bytes === 0 ? 0 : replayed === null ? null : Math.max(0, clockMs / 1_000 - replayed),
    lag_bytes: bytes,
  };
}
