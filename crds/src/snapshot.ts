import { z } from "zod";

/**
 * Snapshots of what a database or a key-value service measures, as `/v1` shows them and the ledger keeps them. The
 * sampler fills them. What is absent, unsupported or not computable is null, never a synthetic zero; no statement's text.
 */

/** Seconds between two samples. */
export const SNAPSHOT_REFRESH_SECONDS = 60;
/** Version of the shapes below. */
export const SNAPSHOT_SCHEMA_VERSION = 1;

/** Since the last restart or reset; also bytes, and what is counted at one time. */
const count = z.int().min(0).nullable();
/** A rate between two samples of one process, a size of its own unit, or seconds with a fraction. */
const number = z.number().min(0).nullable();
const ratio = z.number().min(0).max(1).nullable();
const word = z.string().max(64).nullable();
const yes = z.boolean().nullable();

export const snapshotResource = z.strictObject({
  cpu_usage_cores: number,
  memory_usage_bytes: count,
  storage_used_bytes: count,
  storage_capacity_bytes: count,
});
export type SnapshotResource = z.output<typeof snapshotResource>;

export const postgresqlMetrics = z.strictObject({
  connections: z.strictObject({
    current: count,
    max: count,
    utilization_ratio: ratio,
    active: count,
    idle: count,
  }),
  activity: z.strictObject({
    commits_total: count,
    rollbacks_total: count,
    transactions_per_second: number,
    rows_returned_total: count,
    rows_fetched_total: count,
    rows_written_total: count,
    temp_files_total: count,
    temp_bytes_total: count,
  }),
  cache: z.strictObject({ buffer_hits_total: count, buffer_reads_total: count, hit_ratio: ratio }),
  storage: z.strictObject({ database_size_bytes: count }),
  locks: z.strictObject({
    waiting_total: count.describe("PostgreSQL does not count them: always null."),
    waiting: count.describe("Sessions that wait for a lock now."),
    deadlocks_total: count,
  }),
  latency: z.strictObject({ average_query_latency_ms: number, slow_queries_total: count }),
  reliability: z.strictObject({
    up: yes,
    uptime_seconds: number,
    wal_bytes_total: count,
    wal_bytes_per_second: number,
    checkpoints_total: count,
    checkpoint_buffers_total: count,
    role: word.describe("primary or replica."),
    replicas_available: count,
    replicas_expected: count,
    lag_seconds: number,
    lag_bytes: count,
  }),
});
export type PostgresqlMetrics = z.output<typeof postgresqlMetrics>;

export const mariadbMetrics = z.strictObject({
  connections: z.strictObject({
    current: count,
    max: count,
    utilization_ratio: ratio,
    threads_connected: count.describe("Open sessions."),
    threads_running: count.describe("Threads that do work."),
    aborted_connects_total: count,
  }),
  activity: z.strictObject({
    queries_total: count,
    questions_total: count,
    queries_per_second: number,
    bytes_received_per_second: number,
    bytes_sent_per_second: number,
    slow_queries_total: count,
  }),
  cache: z.strictObject({
    buffer_pool_size_bytes: count,
    buffer_pool_data_bytes: count,
    buffer_pool_free_bytes: count,
    buffer_pool_dirty_pages: count,
    buffer_pool_reads_total: count,
    buffer_pool_read_requests_total: count,
    hit_ratio: ratio,
  }),
  redo_io: z.strictObject({
    log_writes_total: count,
    log_waits_total: count,
    fsyncs_total: count,
    io_per_second: number,
  }),
  storage: z.strictObject({ database_size_bytes: count }),
  locks: z.strictObject({
    row_lock_waits_total: count,
    row_lock_time_ms_total: count,
    current_waits: count,
    deadlocks_total: count,
  }),
  latency: z.strictObject({ average_query_latency_ms: number }),
  health: z.strictObject({ up: yes, uptime_seconds: number }),
  replication: z.strictObject({
    status: word,
    replicas_available: count,
    replicas_expected: count,
    lag_seconds: number,
  }),
});
export type MariadbMetrics = z.output<typeof mariadbMetrics>;

export const valkeyMetrics = z.strictObject({
  memory: z.strictObject({
    used_bytes: count,
    peak_bytes: count,
    limit_bytes: count,
    fragmentation_ratio: number.describe(
      "As the server reports it: resident by used memory; it may exceed 1.",
    ),
  }),
  clients: z.strictObject({ connected: count, blocked: count }),
  activity: z.strictObject({
    operations_per_second: number,
    input_bytes_per_second: number,
    output_bytes_per_second: number,
  }),
  keys: z.strictObject({ expired_total: count, evicted_total: count }),
  uptime_seconds: number,
  cache: z
    .strictObject({ hits_total: count, misses_total: count, hit_ratio: ratio })
    .describe("Of the profile cache alone.")
    .optional(),
  key_value: z
    .strictObject({ keys_total: count, keys_with_expiration: count })
    .describe("Of the profile key_value alone.")
    .optional(),
  reliability: z.strictObject({
    replication: z.strictObject({
      status: word,
      replicas_available: count,
      replicas_expected: count,
      lag_seconds: number,
    }),
    persistence: z.strictObject({
      enabled: yes,
      status: word,
      last_success_at: z.iso.datetime().nullable(),
    }),
  }),
});
export type ValkeyMetrics = z.output<typeof valkeyMetrics>;

const sample = {
  schema_version: z.literal(SNAPSHOT_SCHEMA_VERSION),
  instance: z.string().min(1).max(253).describe("Pod that was sampled."),
  observed_at: z.iso.datetime().describe("When the values were observed on the instance."),
  collected_at: z.iso.datetime().describe("When the snapshot became available."),
  availability: z.enum(["available", "partial"]).describe("partial: some groups or fields are missing."),
  resource: snapshotResource,
};

/** One valid sample of one instance. */
export const metricsSnapshot = z.discriminatedUnion("type", [
  z.strictObject({ ...sample, type: z.literal("postgresql"), native: postgresqlMetrics }),
  z.strictObject({ ...sample, type: z.literal("mariadb"), native: mariadbMetrics }),
  z.strictObject({ ...sample, type: z.literal("valkey"), native: valkeyMetrics }),
]);
export type MetricsSnapshot = z.output<typeof metricsSnapshot>;

/** The shape with null in every field: what is shown where nothing is known. */
export function allNull<Schema extends z.ZodObject>(schema: Schema): z.output<Schema> {
  const entries = Object.entries(schema.shape).map(([key, field]) => [
    key,
    field instanceof z.ZodObject ? allNull(field) : null,
  ]);
  return Object.fromEntries(entries) as z.output<Schema>;
}
