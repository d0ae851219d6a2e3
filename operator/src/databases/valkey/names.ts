/** Names, ports, paths and accounts of Valkey and its Sentinels, and what each account may do (ACL). */

import { credentialKeys, type DatabaseCredentials } from "@slipway/crds";
import type { Database } from "../database.ts";

export const VALKEY_PORT = 6379;
export const SENTINEL_PORT = 26_379;

export const CLIENT_PORTS = [{ name: "database", port: VALKEY_PORT }];
export const MEMBER_PORTS = [...CLIENT_PORTS, { name: "sentinel", port: SENTINEL_PORT }];

/** The same in every image; see docs/databases.md. */
export const paths = {
  /** Where the volume is. */
  volume: "/data",
  /** What the server keeps, below it. */
  data: "/data/valkey",
  /** Exists once the server has served: a replica has synchronized then. Deleted with the data. */
  synchronized: "/data/valkey/synchronized",
  /** Without passwords, what a Sentinel knew last. */
  sentinelState: "/data/sentinel.state",
  /** Files with passwords or their hashes: in memory, written again at each start. */
  run: "/run/valkey",
  config: "/etc/valkey",
  tls: "/etc/slipway/tls",
} as const;

/** The platform's own accounts. These names are reserved. */
export const accounts = {
  admin: "slipway_admin",
  /** Of replicas and Sentinels. */
  replication: "slipway_replication",
  monitor: "slipway_monitor",
} as const;

/** All keys and channels, and every command that is about data rather than the server. */
export const PROJECT_RULES = [
  "~* &* +@all -@admin -@dangerous",
  "+info +keys +sort +sort_ro +flushdb +flushall +restore +role +client|list +slowlog|len",
].join(" ");

/** Everything, for the operator. */
export const ADMIN_RULES = "~* &* +@all";

/**
 * What replicas and Sentinels need of each other: what Valkey's own sentinel.conf lists, and that a Sentinel pauses clients
 * during a switchover (sentinel.c).
 */
export const REPLICATION_RULES = [
  "&* -@all +psync +replconf +ping +hello +auth +multi +exec +slaveof +replicaof +failover +role +info",
  "+publish +subscribe +config|rewrite +client|setname +client|setinfo +client|kill +client|pause +client|unpause +script|kill",
].join(" ");

/** Figures about the server, and no key. */
export const MONITOR_RULES = [
  "-@all +ping +hello +auth +info +dbsize +memory|stats +slowlog|len",
  "+latency|latest +latency|history +latency|histogram +client|setname +client|setinfo",
].join(" ");

/** Names that are safe as one word of an ACL and of a script. */
const USERNAME = /^[A-Za-z0-9_-]{1,64}$/;
const RESERVED: readonly string[] = ["default", ...Object.values(accounts)];

/** What is wrong with a project's credentials, as a sentence; undefined when nothing is. */
export function credentialsProblem(credentials: DatabaseCredentials): string | undefined {
  const username = credentials[credentialKeys.username] ?? "";
  if (!USERNAME.test(username)) {
    return "The username must have 1 to 64 letters, digits, _ or -.";
  }
  return RESERVED.includes(username) ? `The username ${username} is the platform's own.` : undefined;
}

/** What Sentinels call the one group of instances that they watch. */
export const GROUP = "primary";

/** Instances that exist, will exist or may exist again. With more than one, Sentinels agree on the primary. */
export function sizeOf({ members }: Pick<Database, "members">): number {
  return members;
}

/**
 * Service of one pod. Sentinels identify instances by address and must find one again when its pod is another one: a pod's
 * own address changes, and its name in the headless Service is deleted with it.
 */
export function nodeService({ id }: Pick<Database, "id">, ordinal: number | string): string {
  return `${id}-node-${ordinal}`;
}

/** @param ordinal of the pod, or a variable for it */
export function nodeAddress(database: Pick<Database, "id" | "namespace">, ordinal: number | string): string {
  return `${nodeService(database, ordinal)}.${database.namespace}.svc`;
}

/** One for each instance, where a service has several. */
export function nodeServices(database: Database): string[] {
  const size = sizeOf(database);
  return size === 1 ? [] : Array.from({ length: size }, (_, ordinal) => nodeService(database, ordinal));
}

export function nodeAddresses(database: Database): string[] {
  return Array.from({ length: sizeOf(database) }, (_, ordinal) => nodeAddress(database, ordinal));
}
