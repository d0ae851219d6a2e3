# shellcheck shell=sh
# Removes what an earlier attempt has loaded, then loads a dump from the pipe. Tables are dropped one at a time: all in one
# statement might need more locks than there are. It is loaded without owners and privileges: a database has one user.

set -u
umask 007
work() {
: >__CONTENTS__
psql --no-psqlrc --no-password --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1 --file=- >/dev/null <<'SQL' || return
SET client_min_messages TO warning;
\getenv owner DATABASE_OWNER
SET ROLE :"owner";

SELECT format('DROP TABLE IF EXISTS %I.%I CASCADE', n.nspname, c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e') \gexec
SELECT format('DROP EXTENSION IF EXISTS %I CASCADE', extname) FROM pg_extension
WHERE pg_has_role(extowner, 'USAGE') \gexec
SELECT format('DROP PUBLICATION IF EXISTS %I', pubname) FROM pg_publication \gexec
SELECT format('DROP SCHEMA IF EXISTS %I CASCADE', n.nspname) FROM pg_namespace n
WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND (n.nspname <> 'public'
  OR EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid)
  OR EXISTS (SELECT FROM pg_proc WHERE pronamespace = n.oid)
  OR EXISTS (SELECT FROM pg_type WHERE typnamespace = n.oid)) \gexec
CREATE SCHEMA IF NOT EXISTS public;
SELECT format('SELECT lo_unlink(%s)', oid) FROM pg_largeobject_metadata \gexec
SQL
PGOPTIONS='-c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0' pg_restore --no-password --no-owner --no-privileges --exit-on-error --role="$DATABASE_OWNER" --dbname="$PGDATABASE" <__DATA__ || return
psql --no-psqlrc --no-password --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1 --file=- <<'SQL'

SET statement_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET lock_timeout = 0;
SET row_security = off;
ANALYZE;

\ir ./count-rows.sql
SQL
}
. ../run-work.sh
