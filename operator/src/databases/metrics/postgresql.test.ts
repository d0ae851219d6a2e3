import { allNull, postgresqlMetrics } from "@slipway/crds";
import { describe, expect, test } from "vitest";
import type { Facts, RawSample } from "./facts.ts";
import { postgresqlNative } from "./postgresql.ts";
import { statisticsQuery } from "./postgresql-sampler.ts";

/** What a PostgreSQL 15 answered, with a replica and pg_stat_statements. */
const recorded: Facts = {
  now: 1_767_225_600.25,
  started: 1_767_222_000.25,
  in_recovery: false,
  max_connections: 50,
  sessions: 10,
  sessions_active: 3,
  sessions_idle: 6,
  sessions_waiting: 1,
  commits: 1_000,
  rollbacks: 20,
  rows_returned: 5_000,
  rows_fetched: 4_000,
  rows_written: 300,
  temp_files: 2,
  temp_bytes: 8_192,
  buffer_hits: 900,
  buffer_reads: 100,
  deadlocks: 1,
  database_reset: 1_767_200_000,
  database_size: 7_500_000,
  wal_bytes: 1_000_000,
  wal_reset: 1_767_100_000,
  checkpoints: 12,
  checkpoint_buffers: 340,
  checkpoints_reset: 1_767_100_000,
  replicas_streaming: 2,
  replicas_lag_bytes: 4_096,
  replicas_lag_seconds: 0.25,
  replay_lag_bytes: null,
  replayed: null,
  statement_calls: 500,
  statement_ms: 1_000,
  statements_dropped: 0,
  statements_reset: 1_767_100_000,
};

const raw = (change: Facts = {}, clockMs = 1_767_225_600_250, process = "pod/start/1"): RawSample => ({
  process,
  clockMs,
  facts: { ...recorded, ...change },
});
const grown: Facts = {
  commits: 1_540,
  rollbacks: 80,
  wal_bytes: 1_600_000,
  statement_calls: 600,
  statement_ms: 1_300,
};
const later = (change: Facts = {}, seconds = 60) =>
  raw({ ...grown, ...change }, 1_767_225_600_250 + seconds * 1_000);
const native = (now: RawSample, before?: RawSample) => postgresqlNative(now, before, { replicas: 2 });

test("a first sample has counters and ratios, and no rate", () => {
  expect(native(raw())).toEqual({
    connections: { current: 10, max: 50, utilization_ratio: 0.2, active: 3, idle: 6 },
    activity: {
      commits_total: 1_000,
      rollbacks_total: 20,
      transactions_per_second: null,
      rows_returned_total: 5_000,
      rows_fetched_total: 4_000,
      rows_written_total: 300,
      temp_files_total: 2,
      temp_bytes_total: 8_192,
    },
    cache: { buffer_hits_total: 900, buffer_reads_total: 100, hit_ratio: 0.9 },
    storage: { database_size_bytes: 7_500_000 },
    locks: { waiting_total: null, waiting: 1, deadlocks_total: 1 },
    latency: { average_query_latency_ms: null, slow_queries_total: null },
    reliability: {
      up: true,
      uptime_seconds: 3_600,
      wal_bytes_total: 1_000_000,
      wal_bytes_per_second: null,
      checkpoints_total: 12,
      checkpoint_buffers_total: 340,
      role: "primary",
      replicas_available: 2,
      replicas_expected: 2,
      lag_seconds: 0.25,
      lag_bytes: 4_096,
    },
  });
});

/** Transactions, bytes of WAL in a second, and milliseconds of a query. */
const rates = (now: RawSample, before?: RawSample) => {
  const { activity, reliability, latency } = native(now, before);
  return [
    activity.transactions_per_second,
    reliability.wal_bytes_per_second,
    latency.average_query_latency_ms,
  ];
};

