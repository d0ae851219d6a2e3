import { allNull, mariadbMetrics } from "@slipway/crds";
import { expect, test } from "vitest";
import type { Facts, RawSample } from "./facts.ts";
import { mariadbNative } from "./mariadb.ts";

/** As a MariaDB 11.8 with Galera reports it: text everywhere. */
const recorded: Facts = {
  aborted_connects: "4",
  bytes_received: "1000",
  bytes_sent: "9000",
  innodb_buffer_pool_bytes_data: "52428800",
  innodb_buffer_pool_pages_dirty: "7",
  innodb_buffer_pool_pages_free: "1000",
  innodb_buffer_pool_pages_total: "8000",
  innodb_buffer_pool_read_requests: "10000",
  innodb_buffer_pool_reads: "500",
  innodb_data_fsyncs: "77",
  innodb_data_reads: "600",
  innodb_data_writes: "400",
  innodb_deadlocks: "2",
  innodb_log_waits: "0",
  innodb_log_writes: "321",
  innodb_page_size: "16384",
  innodb_row_lock_current_waits: "1",
  innodb_row_lock_time: "1500",
  innodb_row_lock_waits: "9",
  queries: "2000",
  questions: "1800",
  slow_queries: "3",
  threads_connected: "25",
  threads_running: "2",
  uptime: "600",
  uptime_since_flush_status: "600",
  wsrep_cluster_size: "3",
  wsrep_cluster_status: "Primary",
  wsrep_local_state_comment: "Synced",
  wsrep_ready: "ON",
  max_connections: "100",
  database_size: 1_048_576,
};

const AT = 1_767_225_600_000;
const raw = (change: Facts = {}, clockMs = AT, process = "pod/1"): RawSample => ({
  process,
  clockMs,
  facts: { ...recorded, ...change },
});
const later = (change: Facts = {}) =>
  raw(
    {
      queries: "2600",
      bytes_received: "7000",
      bytes_sent: "21000",
      innodb_data_reads: "630",
      innodb_data_writes: "490",
      uptime: "660",
      uptime_since_flush_status: "660",
      ...change,
    },
    AT + 60_000,
  );
const native = (now: RawSample, before?: RawSample) => mariadbNative(now, before, { replicas: 2 });

test("a first sample has counters and ratios, and no rate", () => {
  expect(native(raw())).toEqual({
    connections: {
      current: 25,
      max: 100,
      utilization_ratio: 0.25,
      threads_connected: 25,
      threads_running: 2,
      aborted_connects_total: 4,
    },
    activity: {
      queries_total: 2_000,
      questions_total: 1_800,
      queries_per_second: null,
      bytes_received_per_second: null,
      bytes_sent_per_second: null,
      slow_queries_total: 3,
    },
    cache: {
      buffer_pool_size_bytes: 131_072_000,
      buffer_pool_data_bytes: 52_428_800,
      buffer_pool_free_bytes: 16_384_000,
      buffer_pool_dirty_pages: 7,
      buffer_pool_reads_total: 500,
      buffer_pool_read_requests_total: 10_000,
      hit_ratio: 0.95,
    },
    redo_io: { log_writes_total: 321, log_waits_total: 0, fsyncs_total: 77, io_per_second: null },
    storage: { database_size_bytes: 1_048_576 },
    locks: { row_lock_waits_total: 9, row_lock_time_ms_total: 1_500, current_waits: 1, deadlocks_total: 2 },
    latency: { average_query_latency_ms: null },
    health: { up: true, uptime_seconds: 600 },
    replication: { status: "synced", replicas_available: 2, replicas_expected: 2, lag_seconds: null },
  });
});

/** Queries, bytes in, bytes out, I/O in a second. */
const rates = (now: RawSample, before?: RawSample) => {
  const { activity, redo_io } = native(now, before);
  const { queries_per_second, bytes_received_per_second, bytes_sent_per_second } = activity;
  return [queries_per_second, bytes_received_per_second, bytes_sent_per_second, redo_io.io_per_second];
};
const none = [null, null, null, null];

test.each<[string, RawSample, RawSample | undefined, (number | null)[]]>([
  ["of two samples of one process", later(), raw(), [10, 100, 200, 2]],
  ["without an earlier sample", later(), undefined, none],
  ["of another process", later(), raw({}, AT, "pod/2"), none],
  [
    "after FLUSH STATUS, though every counter is larger",
    later({ uptime_since_flush_status: "30" }),
    raw(),
    none,
  ],
  [
    "long after FLUSH STATUS",
    later({ uptime_since_flush_status: "90" }),
    raw({ uptime_since_flush_status: "30" }),
    [10, 100, 200, 2],
  ],
  ["of a counter that shrank", later({ queries: "5" }), raw(), [null, 100, 200, 2]],
  ["of a counter that is not reported", later({ innodb_data_reads: null }), raw(), [10, 100, 200, null]],
])("rates %s", (_, now, before, expected) => {
  expect(rates(now, before)).toEqual(expected);
});

test.each<[string, Facts, unknown[]]>([
  ["a member", {}, ["synced", 2]],
  ["a donor", { wsrep_local_state_comment: "Donor/Desynced" }, ["donor_desynced", 2]],
  ["a member of two", { wsrep_cluster_size: "2" }, ["synced", 1]],
  ["a node without quorum", { wsrep_cluster_status: "non-Primary" }, ["disconnected", null]],
  ["a server without Galera", { wsrep_cluster_status: null }, [null, null]],
])("replication of %s", (_, change, expected) => {
  const { status, replicas_available } = native(raw(change)).replication;
  expect([status, replicas_available]).toEqual(expected);
});

test("what is absent is null, never zero", () => {
  const found = mariadbNative({ process: "p", clockMs: 1_000, facts: {} }, undefined, { replicas: 2 });
  const nothing = allNull(mariadbMetrics);
  expect(found).toEqual({
    ...nothing,
    health: { up: true, uptime_seconds: null },
    replication: { ...nothing.replication, replicas_expected: 2 },
  });
});
