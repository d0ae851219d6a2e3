/** Accounts, database and extension of a PostgreSQL project, as a script that can be run again and again. Pure. */

import { createHash, createHmac, pbkdf2Sync, randomBytes } from "node:crypto";
import { credentialKeys, type DatabaseCredentials, type DatabaseStatus } from "@slipway/crds";
import { accounts } from "./names.ts";

/** Names that a project's own user or database cannot have. */
const RESERVED = /^(pg_|slipway_|postgres$|template[01]$|public$)/;

/** Why user, database or password of a credentials Secret cannot be used; undefined when they can. */
export function credentialsProblem(credentials: DatabaseCredentials): string | undefined {
  for (const key of [credentialKeys.username, credentialKeys.database]) {
    const name = credentials[key] ?? "";
    if (!/^[A-Za-z_][A-Za-z0-9_$-]{0,62}$/.test(name) || RESERVED.test(name)) {
      return `The ${key} in the credentials Secret cannot be used.`;
    }
  }
  const password = credentials[credentialKeys.password] ?? "";
  return password === "" || password.includes("\0")
    ? "The password in the credentials Secret cannot be used."
    : undefined;
}

export interface Setup {
  credentials: DatabaseCredentials;
  /** As the server keeps a password; another function where nothing is kept. */
  verifierOf?: (password: string) => string;
  /** Set the user's password: only when it is to be another one, for the user may have set it itself. */
  setPassword: boolean;
  /** The account that references get. */
  reference: string;
  /** Whether the extension that measures latencies exists. */
  statements: boolean;
}

/**
 * The script for `psql`, run by the superuser in the database `postgres`. Its only output is a line
 * `version|system identifier`. Errors have no more than their code, so that no verifier gets into a log.
 */
export function setupScript({
  credentials,
  setPassword,
  reference,
  statements,
  verifierOf = scramVerifier,
}: Setup): string {
  const of = (key: string) => credentials[key] ?? "";
  const user = of(credentialKeys.username);
  const database = of(credentialKeys.database);
  const verifier = verifierOf(of(credentialKeys.password));
  const monitorVerifier = verifierOf(of(credentialKeys.monitor));
  const kept = credentials[credentialKeys.previousPassword];
  const previous = kept === undefined ? undefined : verifierOf(kept);
  const own = [
    [accounts.superuser, credentialKeys.superuser],
    [accounts.replication, credentialKeys.replication],
    [accounts.rewind, credentialKeys.replication],
  ] as const;
  const monitor = identifier(accounts.monitor);
  const backup = identifier(accounts.backup);
  const backupVerifier = verifierOf(of(credentialKeys.superuser));
  return [
    "\\set VERBOSITY sqlstate",
    "\\set ON_ERROR_STOP on",
    "SET log_min_messages TO panic;",
    "SET client_min_messages TO error;",
    // Patroni created these; a Secret that was lost has other passwords now.
    ...own.map(([role, key]) => setPasswordOf(role, verifierOf(of(key)))),
    // The monitoring account reads statistics and nothing else.
    createRole(accounts.monitor, monitorVerifier),
    `ALTER ROLE ${monitor} NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION CONNECTION LIMIT 4 PASSWORD ${literal(monitorVerifier)};`,
    `ALTER ROLE ${monitor} SET default_transaction_read_only TO on;`,
    `ALTER ROLE ${monitor} SET statement_timeout TO '10s';`,
    `GRANT pg_read_all_stats TO ${monitor};`,
    "REVOKE CONNECT, TEMPORARY ON DATABASE postgres FROM PUBLIC;",
    "REVOKE CONNECT ON DATABASE template1 FROM PUBLIC;",
    `GRANT CONNECT ON DATABASE postgres TO ${monitor}, ${identifier(accounts.rewind)};`,
    ...(statements ? ["CREATE EXTENSION IF NOT EXISTS pg_stat_statements;"] : []),
    // The project's own.
    createRole(user, verifier),
    ...(setPassword ? [setPasswordOf(user, verifier)] : []),
    createDatabase(database, user),
    `REVOKE CONNECT, TEMPORARY ON DATABASE ${identifier(database)} FROM PUBLIC;`,
    `GRANT ALL ON DATABASE ${identifier(database)} TO ${identifier(user)};`,
    ...accounts.references.flatMap((account) => {
      const isPrevious = account !== reference && previous !== undefined;
      return referenceAccount(account, { user, database, verifier: isPrevious ? previous : verifier });
    }),
    // Backups read everything, whatever the user has done to its own password, rights and rows.
    createRole(accounts.backup, backupVerifier),
    `ALTER ROLE ${backup} NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION INHERIT BYPASSRLS CONNECTION LIMIT 4 PASSWORD ${literal(backupVerifier)};`,
    `GRANT pg_read_all_data, ${identifier(user)} TO ${backup};`,
    `GRANT CONNECT ON DATABASE ${identifier(database)} TO ${backup};`,
    "SELECT split_part(current_setting('server_version'), ' ', 1), system_identifier FROM pg_control_system();",
    "\\q",
    "",
  ].join("\n");
}

