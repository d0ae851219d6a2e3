# shellcheck shell=sh
# Writes a dump of one transaction into the pipe and counts its rows on the way, since no other session sees the same.
# Between `LOCK TABLES` and `UNLOCK TABLES` each row has a line of its own that begins with a parenthesis: line feeds in
# data are escaped. `sh` knows only the exit code of a pipe's last program, so the dump's own is kept in a file. The
# password is in the environment.

set -u
umask 007
work() {
{ mariadb-dump --no-defaults --host="$DATABASE_HOST" --port=3306 --user="$DATABASE_USER" --ssl-ca=__CA_FILE__ --ssl-verify-server-cert --single-transaction --skip-lock-tables --quick --hex-blob \
    --routines --triggers --events --no-tablespaces --default-character-set=utf8mb4 "$DATABASE_NAME"
  echo "$?" >__OWN__; } | tee __DATA__ | awk '
/^LOCK TABLES .* WRITE;$/ { table = substr($0, 13, length($0) - 19); rows[table] += 0; next }
/^UNLOCK TABLES;$/ { table = ""; next }
table != "" && /^\(/ { rows[table] += 1 }
END { for (table in rows) print table "\t" rows[table] }' >__CONTENTS__ || return
return "$(cat __OWN__)"
}
. ../run-work.sh
