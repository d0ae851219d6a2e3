# shellcheck shell=sh
# Starts a server with the dump from the pipe and counts what it has loaded; what has expired since is in the dump, too.

: >__CONTENTS__
cat __DATA__ >__FOLDER__/dump.rdb || return
valkey-server --port 0 --unixsocket __FOLDER__/sock --dir __FOLDER__ --dbfilename dump.rdb --save '' --appendonly no \
  --daemonize no --logfile __FOLDER__/log __OPTIONS__ &
server=$!
tries=0
until [ "$(env -u VALKEYCLI_AUTH valkey-cli -s __FOLDER__/sock -e ping 2>/dev/null)" = PONG ]; do
  tries=$((tries + 1))
  # shellcheck disable=SC2015 # `kill` and the comparison are one condition.
  kill -0 "$server" 2>/dev/null && [ "$tries" -lt 1200 ] || { tail -n 5 __FOLDER__/log >&2; return 1; }
  sleep 0.2
done
loaded=$(env -u VALKEYCLI_AUTH valkey-cli -s __FOLDER__/sock -e INFO persistence | tr -d '\r' | awk -F: '/^rdb_last_load_keys_(loaded|expired):/ { sum += $2 } END { print sum + 0 }')
printf 'keys\t%s\n' "$loaded" >__CONTENTS__
