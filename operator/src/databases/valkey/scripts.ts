/** How a server and a Sentinel start, and how a kubelet asks them. Pure. */

import type { Database } from "../database.ts";
import { ADMIN_RULES, MONITOR_RULES, PROJECT_RULES, REPLICATION_RULES } from "./accounts.ts";
import { accounts, GROUP, paths, SENTINEL_PORT, sizeOf, VALKEY_PORT } from "./names.ts";
import { directiveFile, directives, transport } from "./parameters.ts";

/** Milliseconds without an answer after which a Sentinel holds an instance for gone. */
const DOWN_AFTER_MS = 3_000;
/**
 * The same for a Sentinel that has only begun, until it has seen the primary once. After an outage of everything the primary
 * comes back with all that it acknowledged, and no Sentinel can tell which of the others has most of it.
 */
const PATIENT_MS = 15_000;
/** How long each step of a failover may take; the next one begins after twice that at the earliest. */
const FAILOVER_MS = 10_000;

/**
 * How long a Sentinel that did not get its turn for 2 s only watches (TILT), long enough to hear from everybody again. By itself
 * it takes 30 s, and on a busy node nobody would ever replace a primary.
 */
const TILT_MS = 5_000;

/**
 * How often a Sentinel asks for a primary's replicas: by itself every 10 s, and one that it does not know cannot take the
 * primary's place. So it asks more often until it knows all.
 */
const CURIOUS_MS = 1_000;
const CONTENT_MS = 10_000;

/**
 * Asks a server or a Sentinel, and gives up on those that do not answer. A Sentinel has no users; `default` is what a
 * password alone belongs to.
 */
const ASK = `ask() {
  password=$1 user=$2 host=$3 port=$4
  shift 4
  VALKEYCLI_AUTH=$password timeout 3 valkey-cli --tls --cacert ${paths.tls}/ca.crt \\
    --user "$user" -h "$host" -p "$port" "$@" 2>/dev/null
}`;

/**
 * Asks the server of the same pod. The kubelet gives up on it by itself. Without `timeout`, which leaves a process behind
 * (busybox) that process 1, the server, would never take note of.
 */
const ASK_HERE = `ask() {
  VALKEYCLI_AUTH=$SLIPWAY_MONITOR_PASSWORD valkey-cli --tls --cacert ${paths.tls}/ca.crt \\
    --user ${accounts.monitor} -h localhost -p ${VALKEY_PORT} -t 3 "$@" 2>/dev/null
}`;

/** Files of the ConfigMap `<id>-config`. None of them has a password. */
export function files(database: Database): Record<string, string> {
  return {
    "valkey.conf": directiveFile(directives(database)),
    "start.sh": startScript(),
    "ready.sh": READY,
    "alive.sh": ALIVE,
    ...(sizeOf(database) > 1
      ? {
          "sentinel.conf": directiveFile([
            ...transport(SENTINEL_PORT),
            ["dir", "/tmp"],
            ["sentinel", "resolve-hostnames", "yes"],
            ["sentinel", "announce-hostnames", "yes"],
            ["sentinel", "announce-port", SENTINEL_PORT],
          ]),
          "sentinel.sh": sentinelScript(database),
        }
      : {}),
  };
}

/**
 * The server. Its accounts are made from the Secret as it is now, as hashes. Which instance is the primary, the other pods'
 * Sentinels say, the newest of whom is believed. Whoever they take for the primary begins as such when it has its data,
 * or nobody has any; otherwise, and while they are replacing it, it waits until another one has taken its place: an empty
 * primary would empty all others, and writes that it takes meanwhile would be lost. For the same reason Sentinels may not
 * promote a replica without data (priority 0) until it has synchronized once: the operator gives it a priority then.
 */
