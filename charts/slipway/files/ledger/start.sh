#!/bin/sh
# start.sh CONNECTIONS: starts a member of a ledger with two instances.
set -eu
folder=${0%/*}
# shellcheck source=SCRIPTDIR/prepare.sh
. "$folder/prepare.sh"

# Patroni removes its own variables from the environment of what it runs.
export SUPERUSER_PASSWORD="$PATRONI_SUPERUSER_PASSWORD" REPLICATION_PASSWORD="$PATRONI_REPLICATION_PASSWORD" CONNECTIONS="$1"

if [ "${PATRONI_NAME##*-}" != 0 ]; then exec patroni "$folder/patroni.yml"; fi

# The first member alone may make a new ledger, or has the data of a single instance: two members could make two ledgers.
if [ -s "$PGDATA/PG_VERSION" ] && [ ! -e "$PGDATA/$PREPARED" ] && [ ! -e "$PGDATA/standby.signal" ]; then
  prepare "$PGDATA"
fi
mkdir -p /tmp/patroni
cp "$folder/patroni.yml" "$folder/first.yml" /tmp/patroni/
exec patroni /tmp/patroni
