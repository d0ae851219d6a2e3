/**
 * Configuration of servers and Keepers, in ClickHouse's YAML: all of it, since no configuration of an image is read.
 * Passwords and what derives from the plan come as environment variables. Pure.
 */

import { stringify } from "yaml";
import type { Database } from "../database.ts";
import {
  accounts,
  CLUSTER,
  HTTPS_PORT,
  INTERSERVER_PORT,
  isReplicated,
  KEEPER_PORT,
  keeperAddresses,
  NATIVE_PORT,
  paths,
  RAFT_PORT,
  SHARD,
  serverAddresses,
  sizeOf,
} from "./names.ts";

/** Where in Keeper things are kept. */
export const keeperPaths = {
  databases: "/clickhouse/databases",
  access: "/clickhouse/access",
  ddl: "/clickhouse/ddl",
} as const;

/** Days that the log of statements reaches back. */
const LOG_DAYS = 7;

/** Every text in quotes: no two readers of YAML may differ about it. */
const yaml = (tree: object) =>
  stringify(tree, { defaultStringType: "QUOTE_DOUBLE", defaultKeyType: "PLAIN", lineWidth: 0 });

const fromEnv = (name: string) => ({ "@from_env": name });
/** Servers write their merged configuration to their volume; this stays out of it. */
const secret = (name: string) => ({ ...fromEnv(name), "@hide_in_preprocessed": true });

/** Files of the ConfigMap, by key, and where they are mounted below the configuration's folder. */
export function serverFiles(database: Database) {
  return {
    "config.yaml": { path: "config.yaml", text: yaml(server(database)) },
    "users.yaml": { path: "users.yaml", text: yaml(profiles(database)) },
    "accounts.yaml": { path: "users.d/accounts.yaml", text: yaml(users) },
  };
}

/** The file of the Keepers' ConfigMap. */
export function keeperFile(database: Database): string {
  return yaml({
    ...common,
    keeper_server: {
      ...keeper,
      server_id: fromEnv("SLIPWAY_KEEPER_ID"),
      raft_configuration: raft(keeperAddresses(database)),
    },
  });
}

/** The same for servers and Keepers. */
const common = {
  // Statements are logged at lower levels.
  logger: { level: "warning", console: 1 },
  listen_host: ["::", "0.0.0.0"],
  listen_try: 1,
  path: `${paths.data}/`,
  openSSL: {
    server: {
      certificateFile: `${paths.tls}/tls.crt`,
      privateKeyFile: `${paths.tls}/tls.key`,
      caConfig: `${paths.tls}/ca.crt`,
      verificationMode: "none",
      cacheSessions: true,
      disableProtocols: "sslv2,sslv3,tlsv1,tlsv1_1",
      preferServerCiphers: true,
    },
    client: {
      caConfig: `${paths.tls}/ca.crt`,
      // What statements read from elsewhere has certificates of other authorities.
      loadDefaultCAFile: true,
      verificationMode: "relaxed",
      cacheSessions: true,
      disableProtocols: "sslv2,sslv3,tlsv1,tlsv1_1",
      preferServerCiphers: true,
      invalidCertificateHandler: { name: "RejectCertificateHandler" },
    },
  },
};

const keeper = {
  tcp_port_secure: KEEPER_PORT,
  log_storage_path: `${paths.data}/coordination/log`,
  snapshot_storage_path: `${paths.data}/coordination/snapshots`,
  coordination_settings: {
    operation_timeout_ms: 10_000,
    session_timeout_ms: 30_000,
    raft_logs_level: "warning",
  },
};

function raft(addresses: readonly string[]) {
  return {
    secure: true,
    server: addresses.map((hostname, index) => ({ id: index + 1, hostname, port: RAFT_PORT })),
  };
}