function startScript(): string {
  return `set -eu
umask 077
${ASK}
digest() { printf %s "$1" | sha256sum | cut -c1-64; }
account() { printf 'user %s on #%s %s\\n' "$1" "$(digest "$2")" "$3"; }
for name in $(env | sed -nE 's/^(LD_[A-Za-z0-9_]*)=.*/\\1/p'); do unset "$name"; done
mkdir -p ${paths.data} ${paths.run}
{
  echo 'user default off resetpass -@all'
  account ${accounts.admin} "$SLIPWAY_ADMIN_PASSWORD" '${ADMIN_RULES}'
  account ${accounts.replication} "$SLIPWAY_REPLICATION_PASSWORD" '${REPLICATION_RULES}'
  account ${accounts.monitor} "$SLIPWAY_MONITOR_PASSWORD" '${MONITOR_RULES}'
  case "$SLIPWAY_USERNAME" in
    '' | default | slipway_* | *[!A-Za-z0-9_-]*) ;;
    *) account "$SLIPWAY_USERNAME" "$SLIPWAY_PASSWORD" '${PROJECT_RULES}' ;;
  esac
} >${paths.run}/users.acl
{
  echo 'include ${paths.config}/valkey.conf'
  echo 'masteruser ${accounts.replication}'
  echo "masterauth $SLIPWAY_REPLICATION_PASSWORD"
} >${paths.run}/valkey.conf

# Of each Sentinel its epoch, the address of its primary, and whether it is being replaced.
told() {
  for peer in $SLIPWAY_PEERS; do
    ask "$SLIPWAY_REPLICATION_PASSWORD" default "$peer" ${SENTINEL_PORT} -e SENTINEL PRIMARY ${GROUP} |
      awk -v peer="$peer" '
        $0 == "ip" { getline; host = $0 }
        $0 == "flags" { getline; flags = $0 }
        $0 == "config-epoch" { getline; print $0, host, peer, (flags ~ /failover_in_progress/ ? "moving" : "still") }' || true
  done
}
nobody_has_data() {
  for peer in $SLIPWAY_PEERS; do
    [ "$peer" != "$SLIPWAY_ADDRESS" ] || continue
    size=$(ask "$SLIPWAY_MONITOR_PASSWORD" ${accounts.monitor} "$peer" ${VALKEY_PORT} -e DBSIZE) || return 1
    [ "$size" = 0 ] || return 1
  done
}
if [ -n "$SLIPWAY_PEERS" ]; then
  echo "replica-announce-ip $SLIPWAY_ADDRESS" >>${paths.run}/valkey.conf
  echo 'replica-announce-port ${VALKEY_PORT}' >>${paths.run}/valkey.conf
  trap 'exit 0' TERM
  while :; do
    all=$(told)
    # The Sentinel of this pod has only begun: it knows what it knew long ago.
    primary=$(echo "$all" | grep -v " $SLIPWAY_ADDRESS [a-z]*$" | sort -n | tail -n 1 | cut -d ' ' -f 2)
    if [ "$primary" = "$SLIPWAY_ADDRESS" ]; then
      moving=$(echo "$all" | grep ' moving$' || true)
      if [ -z "$moving" ] && { [ -d ${paths.data}/appendonlydir ] || nobody_has_data; }; then break; fi
      echo 'waiting for another instance to take over'
    elif [ -n "$primary" ]; then
      echo "replicaof $primary ${VALKEY_PORT}" >>${paths.run}/valkey.conf
      if [ ! -e ${paths.synchronized} ] || [ ! -d ${paths.data}/appendonlydir ]; then
        echo 'replica-priority 0' >>${paths.run}/valkey.conf
      fi
      break
    else
      echo 'waiting for a Sentinel that knows the primary'
    fi
    sleep 1
  done
fi
trap - TERM
exec valkey-server ${paths.run}/valkey.conf
`;
}

/**
 * The Sentinel beside a server. What it knows goes to the volume without its passwords, so that the primary is still known
 * after all of them have been away. Its identity is its pod's.
 */
