# shellcheck shell=sh
# Loads a dump from the pipe into a server of its own and counts the rows. What is lost with the pod need not be written
# twice, so the server syncs nothing to disk. It has no roles but its own, so owners and privileges are left out.

set -u
umask 007
work() {
: >__CONTENTS__
export PGDATA=__SCRATCH__/pgdata PGHOST=__SCRATCH__ PGUSER=postgres
initdb --username=postgres --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-sync >/dev/null || return
pg_ctl start --wait --silent --timeout=120 --log=__SCRATCH__/log --options="-c listen_addresses='' -c unix_socket_directories='__SCRATCH__' -c fsync=off -c full_page_writes=off -c synchronous_commit=off -c wal_level=minimal -c max_wal_senders=0 -c max_connections=10 -c max_locks_per_transaction=4096 -c shared_buffers=32MB -c maintenance_work_mem=64MB -c dynamic_shared_memory_type=mmap" || return
PGDATABASE=postgres psql --no-psqlrc --no-password --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1 --file=- <<'SQL' || return
CREATE DATABASE trial TEMPLATE template0;
SQL
export PGDATABASE=trial
pg_restore --no-password --no-owner --no-privileges --exit-on-error --dbname=trial <__DATA__ || return
psql --no-psqlrc --no-password --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1 --file=- <<'SQL' || return

\ir ./count-rows.sql
SQL
pg_ctl stop --mode=immediate --silent || true
}
. ../run-work.sh
