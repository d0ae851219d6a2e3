/**
 * The store's tables, as numbered migrations. Every statement may be run again, or by two processes concurrently, without harm: ClickHouse has
 * no transaction that could hold a migration together, and no lock that could keep a second one away.
 */

/** Days for which events and what is counted of them are kept; a partition (a day, of hours a week) goes once all of it is that old. */
export const RETENTION_DAYS = 8;

/**
 * Bytes of the store's disk that lines of logs leave free: while there is less they wait on the nodes, and requests are stored. A table's
 * setting, so that no writer can leave it out, and an operator can change it.
 */
export const LOGS_KEEP_FREE_BYTES = 4 * 1024 ** 3;

/** The same of what instances used: less than logs leave, which grow faster, and which requests have before both. */
export const METRICS_KEEP_FREE_BYTES = 2 * 1024 ** 3;
/** Days for which the position of a drain is kept that sends nothing: longer than any line. */
const POSITION_DAYS = 400;

/** How many inserted blocks of a table are remembered, so that a batch that comes again is left out. */
const REMEMBERED_BLOCKS = 50_000;
/** And for how long, where the tables are replicated. */
const REMEMBERED_SECONDS = 7 * 86_400;

/** Aggregate functions' states of a latency's 95th percentile: relative error below 1/128, exact rank. */
export const QUANTILE = "quantileBFloat16";
const LEVEL = "0.95";

/** Rows of a table of counts that are read together: a project's day is a few of these, and their states are slow to read. */
const GRANULARITY = 256;

export interface Place {
  database: string;
  /** Name of a cluster whose members replicate the tables; undefined: one server. */
  cluster: string | undefined;
}

export interface Migration {
  version: number;
  name: string;
  statements: (place: Place) => string[];
}

/** A table of counts, one row for each unit of time, status and value of a column. */
export interface Rollup {
  table: string;
  /** Also the name of the column with its start. */
  unit: "minute" | "hour";
  /** Milliseconds of the unit. */
  ms: number;
  /** By the status alone without it. */
  column?: "route" | "user_agent";
}

const [minute, hour] = [
  { unit: "minute", ms: 60_000 },
  { unit: "hour", ms: 3_600_000 },
] as const;

/** Those with the longest units first. Hours keep a week's answer short, minutes its edges. */
export const rollups: readonly Rollup[] = [
  { table: "hours", ...hour },
  { table: "hours_by_route", ...hour, column: "route" },
  { table: "hours_by_user_agent", ...hour, column: "user_agent" },
  { table: "minutes", ...minute },
];

export const migrations: readonly Migration[] = [
  {
    version: 1,
    name: "events",
    statements: (place) => [
      `CREATE TABLE IF NOT EXISTS ${name(place, "events")}${onCluster(place)} (
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
      ) ENGINE = ${engine(place, "", "events")}
      PARTITION BY toDate(at, 'UTC')
      ORDER BY (organization, project, at)
      TTL toDateTime(at, 'UTC') + INTERVAL ${RETENTION_DAYS} DAY
      SETTINGS ${settings(place)}`,
    ],
  },
  {
    version: 2,
    name: "minutes",
    statements: (place) => statementsOf(place, "minute"),
  },
  {
    version: 3,
    name: "hours",
    statements: (place) => statementsOf(place, "hour"),
  },
  {
    version: 4,
    name: "logs",
    statements: (place) => [
      `CREATE TABLE IF NOT EXISTS ${name(place, "logs")}${onCluster(place)} (
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
      ) ENGINE = ${engine(place, "", "logs")}
      PARTITION BY (toDate(at, 'UTC'), days)
      PRIMARY KEY (organization, project, at)
      ORDER BY (organization, project, at, instance, container, file, offset)
      TTL toDateTime(at, 'UTC') + toIntervalDay(days)
      SETTINGS ${settings(place)}, min_free_disk_bytes_to_perform_insert = ${LOGS_KEEP_FREE_BYTES}`,
    ],
  },
  {
    version: 5,
    name: "metrics",
    statements: (place) => [
      `CREATE TABLE IF NOT EXISTS ${name(place, "metrics")}${onCluster(place)} (
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
      ) ENGINE = ${engine(place, "Replacing", "metrics")}
      PARTITION BY toDate(at, 'UTC')
      ORDER BY (organization, project, instance, pod, at)
      TTL at + INTERVAL ${RETENTION_DAYS} DAY
      SETTINGS ${settings(place)}, min_free_disk_bytes_to_perform_insert = ${METRICS_KEEP_FREE_BYTES}`,
    ],
  },
  {
    version: 6,
    name: "log drains",
    statements: (place) => [
      // Of rows that were stored before, the store would calculate the default when they are read: `drainable` distinguishes them.
      `ALTER TABLE ${name(place, "logs")}${onCluster(place)}
        ADD COLUMN IF NOT EXISTS drainable Bool DEFAULT false`,
      `ALTER TABLE ${name(place, "logs")}${onCluster(place)}
        ADD COLUMN IF NOT EXISTS stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(Delta, ZSTD(1))`,
      `ALTER TABLE ${name(place, "logs")}${onCluster(place)}
        ADD INDEX IF NOT EXISTS stored (stored_at) TYPE minmax GRANULARITY 1`,
      `CREATE TABLE IF NOT EXISTS ${name(place, "log_drain_positions")}${onCluster(place)} (
        drain String,
        version UInt64,
        position String,
        refused UInt64,
        skipped UInt64,
        saved_at DateTime('UTC') DEFAULT now('UTC')
      ) ENGINE = ${engine(place, "Replacing", "log_drain_positions", "version")}
      ORDER BY drain
      TTL saved_at + INTERVAL ${POSITION_DAYS} DAY`,
    ],
  },
];