function sentinelScript(database: Database): string {
  const quorum = Math.floor(sizeOf(database) / 2) + 1;
  const others = sizeOf(database) - 1;
  return `set -eu
umask 077
mkdir -p ${paths.run}
conf=${paths.run}/sentinel.conf
state=${paths.sentinelState}
{
  cat ${paths.config}/sentinel.conf
  echo "sentinel announce-ip $SLIPWAY_ADDRESS"
  echo "sentinel myid $(printf %s "$SLIPWAY_ADDRESS" | sha256sum | cut -c1-40)"
  echo "requirepass $SLIPWAY_REPLICATION_PASSWORD"
  echo "sentinel sentinel-pass $SLIPWAY_REPLICATION_PASSWORD"
  if [ -s "$state" ]; then
    grep '^sentinel monitor ' "$state" | sed -E 's/ [0-9]+$/ ${quorum}/'
  else
    echo "sentinel monitor ${GROUP} \${SLIPWAY_PEERS%% *} ${VALKEY_PORT} ${quorum}"
  fi
  echo 'sentinel auth-user ${GROUP} ${accounts.replication}'
  echo "sentinel auth-pass ${GROUP} $SLIPWAY_REPLICATION_PASSWORD"
  echo 'sentinel down-after-milliseconds ${GROUP} ${PATIENT_MS}'
  echo 'sentinel failover-timeout ${GROUP} ${FAILOVER_MS}'
  echo 'sentinel parallel-syncs ${GROUP} 1'
  if [ -s "$state" ]; then grep -v '^sentinel monitor ' "$state" || true; fi
} >"$conf"
keep() {
  grep -E '^sentinel (monitor|(config|leader|current)-epoch|known-(replica|sentinel)) ' "$conf" >"$state.new" &&
    mv "$state.new" "$state"
}
ask_here() {
  VALKEYCLI_AUTH=$SLIPWAY_REPLICATION_PASSWORD valkey-cli --tls --cacert ${paths.tls}/ca.crt \\
    -h localhost -p ${SENTINEL_PORT} -t 3 -e SENTINEL "$@" 2>/dev/null
}
seen() {
  ask_here PRIMARY ${GROUP} | awk '
    $0 == "runid" { getline; answered = $0 != "" }
    $0 == "flags" { getline; well = $0 == "master" }
    END { exit !(answered && well) }'
}
knows_all() {
  ask_here PRIMARY ${GROUP} | awk -v others=${others} '
    $0 == "num-slaves" || $0 == "num-replicas" { getline; replicas = $0 }
    $0 == "num-other-sentinels" { getline; sentinels = $0 }
    END { exit !(replicas + 0 >= others && sentinels + 0 >= others) }'
}
patient=yes
tuned=
valkey-sentinel "$conf" &
sentinel=$!
trap 'kill "$sentinel"' TERM INT
while kill -0 "$sentinel" 2>/dev/null; do
  case "$tuned" in
    '') if ask_here DEBUG tilt-period ${TILT_MS} info-period ${CURIOUS_MS} >/dev/null; then tuned=curious; fi ;;
    curious) if knows_all && ask_here DEBUG info-period ${CONTENT_MS} >/dev/null; then tuned=content; fi ;;
  esac
  if [ -n "$patient" ] && seen && ask_here SET ${GROUP} down-after-milliseconds ${DOWN_AFTER_MS} >/dev/null; then
    patient=
  fi
  if [ ! -e "$state" ] || [ "$conf" -nt "$state" ]; then keep || true; fi
  sleep 1
done
keep || true
`;
}

/** A primary serves when it has read its files, a replica when it follows. From then on its volume has the data. */
const READY = `set -eu
${ASK_HERE}
told=$(ask -e INFO replication persistence)
case "$told" in *[!_]loading:0*) ;; *) exit 1 ;; esac
case "$told" in *role:master* | *master_link_status:up*) ;; *) exit 1 ;; esac
[ -e ${paths.synchronized} ] || : >${paths.synchronized} || true
`;

/** Any answer will do, also that it is reading its files. */
const ALIVE = `${ASK_HERE}
ask PING
`;
