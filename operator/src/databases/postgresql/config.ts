/** Patroni's configuration: the file that every member starts with, and the settings that they share. Pure. */

import { readFileSync } from "node:fs";
import { labels } from "@slipway/crds";
import { stringify } from "yaml";
import { roles } from "../common/metadata.ts";
import type { Database } from "../database.ts";
import { accounts, configMaps, PATRONI_PORT, POSTGRESQL_PORT, paths } from "./names.ts";

/** What the settings of a cluster derive from. */
export type Sizing = Pick<Database, "members" | "memoryBytes" | "cpus" | "storage" | "image">;

/** Settings of a whole cluster, as Patroni keeps them in the annotation `config` of its ConfigMap. */
export type SharedConfig = ReturnType<typeof sharedConfig>;

/**
 * A leader that is silent is replaced after `ttl` seconds; `loop_wait + 2 × retry_timeout` must not exceed it. In
 * failsafe mode it stays the leader without the apiserver for as long as it reaches every member. A crashed server is noticed, and a
 * switchover begun, with the next loop: each of them is a write to the apiserver.
 */
export function sharedConfig(database: Sizing) {
  return {
    ttl: 20,
    loop_wait: 5,
    retry_timeout: 5,
    // In which a crashed primary may restart before a failover.
    primary_start_timeout: 30,
    primary_stop_timeout: 20,
    failsafe_mode: true,
    synchronous_mode: synchronousMode(database),
    synchronous_node_count: 1,
    postgresql: {
      use_pg_rewind: true,
      use_slots: true,
      parameters: parameters(database),
      pg_hba: hostBasedAccess(),
    },
  };
}

/** An acknowledged write is on two members wherever there are two. A member that still exists counts. */
function synchronousMode({ members }: Sizing): "off" | "on" | "quorum" {
  return members >= 3 ? "quorum" : members === 2 ? "on" : "off";
}

/**
 * Who may connect how. The superuser connects by the socket alone, which only this container has; everybody else over TLS
 * with a password. Addresses are the business of the NetworkPolicy.
 */
function hostBasedAccess(): string[] {
  const { superuser, replication, rewind, monitor } = accounts;
  return [
    `local all ${superuser} trust`,
    "local all all scram-sha-256",
    `hostssl replication ${replication} all scram-sha-256`,
    `hostssl postgres ${rewind} all scram-sha-256`,
    `hostssl postgres ${monitor} all scram-sha-256`,
    `host all ${superuser},${replication},${rewind},${monitor} all reject`,
    "host replication all all reject",
    "hostssl all all all scram-sha-256",
    "host all all all reject",
  ];
}

/** `patroni.yml`. Names, addresses and passwords come as environment variables. */
export function patroniFile(database: Database): string {
  return patroniYaml(patroniSettings(database));
}

/** Its content. */
export function patroniSettings(database: Sizing & Pick<Database, "id" | "namespace" | "type">) {
  return {
    scope: database.id,
    log: { level: "INFO", deduplicate_heartbeat_logs: true },
    restapi: { listen: `0.0.0.0:${PATRONI_PORT}` },
    kubernetes: {
      namespace: database.namespace,
      use_endpoints: false,
      // Patroni finds its members and its own ConfigMaps by these, and labels what it creates.
      scope_label: labels.project,
      labels: { [labels.type]: database.type },
      role_label: labels.role,
      leader_label_value: roles.primary,
      follower_label_value: roles.replica,
      standby_leader_label_value: roles.replica,
      retriable_http_codes: [429, 500, 502, 503, 504],
    },
    bootstrap: {
      dcs: sharedConfig(database),
      initdb: [{ encoding: "UTF8" }, { locale: "C.UTF-8" }, "data-checksums"],
    },
    postgresql: {
      listen: `*:${POSTGRESQL_PORT}`,
      data_dir: paths.data,
      pgpass: "/tmp/pgpass",
      use_unix_socket: true,
      use_unix_socket_repl: false,
      // A member that cannot follow any more copies the primary again automatically.
      remove_data_directory_on_rewind_failure: true,
      remove_data_directory_on_diverged_timelines: true,
      create_replica_methods: ["basebackup"],
      basebackup: [{ checkpoint: "fast" }, "verbose"],
      pre_promote: `python3 ${paths.patroni}/${PRE_PROMOTE} ${configMaps(database).sync}`,
    },
  };
}

/** Patroni reads YAML 1.1, in which an "on" without quotes is no word. */
export function patroniYaml(settings: object): string {
  return stringify(settings, { version: "1.1", lineWidth: 0, aliasDuplicateObjects: false });
}

const PRE_PROMOTE = "pre-promote.py";

/** What every Patroni loads at its start, and what it runs before it promotes its member; the files have the reasons. */
export const patroniScripts: Readonly<Record<string, string>> = Object.fromEntries(
  ["sitecustomize.py", PRE_PROMOTE].map((name) => [
    name,
    readFileSync(new URL(`scripts/${name}`, import.meta.url), "utf8"),
  ]),
);

// PostgreSQL's settings, derived from what one instance gets. Pure.

const MIB = 1024 * 1024;

/** Settings as `postgresql.conf` has them. */
export type Parameters = Readonly<Record<string, string | number>>;

/** Every setting that is not PostgreSQL's own default. Sizes follow memory and storage of one instance. */
export function parameters(database: Sizing): Parameters {
  return { ...restartParameters(database), ...reloadParameters(database) };
}

/** Those that PostgreSQL reads only when it starts: other values are other pods. */
export function restartParameters({ memoryBytes, cpus, image }: Sizing): Parameters {
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

function reloadParameters({ memoryBytes, cpus, storage, image }: Sizing): Parameters {
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
    // A primary that has restarted acknowledges nothing until a replica follows it again: 5 s by default.
    wal_retrieve_retry_interval: "500ms",
    // A pod that is lost with its node closes no connection. For as long as PostgreSQL takes it for there, a minute by default, the primary
    // waits for it with every commit, and it cannot follow from another pod: its slot is in use.
    wal_sender_timeout: "10s",
    wal_receiver_timeout: "10s",
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