test.each<[string, RawSample, RawSample | undefined, (number | null)[]]>([
  ["of two samples of one process", later(), raw(), [10, 10_000, 3]],
  ["of samples that are further apart", later({}, 120), raw(), [5, 5_000, 3]],
  ["without an earlier sample", later(), undefined, [null, null, null]],
  ["of another process", later(), raw({}, undefined, "pod/start/2"), [null, null, null]],
  ["of samples in the wrong order", raw(), later(), [null, null, null]],
  ["of two samples at one moment", later({}, 0), raw(), [null, null, null]],
  [
    "after the database's statistics were reset",
    later({ database_reset: 1_767_225_630 }),
    raw(),
    [null, 10_000, 3],
  ],
  ["after WAL statistics were reset", later({ wal_reset: 1_767_225_630 }), raw(), [10, null, 3]],
  ["after statements were reset", later({ statements_reset: 1_767_225_630 }), raw(), [10, 10_000, null]],
  ["when statements were dropped", later({ statements_dropped: 4 }), raw(), [10, 10_000, null]],
  ["when nothing ran", later({ statement_calls: 500, statement_ms: 1_000 }), raw(), [10, 10_000, null]],
  ["when nothing was written", later({ wal_bytes: 1_000_000 }), raw(), [10, 0, 3]],
  [
    "of counters that shrank",
    later({ commits: 3, wal_bytes: 7, statement_ms: 1 }),
    raw(),
    [null, null, null],
  ],
  ["of a reset that was never before", later(), raw({ database_reset: null }), [null, 10_000, 3]],
  [
    "of statistics that were never reset",
    later({ wal_reset: null }),
    raw({ wal_reset: null }),
    [10, 10_000, 3],
  ],
  ["without the extension", later({ statement_calls: null, statement_ms: null }), raw(), [10, 10_000, null]],
])("rates %s", (_, now, before, expected) => {
  expect(rates(now, before)).toEqual(expected);
});

/** Role, replicas, seconds, bytes. */
const replicated = (change: Facts) => {
  const { role, replicas_available, lag_seconds, lag_bytes } = native(raw(change)).reliability;
  return [role, replicas_available, lag_seconds, lag_bytes];
};
const replica = {
  in_recovery: true,
  replicas_streaming: 0,
  replicas_lag_bytes: null,
  replicas_lag_seconds: null,
};

test.each<[string, Facts, unknown[]]>([
  ["a primary whose replicas are behind", {}, ["primary", 2, 0.25, 4_096]],
  [
    "a primary whose replicas have all",
    { replicas_lag_bytes: 0, replicas_lag_seconds: null },
    ["primary", 2, 0, 0],
  ],
  ["a primary without a reported time", { replicas_lag_seconds: null }, ["primary", 2, null, 4_096]],
  [
    "a primary without replicas",
    { replicas_streaming: 0, replicas_lag_bytes: null, replicas_lag_seconds: null },
    ["primary", 0, null, null],
  ],
  ["a replica that has all", { ...replica, replay_lag_bytes: 0, replayed: 1 }, ["replica", null, 0, 0]],
  [
    "a replica that is behind",
    { ...replica, replay_lag_bytes: 512, replayed: 1_767_225_598.25 },
    ["replica", null, 2, 512],
  ],
  [
    "a replica that has replayed nothing",
    { ...replica, replay_lag_bytes: 512 },
    ["replica", null, null, 512],
  ],
  ["a replica that is not connected", replica, ["replica", null, null, null]],
  ["an answer without a role", { in_recovery: null }, [null, null, null, null]],
])("replication of %s", (_, change, expected) => {
  expect(replicated(change)).toEqual(expected);
});

test("what is absent is null, never zero", () => {
  const found = postgresqlNative({ process: "p", clockMs: 1_000, facts: {} }, undefined, { replicas: 0 });
  const known = { up: true, replicas_expected: 0 };
  const nothing = allNull(postgresqlMetrics);
  expect(found).toEqual({ ...nothing, reliability: { ...nothing.reliability, ...known } });
});

test("no ratio is of nothing", () => {
  expect(native(raw({ buffer_hits: 0, buffer_reads: 0 })).cache.hit_ratio).toBeNull();
  expect(native(raw({ sessions: 60 })).connections.utilization_ratio).toBe(1);
});