function statementsOf(place: Place, unit: Rollup["unit"]): string[] {
  return rollups.filter((one) => one.unit === unit).flatMap((one) => rollup(place, one));
}

/** A table of counts, and the view that fills it with every insert of events. */
function rollup(place: Place, { table, unit, column }: Rollup): string[] {
  const key = ["organization", "project", unit, "status", ...(column === undefined ? [] : [column])];
  // A week's hours are few: in a partition for each day they would take longer to open than to read.
  const partition = unit === "minute" ? "toDate(minute, 'UTC')" : "toMonday(toDate(hour, 'UTC'))";
  const start = unit === "minute" ? "toStartOfMinute" : "toStartOfHour";
  return [
    `CREATE TABLE IF NOT EXISTS ${name(place, table)}${onCluster(place)} (
      organization LowCardinality(String),
      project LowCardinality(String),
      ${unit} DateTime('UTC') CODEC(Delta, ZSTD(1)),
      status UInt16,
      ${column === undefined ? "" : `${column} LowCardinality(String),`}
      requests SimpleAggregateFunction(sum, UInt64),
      received SimpleAggregateFunction(sum, UInt64),
      sent SimpleAggregateFunction(sum, UInt64),
      latency_sum SimpleAggregateFunction(sum, UInt64),
      latency AggregateFunction(${QUANTILE}(${LEVEL}), UInt64)
    ) ENGINE = ${engine(place, "Aggregating", table)}
    PARTITION BY ${partition}
    ORDER BY (${key.join(", ")})
    TTL ${unit} + INTERVAL ${RETENTION_DAYS} DAY
    SETTINGS ${settings(place)}, index_granularity = ${GRANULARITY}`,
    `CREATE MATERIALIZED VIEW IF NOT EXISTS ${name(place, `${table}_view`)}${onCluster(place)} TO ${name(place, table)} AS
    SELECT organization, project, ${start}(at, 'UTC') AS ${unit}, status,
      ${column === undefined ? "" : `${column},`} ${countsOfEvents}
    FROM ${name(place, "events")} GROUP BY ${key.join(", ")}`,
  ];
}

/** Of events, the columns that a table of counts has. */
export const countsOfEvents = `count() AS requests, sum(bytes_received) AS received, sum(bytes_sent) AS sent,
  sum(latency_us) AS latency_sum, ${QUANTILE}State(${LEVEL})(latency_us) AS latency`;

/** Sums over the columns of a table of counts. Under other names, since ClickHouse would resolve equal names to each other. */
export const merged = `sum(requests) AS n, sum(received) AS rx, sum(sent) AS tx, sum(latency_sum) AS took,
  ${QUANTILE}Merge(${LEVEL})(latency) AS p95`;

/** The table in which applied migrations are recorded, and its database. */
export function foundation(place: Place): string[] {
  return [
    `CREATE DATABASE IF NOT EXISTS \`${place.database}\`${onCluster(place)}`,
    `CREATE TABLE IF NOT EXISTS ${name(place, "schema_migrations")}${onCluster(place)} (
      version UInt32, name String, applied_at DateTime('UTC') DEFAULT now('UTC')
    ) ENGINE = ${engine(place, "Replacing", "schema_migrations")} ORDER BY version`,
  ];
}

export function name({ database }: Place, table: string): string {
  return `\`${database}\`.\`${table}\``;
}

function onCluster({ cluster }: Place): string {
  return cluster === undefined ? "" : ` ON CLUSTER \`${cluster}\``;
}

/** Replicas find each other by the path; `{shard}` and `{replica}` are macros of their servers. */
function engine(
  { database, cluster }: Place,
  kind: "" | "Aggregating" | "Replacing",
  table: string,
  version?: string,
): string {
  const path = [`'/clickhouse/tables/{shard}/${database}/${table}'`, "'{replica}'"];
  const parameters = [...(cluster === undefined ? [] : path), ...(version === undefined ? [] : [version])];
  const given = parameters.length === 0 ? "" : `(${parameters.join(", ")})`;
  return `${cluster === undefined ? "" : "Replicated"}${kind}MergeTree${given}`;
}

function settings({ cluster }: Place): string {
  const remembered =
    cluster === undefined
      ? [`non_replicated_deduplication_window = ${REMEMBERED_BLOCKS}`]
      : [
          `replicated_deduplication_window = ${REMEMBERED_BLOCKS}`,
          `replicated_deduplication_window_seconds = ${REMEMBERED_SECONDS}`,
        ];
  return [...remembered, "ttl_only_drop_parts = 1"].join(", ");
}
