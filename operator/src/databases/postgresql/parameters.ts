/** PostgreSQL's settings, derived from what one instance gets. Pure. */

import type { Database } from "../database.ts";
import { paths } from "./names.ts";

const MIB = 1024 * 1024;

/** Settings as `postgresql.conf` has them. */
export type Parameters = Readonly<Record<string, string | number>>;

/** Every setting that is not PostgreSQL's own default. Sizes follow memory and storage of one instance. */
export function parameters(database: Database): Parameters {
  return { ...restartParameters(database), ...reloadParameters(database) };
}

/** Those that PostgreSQL reads only when it starts: other values are other pods. */
export function restartParameters({ memoryBytes, cpus, image }: Database): Parameters {
  const memory = memoryBytes / MIB;
  return {
    shared_buffers: mebibytes(memory / 4, 32),
    max_connections: connections(memory),
    superuser_reserved_connections: 5,
    max_worker_processes: Math.max(8, Math.ceil(cpus)),
    max_wal_senders: 10,
    max_replication_slots: 10,
    max_prepared_transactions: 0,
    max_locks_per_transaction: 64,
    wal_level: "replica",
    // Pages have checksums, which pg_rewind is content with; the hint bits of both are logged all the same.
    wal_log_hints: "on",
    huge_pages: "off",
    ssl: "on",
    unix_socket_directories: paths.socket,
    ...(hasStatements(image)
      ? { shared_preload_libraries: "pg_stat_statements", "pg_stat_statements.max": 1000 }
      : {}),
  };
}

function reloadParameters({ memoryBytes, cpus, storage, image }: Database): Parameters {
  const memory = memoryBytes / MIB;
  const disk = (storage?.capacityGb ?? 1) * 1024;
  const workers = Math.max(1, Math.floor(cpus));
  return {
    effective_cache_size: mebibytes(memory * 0.6, 64),
    work_mem: `${Math.max(1024, Math.floor((memory * 1024) / 4 / connections(memory)))}kB`,
    maintenance_work_mem: mebibytes(Math.min(memory / 16, 1024), 16),
    max_parallel_workers: workers,
    max_parallel_workers_per_gather: Math.min(2, workers),
    // WAL must never fill the volume: a replica that is down for too long copies the primary again.
    max_wal_size: mebibytes(Math.min(disk / 8, 4096), 64),
    min_wal_size: mebibytes(Math.min(disk / 32, 512), 32),
    max_slot_wal_keep_size: mebibytes(Math.min(disk / 4, 16_384), 128),
    checkpoint_completion_target: "0.9",
    random_page_cost: "1.1",
    password_encryption: "scram-sha-256",
    ssl_cert_file: `${paths.tls}/tls.crt`,
    ssl_key_file: `${paths.tls}/tls.key`,
    ssl_ca_file: `${paths.tls}/ca.crt`,
    ssl_min_protocol_version: "TLSv1.2",
    // The connection of a client that vanished is freed within two minutes.
    tcp_keepalives_idle: 60,
    tcp_keepalives_interval: 10,
    tcp_keepalives_count: 6,
    track_io_timing: "on",
    // Logs go to the platform: no text of a statement is in them.
    log_destination: "stderr",
    logging_collector: "off",
    log_statement: "none",
    log_min_duration_statement: -1,
    log_min_error_statement: "panic",
    log_checkpoints: "on",
    log_lock_waits: "off",
    log_autovacuum_min_duration: -1,
    log_line_prefix: "%m [%p] ",
    timezone: "Etc/UTC",
    ...(hasStatements(image) ? { "pg_stat_statements.track_utility": "off" } : {}),
  };
}

/** Whether the image has the extension that measures latencies; PostgreSQL does not start without an extension that it is to load. */
export function hasStatements({ features }: Database["image"]): boolean {
  return features.pgStatStatements !== false;
}

/** A busy connection needs 5 to 10 MiB. */
function connections(memory: number): number {
  return Math.min(500, Math.max(30, Math.floor(memory / 8)));
}

function mebibytes(amount: number, least: number): string {
  return `${Math.max(least, Math.floor(amount))}MB`;
}
