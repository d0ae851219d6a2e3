#!/bin/sh
# Starts PostgreSQL as the upstream `postgres` image does, for the part of its contract that the chart uses:
# PGDATA, POSTGRES_USER, POSTGRES_DB, POSTGRES_PASSWORD or POSTGRES_PASSWORD_FILE, POSTGRES_INITDB_ARGS,
# any non-root user, and `postgres [options]` as the command.
set -eu

if [ "${1#-}" != "$1" ]; then set -- postgres "$@"; fi
if [ "$1" != postgres ]; then exec "$@"; fi
if [ "$(id -u)" = 0 ]; then
  echo 'PostgreSQL does not run as root: set runAsUser' >&2
  exit 1
fi

: "${PGDATA:=/var/lib/postgresql/data}"
: "${POSTGRES_USER:=postgres}"
: "${POSTGRES_DB:=$POSTGRES_USER}"
export PGDATA

# Makes the cluster beside its final place and moves it there when it is complete, so that a crash on the way leaves
# nothing that looks like data. (PGDATA is therefore a folder below a volume's mount point.)
initialize() {
  making="$PGDATA.initializing"
  password="$making.password"
  rm -rf "$making" "$password"
  umask 077
  if [ -n "${POSTGRES_PASSWORD_FILE:-}" ]; then
    cp "$POSTGRES_PASSWORD_FILE" "$password"
  elif [ -n "${POSTGRES_PASSWORD:-}" ]; then
    printf '%s\n' "$POSTGRES_PASSWORD" >"$password"
  else
    echo 'POSTGRES_PASSWORD_FILE or POSTGRES_PASSWORD is required to make a database' >&2
    exit 1
  fi
  # shellcheck disable=SC2086 # initdb's arguments are words
  initdb --pgdata="$making" --username="$POSTGRES_USER" --pwfile="$password" --encoding=UTF8 --locale=C.UTF-8 \
    --auth-local=trust --auth-host=scram-sha-256 --data-checksums ${POSTGRES_INITDB_ARGS:-}
  rm -f "$password"
  printf '\nhost all all all scram-sha-256\n' >>"$making/pg_hba.conf"
  printf "\nlisten_addresses = '*'\npassword_encryption = 'scram-sha-256'\n" >>"$making/postgresql.conf"
  if [ "$POSTGRES_DB" != postgres ]; then
    pg_ctl --pgdata="$making" --options="-c listen_addresses='' -c unix_socket_directories=$making" --wait --silent start
    createdb --host="$making" --username="$POSTGRES_USER" --no-password "$POSTGRES_DB"
    pg_ctl --pgdata="$making" --mode=fast --wait --silent stop
  fi
  # An empty folder in the way is replaced; anything else stops here, untouched.
  mv -T "$making" "$PGDATA"
}

if [ ! -s "$PGDATA/PG_VERSION" ]; then initialize; fi

# PostgreSQL is process 1: SIGINT stops it at once and cleanly, SIGTERM waits for clients to leave.
exec "$@"
