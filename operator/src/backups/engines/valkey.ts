/**
 * Valkey: an RDB, as a replica is given one: all keys as they are at one moment. A running server loads none; so keys are
 * moved from a server of the pod's own, with their expiry, and functions after them.
 */

import { credentialKeys } from "@slipway/crds";
import { CA_FILE, type EngineScripts, engineScript, exchange, SCRATCH } from "./engine.ts";

const { data, contents } = exchange;

const RDB = "/tmp/dump.rdb";
/** Of a server without a password: one that is sent is refused. */
const localIn = (folder: string) => `env -u VALKEYCLI_AUTH valkey-cli -s ${folder}/sock -e`;
const local = localIn("/tmp");
const remote = `valkey-cli -e --tls --cacert ${CA_FILE} -h "$VALKEY_HOST" -p 6379 --user "$VALKEY_USER"`;

/** The server's own program tells what is in a file when it is called by this name. */
const COUNT_FILE = `
ln -sf "$(command -v valkey-server)" /tmp/valkey-check-rdb
/tmp/valkey-check-rdb ${RDB} >/tmp/checked || { tail -n 5 /tmp/checked >&2; return 1; }
keys=$(sed -n 's/.*\\] \\([0-9][0-9]*\\) keys read$/\\1/p' /tmp/checked)
printf 'keys\\t%s\\n' "\${keys:?}" >${contents}`;

const DUMP = `
valkey-cli --tls --cacert ${CA_FILE} -h "$VALKEY_HOST" -p 6379 --user slipway_admin --rdb ${RDB} >/dev/null || return
${COUNT_FILE}
cat ${RDB} >${data}`;

/** Starts a server with what is stored, and counts what it has loaded; what has expired since is in the dump, too. */
const serve = (folder: string, options: string) => `
: >${contents}
cat ${data} >${folder}/dump.rdb || return
valkey-server --port 0 --unixsocket ${folder}/sock --dir ${folder} --dbfilename dump.rdb --save '' --appendonly no \\
  --daemonize no --logfile ${folder}/log ${options} &
server=$!
tries=0
until [ "$(${localIn(folder)} ping 2>/dev/null)" = PONG ]; do
  tries=$((tries + 1))
  kill -0 "$server" 2>/dev/null && [ "$tries" -lt 1200 ] || { tail -n 5 ${folder}/log >&2; return 1; }
  sleep 0.2
done
loaded=$(${localIn(folder)} INFO persistence | tr -d '\\r' | awk -F: '/^rdb_last_load_keys_(loaded|expired):/ { sum += $2 } END { print sum + 0 }')
printf 'keys\\t%s\\n' "$loaded" >${contents}`;

/** Moves a few hundred keys of the chosen database; the next cursor. Nothing of it is an argument of a program. */
const MOVE =
  "local found = redis.call('SCAN', ARGV[1], 'COUNT', 300) " +
  "if #found[2] > 0 then redis.call('MIGRATE', ARGV[2], '6379', '', ARGV[3], '60000', 'COPY', 'REPLACE', 'AUTH2', ARGV[4], ARGV[5], 'KEYS', unpack(found[2])) end " +
  "return found[1]";

/** Its outgoing connections need a certificate, too: any. */
const TLS =
  "--tls-cluster yes --tls-ca-cert-file /etc/slipway/tls/ca.crt --tls-cert-file /etc/slipway/tls/tls.crt --tls-key-file /etc/slipway/tls/tls.key";

const LOAD = `
${serve("/tmp", TLS)}
for db in $(${local} INFO keyspace | sed -n 's/^db\\([0-9]*\\):.*/\\1/p'); do
  cursor=0
  while :; do
    cursor=$(printf 'EVAL "%s" 0 %s %s %s %s %s\\n' "${MOVE}" "$cursor" "$VALKEY_HOST" "$db" "$VALKEY_USER" "$VALKEYCLI_AUTH" |
      ${local} -n "$db") || { echo "keys could not be moved" >&2; return 1; }
    case $cursor in
      0) break ;;
      '' | *[!0-9]*) echo "keys could not be moved" >&2; return 1 ;;
    esac
  done
done
if [ -n "$(${local} FUNCTION LIST)" ]; then
  ${local} --raw FUNCTION DUMP | head -c -1 | ${remote} -X payload FUNCTION RESTORE payload REPLACE >/dev/null || return
fi
kill -9 "$server"
return 0`;

const VERIFY = `
${serve(SCRATCH, "--maxmemory 0")}
kill -9 "$server"
return 0`;

export const valkeyScripts: EngineScripts = {
  name: "valkey",
  counts: "keys",
  port: 6379,
  dump: engineScript(DUMP),
  load: engineScript(LOAD),
  verify: engineScript(VERIFY),
  host: "VALKEY_HOST",
  credentials: { VALKEY_USER: credentialKeys.username, VALKEYCLI_AUTH: credentialKeys.password },
  // Replicas are made by an account that may do nothing else than that; a copy needs what the operator may.
  dumpCredentials: { VALKEYCLI_AUTH: credentialKeys.superuser },
  variables: {},
  ownCertificate: true,
  inMemory: true,
};
