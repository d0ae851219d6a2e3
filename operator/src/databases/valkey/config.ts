/** Files of an instance's ConfigMap: the settings of the server and the Sentinel and their shell programs. Pure. */

import { readScript, renderScript } from "../common/scripts.ts";
import type { Database } from "../database.ts";
import {
  ADMIN_RULES,
  accounts,
  GROUP,
  MONITOR_RULES,
  PROJECT_RULES,
  paths,
  REPLICATION_RULES,
  SENTINEL_PORT,
  sizeOf,
  VALKEY_PORT,
} from "./names.ts";

/** Milliseconds without an answer after which a Sentinel considers an instance down. */
const DOWN_AFTER_MS = 3_000;
/**
 * The same for a Sentinel that has only started, until it has seen the primary once. After an outage of everything the primary
 * returns with all that it acknowledged, and no Sentinel knows which of the others has most of it.
 */
const STARTUP_DOWN_AFTER_MS = 15_000;
/** Timeout of each step of a failover; the next failover begins after twice that at the earliest. */
const FAILOVER_MS = 10_000;

/** How long a primary that is to end waits until a replica has taken its place, in seconds: as long as a step of a failover. */
const HAND_OVER_SECONDS = FAILOVER_MS / 1_000;

/**
 * How long a Sentinel that was not scheduled for 2 s only watches (TILT): long enough to receive a message of each other one again. Its default
 * of 30 s would mean that on a busy node no Sentinel ever replaces a primary.
 */
const TILT_MS = 5_000;

/**
 * How often a Sentinel queries a primary for its replicas: every 10 s by default, and a replica that it does not know cannot
 * take the primary's place. So it queries more often until it knows all of them.
 */
const DISCOVERY_PERIOD_MS = 1_000;
const INFO_PERIOD_MS = 10_000;

const values = {
  RUN: paths.run,
  DATA: paths.data,
  TLS: paths.tls,
  CONFIG: paths.config,
  SYNCHRONIZED: paths.synchronized,
  SENTINEL_STATE: paths.sentinelState,
  ADMIN_USER: accounts.admin,
  REPLICATION_USER: accounts.replication,
  MONITOR_USER: accounts.monitor,
  ADMIN_RULES,
  REPLICATION_RULES,
  MONITOR_RULES,
  PROJECT_RULES,
  VALKEY_PORT,
  SENTINEL_PORT,
  GROUP,
  DOWN_AFTER_MS,
  STARTUP_DOWN_AFTER_MS,
  FAILOVER_MS,
  HAND_OVER_SECONDS,
  TILT_MS,
  DISCOVERY_PERIOD_MS,
  INFO_PERIOD_MS,
};

const read = (name: string) => readScript(new URL(`scripts/${name}.sh`, import.meta.url));

const START = renderScript(read("start"), values);
const SENTINEL = read("sentinel");
const READY = renderScript(read("ready"), values);
const ALIVE = renderScript(read("alive"), values);
const STOP = renderScript(read("stop"), values);

/** Files of the ConfigMap `<id>-config`. None of them has a password. */
export function files(database: Database): Record<string, string> {
  return {
    "valkey.conf": directiveFile(directives(database)),
    "start.sh": START,
    "ready.sh": READY,
    "alive.sh": ALIVE,
    ...(sizeOf(database) > 1
      ? { "sentinel.conf": sentinelFile(), "sentinel.sh": sentinelScript(database), "stop.sh": STOP }
      : {}),
  };
}

function sentinelFile(): string {
  return directiveFile([
    ...transport(SENTINEL_PORT),
    ["dir", "/tmp"],
    ["sentinel", "resolve-hostnames", "yes"],
    ["sentinel", "announce-hostnames", "yes"],
    ["sentinel", "announce-port", SENTINEL_PORT],
  ]);
}

function sentinelScript(database: Database): string {
  const size = sizeOf(database);
  return renderScript(SENTINEL, { ...values, QUORUM: Math.floor(size / 2) + 1, OTHERS: size - 1 });
}

// Valkey's settings, derived from what one instance gets. Pure.

const MIB = 1024 * 1024;

/**
 * What data may take of the memory. The rest is for connections, the replicas' backlog, and the pages that a rewrite of the
 * append-only file copies while it runs.
 */
const DATA_SHARE = { kept: 0.65, cache: 0.75 } as const;

