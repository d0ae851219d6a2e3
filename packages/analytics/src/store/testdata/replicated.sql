CREATE DATABASE IF NOT EXISTS `slipway` ON CLUSTER `main`;

CREATE TABLE IF NOT EXISTS `slipway`.`schema_migrations` ON CLUSTER `main` (
version UInt32, name String, applied_at DateTime('UTC') DEFAULT now('UTC')
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/slipway/schema_migrations', '{replica}') ORDER BY version;

CREATE TABLE IF NOT EXISTS `slipway`.`events` ON CLUSTER `main` (
organization LowCardinality(String),
project LowCardinality(String),
at DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
status UInt16,
method LowCardinality(String),
route LowCardinality(String),
path String CODEC(ZSTD(1)),
user_agent LowCardinality(String),
source_ip String CODEC(ZSTD(1)),
bytes_received UInt64 CODEC(T64, ZSTD(1)),
bytes_sent UInt64 CODEC(T64, ZSTD(1)),
latency_us UInt64 CODEC(T64, ZSTD(1))
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/slipway/events', '{replica}')
PARTITION BY toDate(at, 'UTC')
ORDER BY (organization, project, at)
TTL toDateTime(at, 'UTC') + INTERVAL 8 DAY
SETTINGS replicated_deduplication_window = 50000, replicated_deduplication_window_seconds = 604800, ttl_only_drop_parts = 1;

CREATE TABLE IF NOT EXISTS `slipway`.`minutes` ON CLUSTER `main` (
organization LowCardinality(String),
project LowCardinality(String),
minute DateTime('UTC') CODEC(Delta, ZSTD(1)),
status UInt16,

requests SimpleAggregateFunction(sum, UInt64),
received SimpleAggregateFunction(sum, UInt64),
sent SimpleAggregateFunction(sum, UInt64),
latency_sum SimpleAggregateFunction(sum, UInt64),
latency AggregateFunction(quantileBFloat16(0.95), UInt64)
) ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{shard}/slipway/minutes', '{replica}')
PARTITION BY toDate(minute, 'UTC')
ORDER BY (organization, project, minute, status)
TTL minute + INTERVAL 8 DAY
SETTINGS replicated_deduplication_window = 50000, replicated_deduplication_window_seconds = 604800, ttl_only_drop_parts = 1, index_granularity = 256;

CREATE MATERIALIZED VIEW IF NOT EXISTS `slipway`.`minutes_view` ON CLUSTER `main` TO `slipway`.`minutes` AS
SELECT organization, project, toStartOfMinute(at, 'UTC') AS minute, status,
count() AS requests, sum(bytes_received) AS received, sum(bytes_sent) AS sent,
sum(latency_us) AS latency_sum, quantileBFloat16State(0.95)(latency_us) AS latency
FROM `slipway`.`events` GROUP BY organization, project, minute, status;

CREATE TABLE IF NOT EXISTS `slipway`.`hours` ON CLUSTER `main` (
organization LowCardinality(String),
project LowCardinality(String),
hour DateTime('UTC') CODEC(Delta, ZSTD(1)),
status UInt16,

requests SimpleAggregateFunction(sum, UInt64),
received SimpleAggregateFunction(sum, UInt64),
sent SimpleAggregateFunction(sum, UInt64),
latency_sum SimpleAggregateFunction(sum, UInt64),
latency AggregateFunction(quantileBFloat16(0.95), UInt64)
) ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{shard}/slipway/hours', '{replica}')
PARTITION BY toMonday(toDate(hour, 'UTC'))
ORDER BY (organization, project, hour, status)
TTL hour + INTERVAL 8 DAY
SETTINGS replicated_deduplication_window = 50000, replicated_deduplication_window_seconds = 604800, ttl_only_drop_parts = 1, index_granularity = 256;

CREATE MATERIALIZED VIEW IF NOT EXISTS `slipway`.`hours_view` ON CLUSTER `main` TO `slipway`.`hours` AS
SELECT organization, project, toStartOfHour(at, 'UTC') AS hour, status,
count() AS requests, sum(bytes_received) AS received, sum(bytes_sent) AS sent,
sum(latency_us) AS latency_sum, quantileBFloat16State(0.95)(latency_us) AS latency
FROM `slipway`.`events` GROUP BY organization, project, hour, status;

CREATE TABLE IF NOT EXISTS `slipway`.`hours_by_route` ON CLUSTER `main` (
organization LowCardinality(String),
project LowCardinality(String),
hour DateTime('UTC') CODEC(Delta, ZSTD(1)),
status UInt16,
route LowCardinality(String),
requests SimpleAggregateFunction(sum, UInt64),
received SimpleAggregateFunction(sum, UInt64),
sent SimpleAggregateFunction(sum, UInt64),
latency_sum SimpleAggregateFunction(sum, UInt64),
latency AggregateFunction(quantileBFloat16(0.95), UInt64)
) ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{shard}/slipway/hours_by_route', '{replica}')
PARTITION BY toMonday(toDate(hour, 'UTC'))
ORDER BY (organization, project, hour, status, route)
TTL hour + INTERVAL 8 DAY
SETTINGS replicated_deduplication_window = 50000, replicated_deduplication_window_seconds = 604800, ttl_only_drop_parts = 1, index_granularity = 256;

CREATE MATERIALIZED VIEW IF NOT EXISTS `slipway`.`hours_by_route_view` ON CLUSTER `main` TO `slipway`.`hours_by_route` AS
SELECT organization, project, toStartOfHour(at, 'UTC') AS hour, status,
route, count() AS requests, sum(bytes_received) AS received, sum(bytes_sent) AS sent,
sum(latency_us) AS latency_sum, quantileBFloat16State(0.95)(latency_us) AS latency
FROM `slipway`.`events` GROUP BY organization, project, hour, status, route;

CREATE TABLE IF NOT EXISTS `slipway`.`hours_by_user_agent` ON CLUSTER `main` (
organization LowCardinality(String),
project LowCardinality(String),
hour DateTime('UTC') CODEC(Delta, ZSTD(1)),
status UInt16,
user_agent LowCardinality(String),
requests SimpleAggregateFunction(sum, UInt64),
received SimpleAggregateFunction(sum, UInt64),
sent SimpleAggregateFunction(sum, UInt64),
latency_sum SimpleAggregateFunction(sum, UInt64),
latency AggregateFunction(quantileBFloat16(0.95), UInt64)
) ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{shard}/slipway/hours_by_user_agent', '{replica}')
PARTITION BY toMonday(toDate(hour, 'UTC'))
ORDER BY (organization, project, hour, status, user_agent)
TTL hour + INTERVAL 8 DAY
SETTINGS replicated_deduplication_window = 50000, replicated_deduplication_window_seconds = 604800, ttl_only_drop_parts = 1, index_granularity = 256;

CREATE MATERIALIZED VIEW IF NOT EXISTS `slipway`.`hours_by_user_agent_view` ON CLUSTER `main` TO `slipway`.`hours_by_user_agent` AS
SELECT organization, project, toStartOfHour(at, 'UTC') AS hour, status,
user_agent, count() AS requests, sum(bytes_received) AS received, sum(bytes_sent) AS sent,
sum(latency_us) AS latency_sum, quantileBFloat16State(0.95)(latency_us) AS latency
FROM `slipway`.`events` GROUP BY organization, project, hour, status, user_agent;

CREATE TABLE IF NOT EXISTS `slipway`.`logs` ON CLUSTER `main` (
organization LowCardinality(String),
project LowCardinality(String),
at DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)),
instance LowCardinality(String),
container LowCardinality(String),
stream LowCardinality(String),
level LowCardinality(String),
text String CODEC(ZSTD(1)),
continues Bool,
file FixedString(16) CODEC(ZSTD(1)),
offset UInt64 CODEC(Delta, ZSTD(1)),
omitted_lines UInt64 CODEC(T64, ZSTD(1)),
omitted_bytes UInt64 CODEC(T64, ZSTD(1)),
lost_files UInt32 CODEC(T64, ZSTD(1)),
days UInt16,
INDEX omitted (omitted_lines, omitted_bytes, lost_files) TYPE minmax GRANULARITY 1
) ENGINE = ReplicatedMergeTree('/clickhouse/tables/{shard}/slipway/logs', '{replica}')
PARTITION BY (toDate(at, 'UTC'), days)
PRIMARY KEY (organization, project, at)
ORDER BY (organization, project, at, instance, container, file, offset)
TTL toDateTime(at, 'UTC') + toIntervalDay(days)
SETTINGS replicated_deduplication_window = 50000, replicated_deduplication_window_seconds = 604800, ttl_only_drop_parts = 1, min_free_disk_bytes_to_perform_insert = 4294967296;