/**
 * An account that logs in by a password of its own and acts as the project's user from the beginning of each session, so that objects are that
 * one's. It has no rights itself. Servers apply the setting as of 15.10, 16.6 and 17.2.
 */
function referenceAccount(
  name: string,
  { user, database, verifier }: { user: string; database: string; verifier: string },
): string[] {
  const account = identifier(name);
  return [
    createRole(name, verifier),
    `ALTER ROLE ${account} NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT LOGIN PASSWORD ${literal(verifier)};`,
    `ALTER ROLE ${account} SET role TO ${literal(user)};`,
    `GRANT ${identifier(user)} TO ${account};`,
    `GRANT CONNECT ON DATABASE ${identifier(database)} TO ${account};`,
    copySettings(user, name),
  ];
}

/**
 * Gives an account the settings that its user was given by `ALTER ROLE … SET`, and writes nothing where it has them. What the server refuses is
 * left out: the user may have given itself what has become invalid. The server keeps a list as text in which names are quoted, and takes it as
 * several values.
 */
function copySettings(user: string, account: string): string {
  const settingsOf = (role: string) => `
    SELECT setdatabase, split_part(one, '=', 1) AS name, substr(one, strpos(one, '=') + 1) AS value
    FROM pg_db_role_setting, unnest(setconfig) AS one
    WHERE setrole = (SELECT oid FROM pg_roles WHERE rolname = ${literal(role)})`;
  return `DO $settings$
DECLARE
  setting record;
BEGIN
  FOR setting IN
    SELECT datname, COALESCE(given.name, had.name) AS name, given.value
    FROM (${settingsOf(user)}) AS given
    FULL JOIN (${settingsOf(account)}) AS had USING (setdatabase, name)
    LEFT JOIN pg_database ON pg_database.oid = setdatabase
    WHERE given.value IS DISTINCT FROM had.value
      AND lower(COALESCE(given.name, had.name)) NOT IN ('role', 'session_authorization')
  LOOP
    BEGIN
      EXECUTE format('ALTER ROLE %I', ${literal(account)})
        || COALESCE(' IN DATABASE ' || quote_ident(setting.datname), '')
        || CASE
          WHEN setting.value IS NULL THEN format(' RESET %I', setting.name)
          ELSE format(' SET %I TO ', setting.name) || CASE
            WHEN lower(setting.name) IN (${LISTS.map(literal).join(", ")}) THEN COALESCE(
              (SELECT string_agg(format('%L', COALESCE(replace(part[1], '""', '"'), btrim(part[2]))), ', ' ORDER BY place)
              FROM regexp_matches(setting.value, '"((?:[^"]|"")*)"|([^",[:space:]][^",]*)', 'g')
                WITH ORDINALITY AS parts (part, place)),
              quote_literal(''))
            ELSE format('%L', setting.value)
          END
        END;
    EXCEPTION WHEN OTHERS THEN
      NULL;
    END;
  END LOOP;
END
$settings$;`;
}

