#!/bin/sh
# Makes a new ledger, when Patroni finds that there was none yet: beside its final place, so that a crash on the way leaves nothing
# that looks like data.
set -eu
# shellcheck source=SCRIPTDIR/prepare.sh
. "${0%/*}/prepare.sh"

making=$PGDATA.initializing
rm -rf "$making"
umask 077
# Patroni writes who may connect.
initdb --pgdata="$making" --username=slipway --encoding=UTF8 --locale=C.UTF-8 --auth=reject --data-checksums
prepare "$making"
mv -T "$making" "$PGDATA"
