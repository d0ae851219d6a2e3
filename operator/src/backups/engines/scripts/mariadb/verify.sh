# shellcheck shell=sh
# Loads a dump from the pipe into a server of its own and counts the rows. What is lost with the pod need not be written
# twice, so the server syncs nothing to disk.

set -u
umask 007
work() {
mariadb-install-db --no-defaults --datadir=__SCRATCH__/data --wsrep-on=OFF --skip-test-db \
  --auth-root-authentication-method=normal >/dev/null || return
mariadbd --no-defaults --datadir=__SCRATCH__/data --socket=__SCRATCH__/sock --pid-file=__SCRATCH__/pid --tmpdir=/tmp \
  --skip-networking --wsrep-on=OFF --skip-log-bin --event-scheduler=OFF --innodb-buffer-pool-size=128M \
  --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 --max-allowed-packet=1G >__SCRATCH__/log 2>&1 &
server=$!
tries=0
until mariadb-admin --no-defaults --socket=__SCRATCH__/sock --user=root ping >/dev/null 2>&1; do
  tries=$((tries + 1))
  # shellcheck disable=SC2015 # `kill` and the comparison are one condition.
  kill -0 "$server" 2>/dev/null && [ "$tries" -lt 240 ] || { cat __SCRATCH__/log >&2; return 1; }
  sleep 0.5
done
mariadb --no-defaults --socket=__SCRATCH__/sock --user=root --default-character-set=utf8mb4 --execute="CREATE DATABASE trial CHARACTER SET utf8mb4" || return
__CLIENT__ <__DATA__ || return

. ./count-rows.sh
kill -9 "$server"
return 0
}
. ../run-work.sh
