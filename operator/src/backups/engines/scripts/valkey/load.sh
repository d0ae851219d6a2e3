# shellcheck shell=sh
# Loads a dump from the pipe. A running server loads none, so keys are moved from a server of the pod's own, with their
# expiry, and functions after them. A few hundred keys are moved at a time by a script that returns the next cursor;
# nothing of it is an argument of a program. The local server has no password, and would refuse one.

set -u
umask 007
work() {
. ./serve-dump.sh
for db in $(env -u VALKEYCLI_AUTH valkey-cli -s __FOLDER__/sock -e INFO keyspace | sed -n 's/^db\([0-9]*\):.*/\1/p'); do
  cursor=0
  while :; do
    cursor=$(printf 'EVAL "%s" 0 %s %s %s %s %s\n' "local found = redis.call('SCAN', ARGV[1], 'COUNT', 300) if #found[2] > 0 then redis.call('MIGRATE', ARGV[2], '6379', '', ARGV[3], '60000', 'COPY', 'REPLACE', 'AUTH2', ARGV[4], ARGV[5], 'KEYS', unpack(found[2])) end return found[1]" "$cursor" "$VALKEY_HOST" "$db" "$VALKEY_USER" "$VALKEYCLI_AUTH" |
      env -u VALKEYCLI_AUTH valkey-cli -s __FOLDER__/sock -e -n "$db") || { echo "keys could not be moved" >&2; return 1; }
    case $cursor in
      0) break ;;
      '' | *[!0-9]*) echo "keys could not be moved" >&2; return 1 ;;
    esac
  done
done
if [ -n "$(env -u VALKEYCLI_AUTH valkey-cli -s __FOLDER__/sock -e FUNCTION LIST)" ]; then
  env -u VALKEYCLI_AUTH valkey-cli -s __FOLDER__/sock -e --raw FUNCTION DUMP | head -c -1 | valkey-cli -e --tls --cacert __CA_FILE__ -h "$VALKEY_HOST" -p 6379 --user "$VALKEY_USER" -X payload FUNCTION RESTORE payload REPLACE >/dev/null || return
fi
kill -9 "$server"
return 0
}
. ../run-work.sh