/** What fresh servers answered, with the extension; each a moment after its start. */
const answered: [string, string, number][] = [
  [
    "17.11",
    `{"now" : 1795293535.775691, "started" : 1795293535.712254, "in_recovery" : false, "max_connections" : 100, "sessions" : 0, "sessions_active" : 0, "sessions_idle" : 0, "sessions_waiting" : 0, "commits" : 1, "rollbacks" : 0, "rows_returned" : 867, "rows_fetched" : 786, "rows_written" : 0, "temp_files" : 0, "temp_bytes" : 0, "buffer_hits" : 1571, "buffer_reads" : 82, "deadlocks" : 0, "database_reset" : null, "database_size" : 7602703, "wal_bytes" : 5118017, "wal_reset" : 1795293534.262413, "checkpoints" : 0, "checkpoint_buffers" : 0, "checkpoints_reset" : 1795293534.262413, "replicas_streaming" : 0, "replicas_lag_bytes" : null, "replicas_lag_seconds" : null, "replay_lag_bytes" : null, "replayed" : null, "statement_calls" : 2, "statement_ms" : 48.36123, "statements_dropped" : 0, "statements_reset" : 1795293535.708415}`,
    5_118_017,
  ],
  [
    "18.6",
    `{"now" : 1795293538.841064, "started" : 1795293538.784851, "in_recovery" : false, "max_connections" : 100, "sessions" : 0, "sessions_active" : 0, "sessions_idle" : 0, "sessions_waiting" : 0, "commits" : 1, "rollbacks" : 0, "rows_returned" : 875, "rows_fetched" : 792, "rows_written" : 0, "temp_files" : 0, "temp_bytes" : 0, "buffer_hits" : 1574, "buffer_reads" : 97, "deadlocks" : 0, "database_reset" : null, "database_size" : 7952063, "wal_bytes" : 7695548, "wal_reset" : 1795293537.244205, "checkpoints" : 0, "checkpoint_buffers" : 0, "checkpoints_reset" : 1795293537.244205, "replicas_streaming" : 0, "replicas_lag_bytes" : null, "replicas_lag_seconds" : null, "replay_lag_bytes" : null, "replayed" : null, "statement_calls" : 2, "statement_ms" : 27.580556, "statements_dropped" : 0, "statements_reset" : 1795293538.782187}`,
    7_695_548,
  ],
];

test.each(answered)("what PostgreSQL %s answered is a whole snapshot", (_, text, wal) => {
  const facts = JSON.parse(text) as Facts;
  const now = { process: "p", clockMs: Number(facts.now) * 1_000, facts };
  const found = postgresqlMetrics.parse(postgresqlNative(now, undefined, { replicas: 0 }));
  const { reliability, ...groups } = found;
  const nulls = Object.values(groups).flatMap((group) =>
    Object.entries(group).flatMap(([name, value]) => (value === null ? [name] : [])),
  );
  expect(nulls).toEqual([
    "transactions_per_second",
    "waiting_total",
    "average_query_latency_ms",
    "slow_queries_total",
  ]);
  expect(reliability).toMatchObject({
    up: true,
    role: "primary",
    wal_bytes_total: wal,
    checkpoints_total: 0,
  });
  expect(reliability.uptime_seconds).toBeGreaterThan(0.05);
});

describe("the statistics query", () => {
  test.each([
    [15, "pg_stat_bgwriter", "checkpoints_timed + checkpoints_req"],
    [16, "pg_stat_bgwriter", "checkpoints_timed + checkpoints_req"],
    [17, "pg_stat_checkpointer", "num_timed + num_requested"],
    [18, "pg_stat_checkpointer", "num_done"],
  ])("of version %i reads %s", (major, view, column) => {
    expect(statisticsQuery(major)).toContain(view);
    expect(statisticsQuery(major)).toContain(column);
  });

  test("reads no statement's text", () => {
    expect(statisticsQuery(18)).not.toMatch(/\bquery\b/);
  });
});
