/** Statements by which the platform sets up a ClickHouse database, and the replies. Pure. */

import { createHash } from "node:crypto";
import type { DatabaseCredentials } from "@slipway/crds";
import { passwordsIn } from "../common/setup.ts";
import type { Database } from "../database.ts";
import { keeperPaths } from "./config.ts";
import { SHARD } from "./names.ts";

/** Users and databases are known by these alone: no name needs an escape, in statements, paths or URLs. */
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/;
const OWN_USER = /^(default|slipway.*)$/i;
const OWN_DATABASE = /^(default|system|information_schema|slipway.*)$/i;

/** Why these credentials cannot be taken over; undefined when they can. */
export function credentialsProblem(credentials: DatabaseCredentials): string | undefined {
  const { username = "", database = "" } = credentials;
  if (!NAME.test(username) || OWN_USER.test(username)) {
    return "The Secret names a user that cannot be made: letters, digits and _, and none of the platform's own.";
  }
  if (!NAME.test(database) || OWN_DATABASE.test(database)) {
    return "The Secret names a database that cannot be made: letters, digits and _, and none of the server's own.";
  }
  return undefined;
}

/** Whether an image's servers can replicate; a substitute for ClickHouse cannot. */
export function canReplicate({ features }: Pick<Database["image"], "features">): boolean {
  return features.replication !== false;
}

/**
 * Creates the database, on each server. A replicated one is the same on all of them, and exists already where another
 * server has created it.
 */
export function databaseStatement(database: Database, { database: name = "" }: DatabaseCredentials): string {
  const engine = canReplicate(database.image)
    ? ` ENGINE = Replicated('${keeperPaths.databases}/${name}', '{shard}', '{replica}')`
    : "";
  return `CREATE DATABASE IF NOT EXISTS ${name}${engine}`;
}

/**
 * Creates the project's user, on one server: the others know it from there.
 * @param setPassword whether the user's passwords are to be these, also if the user exists already
 * @param salt of the hashes by which the server knows the passwords
 */
export function userStatements(
  credentials: DatabaseCredentials,
  { setPassword, salt }: { setPassword: boolean; salt: string },
): string[] {
  const { username = "", database = "" } = credentials;
  const methods = passwordsIn(credentials).map((password) => {
    const hash = createHash("sha256").update(password).update(salt).digest("hex");
    return `sha256_hash BY '${hash}' SALT '${salt}'`;
  });
  const identified = `IDENTIFIED WITH ${methods.join(", ")}`;
  return [
    `CREATE USER IF NOT EXISTS ${username} ${identified}`,
    ...(setPassword ? [`ALTER USER ${username} ${identified}`] : []),
    `GRANT ALL ON ${database}.* TO ${username}`,
    `GRANT CREATE TEMPORARY TABLE ON *.* TO ${username}`,
  ];
}

export const VERSION = "SELECT version() FORMAT TabSeparated";

/** Servers that a replicated database knows, and whether each is active: `name\t0|1`. */
export function membersStatement({ database = "" }: DatabaseCredentials): string {
  return `SELECT database_replica_name, is_active FROM system.clusters WHERE cluster = '${database}' FORMAT TabSeparated`;
}

/**
 * Tables of a server that take no writes now, or have yet to fetch what other servers acknowledged: parts in its queue, and
 * entries of the log in Keeper that are not in its queue yet. `log_pointer` is the next entry that it reads, and both are 0 for
 * a table whose log is empty.
 */
export const BEHIND =
  "SELECT count() FROM system.replicas WHERE is_readonly OR inserts_in_queue > 0 OR " +
  "(log_max_index > 0 AND log_pointer <= log_max_index) FORMAT TabSeparated";

/** Tables of a server that take no writes, since it has lost Keeper. */
export const READ_ONLY = "SELECT count() FROM system.replicas WHERE is_readonly FORMAT TabSeparated";

/**
 * Removes those that are no longer requested from the other servers: one of the same name could not return otherwise.
 * @param answer of {@link membersStatement}
 * @param wanted names of the servers' pods
 */
export function forgetStatements(
  answer: string,
  { database = "" }: DatabaseCredentials,
  wanted: readonly string[],
): string[] {
  return answer
    .split("\n")
    .map((line) => line.split("\t"))
    .filter(([name = "", active]) => name !== "" && active === "0" && !wanted.includes(name))
    .flatMap(([name]) => [
      `SYSTEM DROP DATABASE REPLICA '${SHARD}|${name}' FROM DATABASE ${database}`,
      `SYSTEM DROP REPLICA '${name}' FROM DATABASE ${database}`,
    ]);
}

/** Names of the requested servers. */
export function serverNames(database: Database): string[] {
  return Array.from({ length: database.instances }, (_, ordinal) => `${database.id}-${ordinal}`);
}
