/** Accounts and database of a MariaDB project, as a script that can be run again and again. Pure. */

import { createHash } from "node:crypto";
import { credentialKeys, type DatabaseCredentials } from "@slipway/crds";
import { passwordsIn } from "../common/setup.ts";
import { NOTING } from "./events.ts";
import { accounts, OWN_SCHEMA } from "./names.ts";

/** Names that a project's own user or database cannot have. */
const RESERVED =
  /^(slipway.*|root|mysql|mariadb|public|sys|information_schema|performance_schema|replication)$/i;

/** Why user, database or password of a credentials Secret cannot be used; undefined when they can. */
export function credentialsProblem(credentials: DatabaseCredentials): string | undefined {
  for (const key of [credentialKeys.username, credentialKeys.database]) {
    const name = credentials[key] ?? "";
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(name) || RESERVED.test(name)) {
      return `The ${key} in the credentials Secret cannot be used.`;
    }
  }
  const password = credentials[credentialKeys.password] ?? "";
  return password === "" || password.includes("\0")
    ? "The password in the credentials Secret cannot be used."
    : undefined;
}

/** What the server keeps of a password with `mysql_native_password`. */
export function passwordHash(password: string): string {
  const sha1 = (data: string | Buffer) => createHash("sha1").update(data).digest();
  return `*${sha1(sha1(password)).toString("hex").toUpperCase()}`;
}

export interface Setup {
  credentials: DatabaseCredentials;
  /** Set the user's password: only when it is to be another one, for the user may have set it itself. */
  setPassword: boolean;
  /** Connections that the project's user may have concurrently. */
  connections: number;
}

/**
 * The script for `mariadb`, run by the container's own user. Its only output is a line `version identity`. Every member
 * gets what it does.
 */
export function setupScript({ credentials, setPassword, connections }: Setup): string {
  const of = (key: string) => credentials[key] ?? "";
  const user = account(of(credentialKeys.username));
  const database = identifier(of(credentialKeys.database));
  const monitor = account(accounts.monitor);
  const schema = identifier(OWN_SCHEMA);
  const login = (passwords: readonly string[], most: number) => {
    const methods = passwords.map((password) => `mysql_native_password USING '${passwordHash(password)}'`);
    return `IDENTIFIED VIA ${methods.join(" OR ")} REQUIRE SSL WITH MAX_USER_CONNECTIONS ${most}`;
  };
  // In a grant `_` matches any character.
  const granted = database.replaceAll("_", "\\_");
  const backup = account(accounts.backup);
  const backupLogin = login([of(credentialKeys.superuser)], BACKUP_CONNECTIONS);
  const monitorLogin = login([of(credentialKeys.monitor)], MONITOR_CONNECTIONS);
  return [
    "SET NAMES utf8mb4;",
    // The monitoring account reads the server's figures, which needs no right, and how large the database is.
    `CREATE USER IF NOT EXISTS ${monitor} ${monitorLogin};`,
    `ALTER USER ${monitor} ${monitorLogin};`,
    `CREATE DATABASE IF NOT EXISTS ${schema};`,
    `CREATE FUNCTION IF NOT EXISTS ${schema}.database_size(given VARCHAR(64)) RETURNS BIGINT UNSIGNED READS SQL DATA`,
    "  SQL SECURITY DEFINER RETURN (SELECT COALESCE(SUM(FILE_SIZE), 0) FROM information_schema.INNODB_SYS_TABLESPACES",
    "  WHERE LEFT(NAME, CHAR_LENGTH(given) + 1) = CONCAT(given, '/'));",
    `GRANT EXECUTE ON FUNCTION ${schema}.database_size TO ${monitor};`,
    ...NOTING,
    // The project's own.
    `CREATE DATABASE IF NOT EXISTS ${database};`,
    `CREATE USER IF NOT EXISTS ${user} ${login(passwordsIn(credentials), connections)};`,
    ...(setPassword ? [`ALTER USER ${user} ${login(passwordsIn(credentials), connections)};`] : []),
    `ALTER USER ${user} REQUIRE SSL WITH MAX_USER_CONNECTIONS ${connections};`,
    `GRANT ALL PRIVILEGES ON ${granted}.* TO ${user};`,
    // Backups read everything, whatever the user has done to its own password.
    `CREATE USER IF NOT EXISTS ${backup} ${backupLogin};`,
    `ALTER USER ${backup} ${backupLogin};`,
    `GRANT SELECT, LOCK TABLES, SHOW VIEW, TRIGGER, EVENT ON ${granted}.* TO ${backup};`,
    `GRANT SELECT ON mysql.proc TO ${backup};`,
    "SELECT VERSION(), VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'wsrep_local_state_uuid';",
    "",
  ].join("\n");
}

/** Members that search for a group, and metrics once a minute. */
const MONITOR_CONNECTIONS = 10;
const BACKUP_CONNECTIONS = 4;

/** What such a script answers. */
export function parseSetup(output: string): { version: string; identity: string } | undefined {
  const [, version, identity] = /^([0-9.]+)[^\t\n]*\t([0-9a-f-]{36})$/m.exec(output) ?? [];
  return version !== undefined && identity !== undefined ? { version, identity } : undefined;
}

function identifier(name: string): string {
  return `\`${name.replaceAll("`", "``")}\``;
}

function account(name: string): string {
  return `${identifier(name)}@'%'`;
}
