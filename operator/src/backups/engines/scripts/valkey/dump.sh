# shellcheck shell=sh
# Writes an RDB into the pipe, as a replica receives one: all keys as they are at one moment. The server's own program
# counts what is in a file when it is called valkey-check-rdb.

set -u
umask 007
work() {
valkey-cli --tls --cacert __CA_FILE__ -h "$VALKEY_HOST" -p 6379 --user slipway_admin --rdb /tmp/dump.rdb >/dev/null || return

ln -sf "$(command -v valkey-server)" /tmp/valkey-check-rdb
/tmp/valkey-check-rdb /tmp/dump.rdb >/tmp/checked || { tail -n 5 /tmp/checked >&2; return 1; }
keys=$(sed -n 's/.*\] \([0-9][0-9]*\) keys read$/\1/p' /tmp/checked)
printf 'keys\t%s\n' "${keys:?}" >__CONTENTS__
cat /tmp/dump.rdb >__DATA__
}
. ../run-work.sh
