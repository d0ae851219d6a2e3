/** Files of a member's ConfigMap: the server's settings and the shell programs of its container. Pure. */

import { hashJson } from "@slipway/controller-runtime";
import { readScript, renderScript } from "../common/scripts.ts";
import type { Database } from "../database.ts";
import { LEAD_SQL } from "./events.ts";
import { accounts, GROUP_PORT, INCREMENT_PORT, MARIADB_PORT, OWN_SCHEMA, paths } from "./names.ts";

/** Variables of the group's state, which a member prints as lines of name and value. */
const STATUS = [
  "wsrep_cluster_size",
  "wsrep_cluster_status",
  "wsrep_last_committed",
  "wsrep_local_state",
  "wsrep_local_state_uuid",
  "wsrep_ready",
];

const values = {
  RUN: paths.run,
  DATA: paths.data,
  SOCKET: paths.socket,
  TLS: paths.tls,
  CONFIG: paths.config,
  OWN_SCHEMA,
  MONITOR_USER: accounts.monitor,
  SHOW_STATUS: `SHOW GLOBAL STATUS WHERE Variable_name IN (${STATUS.map((name) => `'${name}'`).join(",")})`,
  /** Stops the scheduled events of a member. */
  REST: "SET GLOBAL event_scheduler = OFF",
};

const script = (name: string) =>
  renderScript(readScript(new URL(`scripts/${name}.sh`, import.meta.url)), values);

const START = script("start");
const ASK = script("ask");
const ORDER = script("order");
const READY = script("ready");
const ALIVE = script("alive");

/** Files of the ConfigMap `<id>-config`. None of them has a password. */
export function files(database: Database): Record<string, string> {
  return {
    "server.cnf": serverFile(database),
    "start.sh": START,
    "ask.sh": ASK,
    "order.sh": ORDER,
    "lead.sql": LEAD_SQL,
    "ready.sh": READY,
    "alive.sh": ALIVE,
  };
}

// MariaDB's and Galera's settings, derived from what one instance gets. Pure.

const MIB = 1024 * 1024;

/** Connections beside the project's: probes, members that search for each other, figures, the operator. */
export const OWN_CONNECTIONS = 15;

/** What a launcher replaces in the file, for it alone knows. */
export const placeholders = { address: "@ADDRESS@", member: "@MEMBER@", user: "@USER@" } as const;

type Settings = Readonly<Record<string, string | number>>;

/** How many connections a project's user may have: a busy one needs 1 to 3 MiB, and more with large sorts. */
export function userConnections({ memoryBytes }: Pick<Database, "memoryBytes">): number {
  return Math.min(500, Math.max(30, Math.floor(memoryBytes / MIB / 8)));
}

/** The file that `--defaults-file` names. The script that copies data to other members reads it, too. */
export function serverFile(database: Database): string {
  const sections: [string, Settings][] = [
    ["mysqld", { ...server(database), ...transport(), ...memory(database), ...galera(database) }],
    // Both ends show a certificate of the platform's.
    ["sst", { encrypt: 4 }],
  ];
  return sections
    .map(([name, settings]) => {
      const lines = Object.entries(settings).map(([key, value]) => `${key}=${value}`);
      return `[${name}]\n${lines.join("\n")}\n`;
    })
    .join("\n");
}

function server(database: Database): Settings {
  return {
    datadir: paths.data,
    socket: paths.socket,
    "pid-file": `${paths.run}/mysqld.pid`,
    tmpdir: "/tmp",
    "bind-address": "*",
    port: MARIADB_PORT,
    "skip-name-resolve": 1,
    max_connections: userConnections(database) + OWN_CONNECTIONS,
    "character-set-server": "utf8mb4",
    "default-time-zone": "+00:00",
    "local-infile": 0,
    // A group logs as a binary log does; without this only the operator could create a trigger.
    log_bin_trust_function_creators: 1,
    "symbolic-links": 0,
    // The connection of a client that vanished is freed within two minutes.
    tcp_keepalive_time: 60,
    tcp_keepalive_interval: 10,
    tcp_keepalive_probes: 6,
    // Logs go to the platform: no text of a statement is in them, not even of one that has killed the server.
    log_warnings: 1,
    "skip-stack-trace": 1,
    general_log: 0,
    slow_query_log: 0,
    performance_schema: 0,
  };
}

/** Every connection by the network has TLS. Certificates are read again by `FLUSH SSL`. */
function transport(): Settings {
  return {
    "ssl-cert": `${paths.tls}/tls.crt`,
    "ssl-key": `${paths.tls}/tls.key`,
    "ssl-ca": `${paths.tls}/ca.crt`,
    tls_version: "TLSv1.2,TLSv1.3",
    "require-secure-transport": 1,
  };
}

function memory({ memoryBytes, cpus, storage }: Database): Settings {
  const disk = (storage?.capacityGb ?? 1) * 1024;
  return {
    innodb_buffer_pool_size: mebibytes(memoryBytes / MIB / 2, 64),
    innodb_log_file_size: mebibytes(Math.min(disk / 32, 1024), 48),
    // What is acknowledged is on the volume.
    innodb_flush_log_at_trx_commit: 1,
    innodb_flush_method: "O_DIRECT",
    innodb_print_all_deadlocks: 0,
    innodb_autoinc_lock_mode: 2,
    binlog_format: "ROW",
    default_storage_engine: "InnoDB",
    tmp_table_size: mebibytes(memoryBytes / MIB / 32, 8),
    max_heap_table_size: mebibytes(memoryBytes / MIB / 32, 8),
    table_open_cache: 1000,
    wsrep_slave_threads: Math.min(8, Math.max(1, Math.ceil(cpus))),
  };
}

function galera(database: Database): Settings {
  const disk = (database.storage?.capacityGb ?? 1) * 1024;
  const tls = [
    `socket.ssl_cert=${paths.tls}/tls.crt`,
    `socket.ssl_key=${paths.tls}/tls.key`,
    `socket.ssl_ca=${paths.tls}/ca.crt`,
  ];
  const options = [
    `gmcast.listen_addr=tcp://${placeholders.address}:${GROUP_PORT}`,
    `ist.recv_addr=${placeholders.address}:${INCREMENT_PORT}`,
    // What a member that was away for a while can catch up from; it never fills the volume.
    `gcache.size=${mebibytes(Math.min(disk / 32, 1024), 64)}`,
    "gcache.keep_pages_size=0",
    "gcache.recover=yes",
    // Only the operator bootstraps a group, since it alone sees every member.
    "pc.recovery=false",
    ...tls,
  ];
  return {
    wsrep_on: "ON",
    wsrep_provider: "/usr/lib/galera/libgalera_smm.so",
    wsrep_provider_options: `"${options.join(";")}"`,
    // 32 characters at most; members that have another one are turned away.
    wsrep_cluster_name: `slipway-${hashJson([database.namespace, database.id]).slice(0, 16)}`,
    wsrep_node_name: placeholders.member,
    wsrep_node_address: placeholders.address,
    wsrep_sst_method: "mariabackup",
    wsrep_sst_auth: `${placeholders.user}:`,
    wsrep_log_conflicts: "OFF",
  };
}

function mebibytes(amount: number, least: number): string {
  return `${Math.max(least, Math.floor(amount))}M`;
}