CREATE TABLE IF NOT EXISTS `slipway`.`metrics` ON CLUSTER `main` (
organization LowCardinality(String),
project LowCardinality(String),
instance String CODEC(ZSTD(1)),
pod String CODEC(ZSTD(1)),
at DateTime('UTC') CODEC(Delta, ZSTD(1)),
booted_at DateTime('UTC') CODEC(ZSTD(1)),
started_at Nullable(DateTime('UTC')) CODEC(ZSTD(1)),
cpu_us Nullable(UInt64) CODEC(Delta, ZSTD(1)),
memory_bytes Nullable(UInt64) CODEC(ZSTD(1)),
network_at Nullable(DateTime('UTC')) CODEC(Delta, ZSTD(1)),
received_bytes Nullable(UInt64) CODEC(Delta, ZSTD(1)),
transmitted_bytes Nullable(UInt64) CODEC(Delta, ZSTD(1)),
restarts Nullable(UInt32) CODEC(ZSTD(1)),
volume_used_bytes Nullable(UInt64) CODEC(ZSTD(1)),
volume_capacity_bytes Nullable(UInt64) CODEC(ZSTD(1))
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/slipway/metrics', '{replica}')
PARTITION BY toDate(at, 'UTC')
ORDER BY (organization, project, instance, pod, at)
TTL at + INTERVAL 8 DAY
SETTINGS replicated_deduplication_window = 50000, replicated_deduplication_window_seconds = 604800, ttl_only_drop_parts = 1, min_free_disk_bytes_to_perform_insert = 2147483648;

ALTER TABLE `slipway`.`logs` ON CLUSTER `main`
ADD COLUMN IF NOT EXISTS drainable Bool DEFAULT false;

ALTER TABLE `slipway`.`logs` ON CLUSTER `main`
ADD COLUMN IF NOT EXISTS stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(Delta, ZSTD(1));

ALTER TABLE `slipway`.`logs` ON CLUSTER `main`
ADD INDEX IF NOT EXISTS stored (stored_at) TYPE minmax GRANULARITY 1;

CREATE TABLE IF NOT EXISTS `slipway`.`log_drain_positions` ON CLUSTER `main` (
drain String,
version UInt64,
position String,
refused UInt64,
skipped UInt64,
saved_at DateTime('UTC') DEFAULT now('UTC')
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/slipway/log_drain_positions', '{replica}', version)
ORDER BY drain
TTL saved_at + INTERVAL 400 DAY;
