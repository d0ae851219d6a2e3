#!/bin/sh
# dump-ledger.sh FOLDER: dumps the ledger into a pipe of that folder, once another container reads it. Which ledger: libpq's
# variables, or SLIPWAY_LEDGER_URL. `exit` of the folder then has pg_dump's exit code, `errors` what it complained of.
set -u
folder=$1
umask 0007
rm -f "$folder/pipe" "$folder/exit" "$folder/errors"
mkfifo "$folder/pipe"

# Opening the pipe waits for its reader, so that the dump is newer than the objects that were read before.
pg_dump --no-owner --no-privileges ${SLIPWAY_LEDGER_URL:+"--dbname=$SLIPWAY_LEDGER_URL"} \
  >"$folder/pipe" 2>"$folder/errors"
echo $? >"$folder/exit.new"
mv "$folder/exit.new" "$folder/exit"

# A sidecar that ends would be started again.
trap 'exit 0' TERM INT
while :; do
  sleep 3600 &
  wait $!
done