function server(database: Database) {
  return {
    ...common,
    // Without other ports: everything is TLS.
    https_port: HTTPS_PORT,
    tmp_path: `${paths.data}/tmp/`,
    user_files_path: `${paths.data}/user_files/`,
    format_schema_path: `${paths.data}/format_schemas/`,
    max_server_memory_usage: fromEnv("SLIPWAY_SERVER_MEMORY"),
    mark_cache_size: fromEnv("SLIPWAY_MARK_CACHE"),
    max_concurrent_queries: fromEnv("SLIPWAY_CONCURRENT_QUERIES"),
    default_profile: "default",
    default_database: "default",
    allow_no_password: 0,
    send_crash_reports: { enabled: false },
    access_control_improvements: {
      users_without_row_policies_can_read_rows: true,
      on_cluster_queries_require_cluster_grant: true,
      select_from_system_db_requires_grant: true,
      select_from_information_schema_requires_grant: true,
    },
    query_log: {
      database: "system",
      table: "query_log",
      partition_by: "toYYYYMMDD(event_date)",
      ttl: `event_date + INTERVAL ${LOG_DAYS} DAY DELETE`,
      flush_interval_milliseconds: 7_500,
    },
    macros: { cluster: CLUSTER, shard: SHARD, replica: fromEnv("SLIPWAY_POD") },
    default_replica_path: "/clickhouse/tables/{uuid}/{shard}",
    default_replica_name: "{replica}",
    distributed_ddl: { path: keeperPaths.ddl },
    ...(isReplicated(database) ? several(database) : single),
  };
}

const identity = secret("SLIPWAY_KEEPER_IDENTITY");

/** One server is its own Keeper. */
const single = {
  interserver_listen_host: "127.0.0.1",
  user_directories: {
    users_xml: { path: "users.yaml" },
    local_directory: { path: `${paths.data}/access/` },
  },
  keeper_server: { ...keeper, server_id: 1, raft_configuration: raft(["localhost"]) },
  zookeeper: { node: [{ host: "localhost", port: KEEPER_PORT, secure: 1 }], identity },
};

function several(database: Database) {
  return {
    tcp_port_secure: NATIVE_PORT,
    interserver_https_port: INTERSERVER_PORT,
    interserver_https_host: fromEnv("SLIPWAY_ADDRESS"),
    interserver_http_host: fromEnv("SLIPWAY_ADDRESS"),
    interserver_http_credentials: {
      user: accounts.interserver,
      password: secret("SLIPWAY_REPLICATION_PASSWORD"),
      allow_empty: false,
    },
    user_directories: {
      users_xml: { path: "users.yaml" },
      replicated: { zookeeper_path: keeperPaths.access },
    },
    zookeeper: {
      node: keeperAddresses(database).map((host) => ({ host, port: KEEPER_PORT, secure: 1 })),
      identity,
    },
    remote_servers: {
      [CLUSTER]: {
        secret: secret("SLIPWAY_REPLICATION_PASSWORD"),
        shard: {
          internal_replication: true,
          replica: serverAddresses(database).map((host) => ({ host, port: NATIVE_PORT, secure: 1 })),
        },
      },
    },
  };
}

function profiles(database: Database) {
  return {
    profiles: {
      default: {
        max_memory_usage: fromEnv("SLIPWAY_QUERY_MEMORY"),
        // Clients expect no rows from what changes tables; a server that is away catches up.
        distributed_ddl_output_mode: "none_only_active",
        log_queries: 1,
        ...(isReplicated(database) ? replication(database) : {}),
      },
    },
    quotas: { default: {} },
  };
}

/** Whatever is kept is on every server; of three, an insert is acknowledged once two have it. */
function replication(database: Database) {
  return {
    default_table_engine: "ReplicatedMergeTree",
    database_replicated_allow_only_replicated_engine: 1,
    ...(sizeOf(database) > 2 ? { insert_quorum: "auto" } : {}),
  };
}

/** All other users are created by statements. */
const users = {
  users: {
    [accounts.admin]: {
      password_sha256_hex: secret("SLIPWAY_ADMIN_SHA256"),
      networks: { ip: "::/0" },
      profile: "default",
      quota: "default",
      access_management: 1,
    },
  },
};
