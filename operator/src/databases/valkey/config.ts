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
import { directiveFile, directives, transport } from "./parameters.ts";

/** Milliseconds without an answer after which a Sentinel considers an instance down. */
const DOWN_AFTER_MS = 3_000;
/**
 * The same for a Sentinel that has only started, until it has seen the primary once. After an outage of everything the primary
 * returns with all that it acknowledged, and no Sentinel knows which of the others has most of it.
 */
const STARTUP_DOWN_AFTER_MS = 15_000;
/** Timeout of each step of a failover; the next failover begins after twice that at the earliest. */
const FAILOVER_MS = 10_000;

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
  TILT_MS,
  DISCOVERY_PERIOD_MS,
  INFO_PERIOD_MS,
};

const read = (name: string) => readScript(new URL(`scripts/${name}.sh`, import.meta.url));

const START = renderScript(read("start"), values);
const SENTINEL = read("sentinel");
const READY = renderScript(read("ready"), values);
const ALIVE = renderScript(read("alive"), values);

/** Files of the ConfigMap `<id>-config`. None of them has a password. */
export function files(database: Database): Record<string, string> {
  return {
    "valkey.conf": directiveFile(directives(database)),
    "start.sh": START,
    "ready.sh": READY,
    "alive.sh": ALIVE,
    ...(sizeOf(database) > 1
      ? { "sentinel.conf": sentinelFile(), "sentinel.sh": sentinelScript(database) }
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
