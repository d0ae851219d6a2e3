/** How each engine's databases are dumped and loaded: client programs, credentials and variables of its scripts. */

import { credentialKeys } from "@slipway/crds";
import { accounts as mariadbAccounts } from "../../databases/mariadb/names.ts";
import { accounts as postgresqlAccounts } from "../../databases/postgresql/names.ts";
import { CA_FILE, type EngineScripts, engineScripts, SCRATCH } from "./engine.ts";

/** The password is in the environment. */
const LOGIN = `--host="$DATABASE_HOST" --port=3306 --user="$DATABASE_USER" --ssl-ca=${CA_FILE} --ssl-verify-server-cert`;
const LOCAL = `--socket=${SCRATCH}/sock --user=root`;
const CHARSET = "--default-character-set=utf8mb4";

/** A dump is the SQL of one transaction. */
export const mariadbScripts: EngineScripts = {
  name: "mariadb",
  counts: "rows",
  port: 3306,
  ...engineScripts("mariadb", {
    load: { CLIENT: `mariadb --no-defaults ${LOGIN} ${CHARSET} "$DATABASE_NAME"` },
    verify: { CLIENT: `mariadb --no-defaults ${LOCAL} ${CHARSET} trial` },
  }),
  host: "DATABASE_HOST",
  credentials: {
    DATABASE_USER: credentialKeys.username,
    MYSQL_PWD: credentialKeys.password,
    DATABASE_NAME: credentialKeys.database,
  },
  // Loaded objects are owned by the user, with its name as definer.
  dumpCredentials: { MYSQL_PWD: credentialKeys.superuser },
  dumpVariables: { DATABASE_USER: mariadbAccounts.backup },
  variables: {},
};

/** Valkey's outgoing connections need a certificate, too: any. */
const TLS = `--tls-cluster yes --tls-ca-cert-file ${CA_FILE} --tls-cert-file /etc/slipway/tls/tls.crt --tls-key-file /etc/slipway/tls/tls.key`;

/** A dump is an RDB file, as a replica receives one. */
export const valkeyScripts: EngineScripts = {
  name: "valkey",
  counts: "keys",
  port: 6379,
  ...engineScripts("valkey", {
    load: { FOLDER: "/tmp", OPTIONS: TLS },
    verify: { FOLDER: SCRATCH, OPTIONS: "--maxmemory 0" },
  }),
  host: "VALKEY_HOST",
  credentials: { VALKEY_USER: credentialKeys.username, VALKEYCLI_AUTH: credentialKeys.password },
  // The replication account may do nothing else; a dump needs the operator's permissions.
  dumpCredentials: { VALKEYCLI_AUTH: credentialKeys.superuser },
  variables: {},
  ownCertificate: true,
  inMemory: true,
};

/** A dump has `pg_dump`'s custom format, of one snapshot, in which the rows are counted, too. */
export const postgresqlScripts: EngineScripts = {
  name: "postgresql",
  counts: "rows",
  port: 5432,
  ...engineScripts("postgresql"),
  host: "PGHOST",
  credentials: {
    PGPASSWORD: credentialKeys.superuser,
    PGDATABASE: credentialKeys.database,
    DATABASE_OWNER: credentialKeys.username,
  },
  variables: {
    PGUSER: postgresqlAccounts.backup,
    PGSSLMODE: "verify-full",
    PGSSLROOTCERT: CA_FILE,
    PGCONNECT_TIMEOUT: "15",
  },
};

const all: readonly EngineScripts[] = [postgresqlScripts, mariadbScripts, valkeyScripts];

/** Scripts of an engine; undefined where there are no backups of it. */
export function scriptsOf(type: string): EngineScripts | undefined {
  return all.find(({ name }) => name === type);
}
