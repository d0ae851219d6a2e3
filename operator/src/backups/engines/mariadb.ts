/** MariaDB: SQL of one transaction. Its rows are counted on their way, since no other session sees the same. */

import { credentialKeys } from "@slipway/crds";
import { accounts } from "../../databases/mariadb/names.ts";
import { CA_FILE, type EngineScripts, engineScript, exchange, SCRATCH } from "./engine.ts";

const { data, contents, own } = exchange;

/** The password comes by the environment. */
const LOGIN = `--host="$DATABASE_HOST" --port=3306 --user="$DATABASE_USER" --ssl-ca=${CA_FILE} --ssl-verify-server-cert`;

/**
 * Counts the rows of each table of a dump. Between `LOCK TABLES` and `UNLOCK TABLES` each row has a line of its own, which
 * begins with a parenthesis: line feeds in data are escaped.
 */
const COUNT_STREAM = String.raw`awk '
/^LOCK TABLES .* WRITE;$/ { table = substr($0, 13, length($0) - 19); rows[table] += 0; next }
/^UNLOCK TABLES;$/ { table = ""; next }
table != "" && /^\(/ { rows[table] += 1 }
END { for (table in rows) print table "\t" rows[table] }'`;

/** The same of a database, in the same words. @param client with its login */
const countTables = (client: string) => `
cat >${own}.sql <<'SQL'
SELECT CONCAT('SELECT CONCAT(', QUOTE(CONCAT(CHAR(96), REPLACE(TABLE_NAME, CHAR(96), CONCAT(CHAR(96), CHAR(96))), CHAR(96))),
  ', CHAR(9), COUNT(*)) FROM ', CHAR(96), REPLACE(TABLE_NAME, CHAR(96), CONCAT(CHAR(96), CHAR(96))), CHAR(96), ';')
FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE';
SQL
${client} --skip-column-names --batch --raw <${own}.sql >${own}.each || return
${client} --skip-column-names --batch --raw <${own}.each >${contents} || return`;

/** `sh` knows the exit code of a pipe's last program alone: the dump's own is kept in a file. */
const DUMP = `
{ mariadb-dump --no-defaults ${LOGIN} --single-transaction --skip-lock-tables --quick --hex-blob \\
    --routines --triggers --events --no-tablespaces --default-character-set=utf8mb4 "$DATABASE_NAME"
  echo "$?" >${own}; } | tee ${data} | ${COUNT_STREAM} >${contents} || return
return "$(cat ${own})"`;

const client = `mariadb --no-defaults ${LOGIN} --default-character-set=utf8mb4`;

const LOAD = `
${client} "$DATABASE_NAME" <${data} || return
${countTables(`${client} "$DATABASE_NAME"`)}`;

const local = `mariadb --no-defaults --socket=${SCRATCH}/sock --user=root --default-character-set=utf8mb4`;

/** What is lost with the pod need not be written twice. */
const VERIFY = `
mariadb-install-db --no-defaults --datadir=${SCRATCH}/data --wsrep-on=OFF --skip-test-db \\
  --auth-root-authentication-method=normal >/dev/null || return
mariadbd --no-defaults --datadir=${SCRATCH}/data --socket=${SCRATCH}/sock --pid-file=${SCRATCH}/pid --tmpdir=/tmp \\
  --skip-networking --wsrep-on=OFF --skip-log-bin --event-scheduler=OFF --innodb-buffer-pool-size=128M \\
  --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 --max-allowed-packet=1G >${SCRATCH}/log 2>&1 &
server=$!
tries=0
until mariadb-admin --no-defaults --socket=${SCRATCH}/sock --user=root ping >/dev/null 2>&1; do
  tries=$((tries + 1))
  kill -0 "$server" 2>/dev/null && [ "$tries" -lt 240 ] || { cat ${SCRATCH}/log >&2; return 1; }
  sleep 0.5
done
${local} --execute="CREATE DATABASE trial CHARACTER SET utf8mb4" || return
${local} trial <${data} || return
${countTables(`${local} trial`)}
kill -9 "$server"
return 0`;

export const mariadbScripts: EngineScripts = {
  name: "mariadb",
  counts: "rows",
  port: 3306,
  dump: engineScript(DUMP),
  load: engineScript(LOAD),
  verify: engineScript(VERIFY),
  host: "DATABASE_HOST",
  credentials: {
    DATABASE_USER: credentialKeys.username,
    MYSQL_PWD: credentialKeys.password,
    DATABASE_NAME: credentialKeys.database,
  },
  // What is loaded belongs to the user, and says so.
  dumpCredentials: { MYSQL_PWD: credentialKeys.superuser },
  dumpVariables: { DATABASE_USER: accounts.backup },
  variables: {},
};
