#!/bin/sh
# scratch-ledger.sh FOLDER DATA: makes a PostgreSQL server in DATA that listens on a socket of FOLDER alone, and loads what another
# container writes into the pipe of that folder. `exit` then has psql's exit code, `errors` what it complained of.
set -u
folder=$1
data=$2
umask 0007
rm -rf "$folder/pipe" "$folder/exit" "$folder/errors" "$data"

# A sidecar that ends is started again: it waits for its pod's end instead.
failed() {
  echo "$1 failed" >>"$folder/errors"
  echo 1 >"$folder/exit"
  trap 'exit 0' TERM INT
  while :; do
    sleep 3600 &
    wait $!
  done
}

initdb --pgdata="$data" --username=slipway --auth=trust --encoding=UTF8 --locale=C.UTF-8 >/dev/null 2>>"$folder/errors" ||
  failed 'initdb'
# What it has is thrown away with the pod: it need not survive a crash.
postgres -D "$data" -c listen_addresses= -c "unix_socket_directories=$folder" -c fsync=off -c full_page_writes=off \
  -c synchronous_commit=off -c autovacuum=off -c jit=off -c max_connections=10 -c shared_buffers=64MB -c wal_level=minimal \
  -c max_wal_senders=0 &
server=$!
trap 'kill -INT $server; wait $server; exit 0' TERM INT
until pg_isready --quiet --host="$folder" --dbname=postgres; do
  kill -0 $server 2>/dev/null || failed 'postgres'
  sleep 0.2
done
createdb --host="$folder" --username=slipway --no-password ledger 2>>"$folder/errors" || failed 'createdb'

mkfifo "$folder/pipe"
# The schema `public` is in a new database by now; a dump has it only when it was changed.
psql --host="$folder" --username=slipway --dbname=ledger --quiet --no-psqlrc --single-transaction --set ON_ERROR_STOP=1 \
  --set VERBOSITY=terse --file=- --output /dev/null <"$folder/pipe" 2>>"$folder/errors"
echo $? >"$folder/exit.new"
mv "$folder/exit.new" "$folder/exit"
wait $server
