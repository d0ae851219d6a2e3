/** From MariaDB's status to the snapshot's groups. Pure. docs/databases-metrics.md has the sources. */

import type { MariadbMetrics } from "@slipway/crds";
import { count, type Facts, Interval, number, type RawSample, ratio, sum } from "./facts.ts";
import type { Expected } from "./postgresql.ts";

/** Names of the global status that are read, in lower case. All else is left in the server. */
export const STATUS_NAMES: readonly string[] = [
  "aborted_connects",
  "bytes_received",
  "bytes_sent",
  "innodb_buffer_pool_bytes_data",
  "innodb_buffer_pool_pages_dirty",
  "innodb_buffer_pool_pages_free",
  "innodb_buffer_pool_pages_total",
  "innodb_buffer_pool_read_requests",
  "innodb_buffer_pool_reads",
  "innodb_data_fsyncs",
  "innodb_data_reads",
  "innodb_data_writes",
  "innodb_deadlocks",
  "innodb_log_waits",
  "innodb_log_writes",
  "innodb_page_size",
  "innodb_row_lock_current_waits",
  "innodb_row_lock_time",
  "innodb_row_lock_waits",
  "queries",
  "questions",
  "slow_queries",
  "threads_connected",
  "threads_running",
  "uptime",
  "uptime_since_flush_status",
  "wsrep_cluster_size",
  "wsrep_cluster_status",
  "wsrep_local_state_comment",
  "wsrep_ready",
];

/**
 * @param now facts are the status by name in lower case, and `max_connections`, `database_size`
 * @param before an earlier sample of the instance, for rates
 */
export function mariadbNative(
  now: RawSample,
  before: RawSample | undefined,
  expected: Expected,
): MariadbMetrics {
  const { facts } = now;
  const interval = flushed(before, now) ? undefined : Interval.between(before, now);
  const current = count(facts.threads_connected);
  const max = count(facts.max_connections);
  const reads = count(facts.innodb_buffer_pool_reads);
  const requests = count(facts.innodb_buffer_pool_read_requests);
  return {
    connections: {
      current,
      max,
      utilization_ratio: ratio(current, max),
      threads_connected: current,
      threads_running: count(facts.threads_running),
      aborted_connects_total: count(facts.aborted_connects),
    },
    activity: {
      queries_total: count(facts.queries),
      questions_total: count(facts.questions),
      queries_per_second: interval?.rate("queries") ?? null,
      bytes_received_per_second: interval?.rate("bytes_received") ?? null,
      bytes_sent_per_second: interval?.rate("bytes_sent") ?? null,
      slow_queries_total: count(facts.slow_queries),
    },
    cache: {
      buffer_pool_size_bytes: pages(facts, "innodb_buffer_pool_pages_total"),
      buffer_pool_data_bytes: count(facts.innodb_buffer_pool_bytes_data),
      buffer_pool_free_bytes: pages(facts, "innodb_buffer_pool_pages_free"),
      buffer_pool_dirty_pages: count(facts.innodb_buffer_pool_pages_dirty),
      buffer_pool_reads_total: reads,
      buffer_pool_read_requests_total: requests,
      hit_ratio: ratio(requests !== null && reads !== null ? requests - reads : null, requests),
    },
    redo_io: {
      log_writes_total: count(facts.innodb_log_writes),
      log_waits_total: count(facts.innodb_log_waits),
      fsyncs_total: count(facts.innodb_data_fsyncs),
      io_per_second: interval?.rate("innodb_data_reads", "innodb_data_writes") ?? null,
    },
    storage: { database_size_bytes: count(facts.database_size) },
    locks: {
      row_lock_waits_total: count(facts.innodb_row_lock_waits),
      row_lock_time_ms_total: count(facts.innodb_row_lock_time),
      current_waits: count(facts.innodb_row_lock_current_waits),
      deadlocks_total: count(facts.innodb_deadlocks),
    },
    latency: { average_query_latency_ms: null },
    health: { up: true, uptime_seconds: number(facts.uptime) },
    replication: replication(facts, expected),
  };
}

/** `FLUSH STATUS` resets the counters. The server reports its time in whole seconds. */
const WHOLE_SECONDS_MS = 2_000;

function flushed(before: RawSample | undefined, now: RawSample): boolean {
  const [then, since] = [
    number(before?.facts.uptime_since_flush_status),
    number(now.facts.uptime_since_flush_status),
  ];
  if (before === undefined || then === null || since === null) {
    return false;
  }
  return (since - then) * 1_000 < now.clockMs - before.clockMs - WHOLE_SECONDS_MS;
}

function pages(facts: Facts, name: string): number | null {
  const [found, size] = [count(facts[name]), count(facts.innodb_page_size)];
  return found === null || size === null ? null : found * size;
}

/** Galera reports no lag in seconds: every node has a transaction before its commit is answered, and applies it soon. */
function replication(facts: Facts, { replicas }: Expected): MariadbMetrics["replication"] {
  const member = facts.wsrep_cluster_status === "Primary";
  const size = count(facts.wsrep_cluster_size);
  const state = facts.wsrep_local_state_comment;
  return {
    status: typeof facts.wsrep_cluster_status !== "string" ? null : member ? word(state) : "disconnected",
    replicas_available: member && size !== null ? sum(size, -1) : null,
    replicas_expected: replicas,
    lag_seconds: null,
  };
}

/** Such as `synced`, `donor_desynced`, `joined`. */
function word(state: Facts[string] | undefined): string | null {
  return typeof state === "string"
    ? state
        .toLowerCase()
        .replaceAll(/[^a-z]+/g, "_")
        .slice(0, 64)
    : null;
}
