# shellcheck shell=sh
# Writes a dump of one snapshot, in `pg_dump`'s own format, into the pipe, and counts the rows of the same snapshot. A
# session's own limits would end a long dump, so they are off.

set -u
umask 007
work() {
: >__CONTENTS__
psql --no-psqlrc --no-password --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1 --file=- <<'SQL' || return

SET statement_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET lock_timeout = 0;
SET row_security = off;
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT pg_export_snapshot() AS snapshot \gset
\setenv SNAPSHOT :snapshot

\ir ./count-rows.sql
\! pg_dump --no-password --format=custom --snapshot="$SNAPSHOT" >__DATA__; echo "$?" >__OWN__
COMMIT;
SQL
return "$(cat __OWN__)"
}
. ../run-work.sh