/** Settings that are lists of names (GUC_LIST_QUOTE). */
const LISTS = [
  "search_path",
  "temp_tablespaces",
  "local_preload_libraries",
  "session_preload_libraries",
  "shared_preload_libraries",
  "unix_socket_directories",
] as const;

/** The minor versions of earlier majors as of which the setting of an account's role is applied, also after `DISCARD ALL`. */
const FIRST_MINORS: Readonly<Record<string, number>> = { "15": 10, "16": 6, "17": 2 };

/** Whether a server's accounts for references act as the project's user; see {@link referenceAccount}. */
export function hasReferenceAccounts(version: string): boolean {
  const [, major = "", minor = "0"] = /^([0-9]+)(?:\.([0-9]+))?/.exec(version) ?? [];
  return Number(major) >= 18 || Number(minor) >= (FIRST_MINORS[major] ?? Number.POSITIVE_INFINITY);
}

/**
 * The account that references are to get: the same until the password is another one, then the one that is not in use, so that those who
 * are logged in by the former go on. That one stays, too, where it is not the password of its own that is kept, but one before that: then the
 * other account has that.
 * @param status as of the last set-up
 */
export function referenceAccountFor(
  { credentialsHash, referenceUsername }: Pick<DatabaseStatus, "credentialsHash" | "referenceUsername">,
  { wantedHash, previousHash }: { wantedHash: string; previousHash?: string },
): string {
  const [first, second] = accounts.references;
  const isSecond = referenceUsername === second;
  const isRenewed = referenceUsername !== undefined && credentialsHash !== wantedHash;
  const isKept = previousHash === undefined || previousHash === credentialsHash;
  return isSecond === (isRenewed && isKept) ? first : second;
}

/** What such a script prints. */
export function parseSetup(output: string): { version: string; identity: string } | undefined {
  const [, version = "", identity = ""] = /^([0-9][^|\s]*)\|([0-9]+)$/m.exec(output) ?? [];
  return version === "" ? undefined : { version, identity };
}

/** `CREATE ROLE` has no `IF NOT EXISTS`. */
function createRole(name: string, verifier: string): string {
  const create = `format('CREATE ROLE %I LOGIN PASSWORD %L', ${literal(name)}, ${literal(verifier)})`;
  return `SELECT ${create} WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = ${literal(name)}) \\gexec`;
}

function setPasswordOf(role: string, verifier: string): string {
  return `ALTER ROLE ${identifier(role)} LOGIN PASSWORD ${literal(verifier)};`;
}

/** Nor has `CREATE DATABASE`. */
function createDatabase(name: string, owner: string): string {
  const create = `format('CREATE DATABASE %I OWNER %I', ${literal(name)}, ${literal(owner)})`;
  return `SELECT ${create} WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = ${literal(name)}) \\gexec`;
}

function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Backslashes are plain text in it, as `standard_conforming_strings` has it. */
function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

const SCRAM_ITERATIONS = 4_096;
const SCRAM_KEY_LENGTH = 32;

/**
 * The SCRAM-SHA-256 verifier, with which the server never sees the password itself, not even in a statement: what
 * PostgreSQL keeps of a password, as `ALTER ROLE … PASSWORD` accepts it (RFC 5803). ASCII is its own SASLprep
 * form; a password beyond it is normalized as libpq does where that is possible.
 */
export function scramVerifier(password: string, salt: Buffer = randomBytes(16)): string {
  const salted = pbkdf2Sync(password.normalize("NFKC"), salt, SCRAM_ITERATIONS, SCRAM_KEY_LENGTH, "sha256");
  const hmac = (text: string) => createHmac("sha256", salted).update(text).digest();
  const stored = createHash("sha256").update(hmac("Client Key")).digest("base64");
  const server = hmac("Server Key").toString("base64");
  return `SCRAM-SHA-256$${SCRAM_ITERATIONS}:${salt.toString("base64")}$${stored}:${server}`;
}
