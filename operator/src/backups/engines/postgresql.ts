/** PostgreSQL: `pg_dump`'s own format, of one snapshot, in which the rows are counted, too. */

import { credentialKeys } from "@slipway/crds";
import { accounts } from "../../databases/postgresql/names.ts";
import { CA_FILE, type EngineScripts, engineScript, exchange, SCRATCH } from "./engine.ts";

const { data, contents, own } = exchange;

const PSQL = "psql --no-psqlrc --no-password --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1 --file=-";

/** Loading without owners and rights: a database has one user, and the server that tries a backup has not even that. */
const RESTORE = "pg_restore --no-password --no-owner --no-privileges --exit-on-error";

/** Schemas that a dump has, and what of them is no extension's. */
const OWN_SCHEMAS = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'";
const noMember = (catalog: string, oid: string) =>
  `NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = '${catalog}'::regclass AND d.objid = ${oid} AND d.deptype = 'e')`;

/** Writes a line for each table that has rows of its own. Names are told apart by it, so control characters in them may go. */
const COUNT = `
\\o ${contents}
SELECT format('SELECT %L || chr(9) || count(*) FROM %I.%I',
  regexp_replace(quote_ident(n.nspname) || '.' || quote_ident(c.relname), '[[:cntrl:]]', '?', 'g'), n.nspname, c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND ${OWN_SCHEMAS} AND ${noMember("pg_class", "c.oid")} \\gexec
\\o`;

/** A session's own limits would end a long dump. */
const PATIENT = `
SET statement_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET lock_timeout = 0;`;

const DUMP = `
: >${contents}
${PSQL} <<'SQL' || return
${PATIENT}
SET row_security = off;
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT pg_export_snapshot() AS snapshot \\gset
\\setenv SNAPSHOT :snapshot
${COUNT}
\\! pg_dump --no-password --format=custom --snapshot="$SNAPSHOT" >${data}; echo "$?" >${own}
COMMIT;
SQL
return "$(cat ${own})"`;

/** Takes away what an earlier try has loaded. Tables go one at a time: all at once might need more locks than there are. */
const CLEAN = `
SELECT format('DROP TABLE IF EXISTS %I.%I CASCADE', n.nspname, c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'f') AND ${OWN_SCHEMAS} AND ${noMember("pg_class", "c.oid")} \\gexec
SELECT format('DROP EXTENSION IF EXISTS %I CASCADE', extname) FROM pg_extension
WHERE pg_has_role(extowner, 'USAGE') \\gexec
SELECT format('DROP PUBLICATION IF EXISTS %I', pubname) FROM pg_publication \\gexec
SELECT format('DROP SCHEMA IF EXISTS %I CASCADE', n.nspname) FROM pg_namespace n
WHERE ${OWN_SCHEMAS} AND (n.nspname <> 'public'
  OR EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid)
  OR EXISTS (SELECT FROM pg_proc WHERE pronamespace = n.oid)
  OR EXISTS (SELECT FROM pg_type WHERE typnamespace = n.oid)) \\gexec
CREATE SCHEMA IF NOT EXISTS public;
SELECT format('SELECT lo_unlink(%s)', oid) FROM pg_largeobject_metadata \\gexec`;

const LOAD = `
: >${contents}
${PSQL} >/dev/null <<'SQL' || return
SET client_min_messages TO warning;
\\getenv owner DATABASE_OWNER
SET ROLE :"owner";
${CLEAN}
SQL
PGOPTIONS='-c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0' ${RESTORE} --role="$DATABASE_OWNER" --dbname="$PGDATABASE" <${data} || return
${PSQL} <<'SQL'
${PATIENT}
SET row_security = off;
ANALYZE;
${COUNT}
SQL`;

/** What is lost with the pod need not be written twice. */
const SERVER = [
  "listen_addresses=''",
  `unix_socket_directories='${SCRATCH}'`,
  "fsync=off",
  "full_page_writes=off",
  "synchronous_commit=off",
  "wal_level=minimal",
  "max_wal_senders=0",
  "max_connections=10",
  "max_locks_per_transaction=4096",
  "shared_buffers=32MB",
  "maintenance_work_mem=64MB",
  "dynamic_shared_memory_type=mmap",
]
  .map((setting) => `-c ${setting}`)
  .join(" ");

const VERIFY = `
: >${contents}
export PGDATA=${SCRATCH}/pgdata PGHOST=${SCRATCH} PGUSER=postgres
initdb --username=postgres --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-sync >/dev/null || return
pg_ctl start --wait --silent --timeout=120 --log=${SCRATCH}/log --options="${SERVER}" || return
PGDATABASE=postgres ${PSQL} <<'SQL' || return
CREATE DATABASE trial TEMPLATE template0;
SQL
export PGDATABASE=trial
${RESTORE} --dbname=trial <${data} || return
${PSQL} <<'SQL' || return
${COUNT}
SQL
pg_ctl stop --mode=immediate --silent || true`;

export const postgresqlScripts: EngineScripts = {
  name: "postgresql",
  counts: "rows",
  port: 5432,
  dump: engineScript(DUMP),
  load: engineScript(LOAD),
  verify: engineScript(VERIFY),
  host: "PGHOST",
  credentials: {
    PGPASSWORD: credentialKeys.superuser,
    PGDATABASE: credentialKeys.database,
    DATABASE_OWNER: credentialKeys.username,
  },
  variables: {
    PGUSER: accounts.backup,
    PGSSLMODE: "verify-full",
    PGSSLROOTCERT: CA_FILE,
    PGCONNECT_TIMEOUT: "15",
  },
};