/** Directives of `valkey.conf`, in order. */
export type Directives = readonly (readonly [name: string, ...values: (string | number)[]])[];

/** Whether anything outlives the processes. A cache keeps nothing. */
export function isKept({ profile }: Pick<Database, "profile">): boolean {
  return profile !== "cache";
}

/** `maxmemory`, in bytes. */
export function maxMemory({ profile, memoryBytes }: Pick<Database, "profile" | "memoryBytes">): number {
  const share = isKept({ profile }) ? DATA_SHARE.kept : DATA_SHARE.cache;
  return Math.floor((memoryBytes * share) / MIB) * MIB;
}

/** How a server and a Sentinel speak: TLS alone, among themselves as well. Certificates are read again when they change. */
export function transport(port: number): Directives {
  return [
    ["port", 0],
    ["tls-port", port],
    ["tls-cert-file", `${paths.tls}/tls.crt`],
    ["tls-key-file", `${paths.tls}/tls.key`],
    ["tls-ca-cert-file", `${paths.tls}/ca.crt`],
    ["tls-auth-clients", "no"],
    ["tls-replication", "yes"],
    ["tls-protocols", '"TLSv1.2 TLSv1.3"'],
    ["tls-auto-reload-interval", 3600],
    ["protected-mode", "no"],
    ["daemonize", "no"],
    // A title would be written over the environment.
    ["set-proc-title", "no"],
    ["logfile", '""'],
  ];
}

/** Every setting that is not Valkey's own default, without passwords. */
export function directives(database: Database): Directives {
  const { memoryBytes } = database;
  const memory = memoryBytes / MIB;
  const mebibytes = (amount: number, least: number) => `${Math.max(least, Math.floor(amount))}mb`;
  return [
    ...transport(VALKEY_PORT),
    ["aclfile", `${paths.run}/users.acl`],
    ["dir", paths.data],
    ["maxmemory", maxMemory(database)],
    ["maxmemory-policy", isKept(database) ? "noeviction" : "allkeys-lru"],
    ["maxmemory-clients", "10%"],
    ["maxclients", Math.min(10_000, Math.max(100, Math.floor(memory)))],
    ["client-output-buffer-limit", "replica", mebibytes(memory / 8, 8), mebibytes(memory / 16, 4), 60],
    // The connection of a client that vanished is freed within two minutes.
    ["tcp-keepalive", 60],
    ["sanitize-dump-payload", "yes"],
    // Logs go to the platform: no content of a command is in them.
    ["crash-log-enabled", "no"],
    ["always-show-logo", "no"],
    ["shutdown-timeout", 10],
    ...persistence(database),
    ...replication(database, mebibytes(memory / 32, 1)),
  ];
}

/** With `everysec` a crash of the node loses a second of writes at most; one of the process alone loses none. */
function persistence(database: Database): Directives {
  return isKept(database)
    ? [
        ["appendonly", "yes"],
        ["appendfsync", "everysec"],
        ["no-appendfsync-on-rewrite", "no"],
        ["auto-aof-rewrite-percentage", 100],
        ["auto-aof-rewrite-min-size", "16mb"],
        ["save", 3600, 1, 300, 1000],
        ["stop-writes-on-bgsave-error", "no"],
      ]
    : [
        ["appendonly", "no"],
        ["save", '""'],
      ];
}

/**
 * A primary without a replica that has acknowledged within 10 s accepts no writes: that is the most that can be lost when it
 * is cut off and another one takes over.
 */
function replication(database: Database, backlog: string): Directives {
  if (sizeOf(database) === 1) {
    return [];
  }
  return [
    ["min-replicas-to-write", 1],
    ["min-replicas-max-lag", 10],
    ["replica-serve-stale-data", "yes"],
    ["replica-read-only", "yes"],
    ["repl-backlog-size", backlog],
    ["repl-diskless-sync", "yes"],
    ["repl-diskless-sync-delay", 0],
    // A copy replaces the data only once it is complete.
    ["repl-diskless-load", isKept(database) ? "disabled" : "on-empty-db"],
    // How long the replicas of a primary that vanished stay on a dead connection.
    ["repl-timeout", 10],
    ["repl-ping-replica-period", 2],
  ];
}

/** The text of a file of directives. */
export function directiveFile(lines: Directives): string {
  return `${lines.map((words) => words.join(" ")).join("\n")}\n`;
}
