import type { OperationExamples } from "./example.ts";
import { EXAMPLE_ID } from "./id.ts";

const ok = (data: unknown): OperationExamples => ({ responses: { 200: { status: "success", data } } });

export const metricsExamples = {
  readProjectMetrics: ok({
    schema_version: 1,
    project_id: EXAMPLE_ID,
    instance: `${EXAMPLE_ID}-0`,
    type: "postgresql",
    observed_at: "2026-11-21T08:05:00.000Z",
    collected_at: "2026-11-21T08:05:01.000Z",
    availability: "available",
    resource: {
      cpu_usage_cores: 0.12,
      memory_usage_bytes: 188_743_680,
      storage_used_bytes: 61_865_984,
      storage_capacity_bytes: 10_737_418_240,
    },
    native: {
      connections: { current: 7, max: 128, utilization_ratio: 0.0547, active: 2, idle: 5 },
      activity: {
        commits_total: 48_210,
        rollbacks_total: 12,
        transactions_per_second: 31.4,
        rows_returned_total: 901_233,
        rows_fetched_total: 410_087,
        rows_written_total: 52_118,
        temp_files_total: 0,
        temp_bytes_total: 0,
      },
      cache: { buffer_hits_total: 1_204_551, buffer_reads_total: 8_122, hit_ratio: 0.9933 },
      storage: { database_size_bytes: 61_865_984 },
      locks: { waiting_total: null, waiting: 0, deadlocks_total: 0 },
      latency: { average_query_latency_ms: 0.84, slow_queries_total: null },
      reliability: {
        up: true,
        uptime_seconds: 86_400,
        wal_bytes_total: 734_003_200,
        wal_bytes_per_second: 10_240,
        checkpoints_total: 288,
        checkpoint_buffers_total: 9_120,
        role: "primary",
        replicas_available: 2,
        replicas_expected: 2,
        lag_seconds: 0,
        lag_bytes: 0,
      },
    },
  }),
  readMetricsCapabilities: ok({
    access: "snapshot",
    groups: ["resources", "connections", "activity", "cache", "storage", "locks", "latency", "reliability"],
    refresh_seconds: 60,
    history: null,
  }),
} as const satisfies Record<string, OperationExamples>;
