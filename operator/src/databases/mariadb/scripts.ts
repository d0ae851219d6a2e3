/** How a member starts, and how the operator and the kubelet ask it. Pure. */

import type { Database } from "../database.ts";
import { LEAD_SQL } from "./events.ts";
import { accounts, OWN_SCHEMA, paths } from "./names.ts";
import { placeholders, serverFile } from "./parameters.ts";

/** Files of the ConfigMap `<id>-config`. None of them has a password. */
export function files(database: Database): Record<string, string> {
  return {
    "server.cnf": serverFile(database),
    "start.sh": START,
    "ask.sh": ASK,
    "order.sh": ORDER,
    "lead.sql": LEAD_SQL,
    "ready.sh": READY,
    "alive.sh": ALIVE,
  };
}

/** What a member says of the group, as lines of name and value. */
const STATUS = [
  "wsrep_cluster_size",
  "wsrep_cluster_status",
  "wsrep_last_committed",
  "wsrep_local_state",
  "wsrep_local_state_uuid",
  "wsrep_ready",
];
const SHOW_STATUS = `SHOW GLOBAL STATUS WHERE Variable_name IN (${STATUS.map((name) => `'${name}'`).join(",")})`;

/** The operator's and the kubelet's way in: the container's own user, who has every right, by the socket. */
const LOCAL = `local_client() {
  timeout "\${patience:-8}" mariadb --no-defaults --socket=${paths.socket} --user="$(id -un)" --batch --skip-column-names "$@"
}`;

/**
 * Variables of a project's own by which it could turn the server, or the scripts and programs that copy its data, into
 * something else.
 */
const GUARDED =
  "LD_|MYSQL|MARIADB|WSREP|GALERA|INNODB|DBUG|BASH|SHELLOPTS|IFS|TMPDIR|UMASK|SOCAT|OPENSSL|SSL_|GLIBC|MALLOC";

/**
 * The server, and what becomes of it. A member never makes up its mind by itself: it joins a group that serves, or waits
 * until the operator, who has asked all of them, tells it to begin. What it is doing is in the folder of its run:
 *
 * - `run`: tells each time that it has looked at its data from others, so that no order is followed that is not about them
 * - `phase`: `recovering`, `waiting`, `initializing`, `bootstrapping`, `joining`
 * - `position`: what data it has, and up to where
 * - `order`: what the operator has told it
 * - `answered`: the server has served in this run
 */
const START = `set -u
umask 077
run=${paths.run}
data=${paths.data}
for name in $(env | sed -nE 's/^((${GUARDED})[A-Za-z0-9_]*)=.*/\\1/p'); do
  case " $SLIPWAY_KEPT " in *" $name "*) ;; *) unset "$name" ;; esac
done
mkdir -p "$run"
rm -f "$run"/order "$run"/answered "$run"/position "$run"/mysqld.sock
phase() { echo "$1" >"$run/phase"; }
phase recovering
case "$SLIPWAY_ADDRESS" in *:*) address="[$SLIPWAY_ADDRESS]" ;; *) address=$SLIPWAY_ADDRESS ;; esac
member=$(printf %s "$SLIPWAY_MEMBER" | tail -c 31)
sed -e "s/${placeholders.address}/$address/g" -e "s/${placeholders.member}/$member/g" -e "s/${placeholders.user}/$(id -un)/g" \\
  ${paths.config}/server.cnf >"$run/my.cnf"
{
  echo '[client]'
  echo 'user=${accounts.monitor}'
  echo "password=\\"$SLIPWAY_MONITOR_PASSWORD\\""
  echo 'ssl-ca=${paths.tls}/ca.crt'
  echo 'ssl-verify-server-cert'
  echo 'connect-timeout=4'
} >"$run/monitor.cnf"
unset SLIPWAY_MONITOR_PASSWORD

server= stopping=
stop() {
  stopping=1
  if [ -n "$server" ]; then kill -TERM "$server" 2>/dev/null; else exit 0; fi
}
trap stop TERM INT

# What this member has. Data that a copy was interrupted over are worth nothing.
field() { sed -n "s/^$1: *//p" "$data/grastate.dat" 2>/dev/null; }
position() {
  phase recovering
  turn_id=$(cat /proc/sys/kernel/random/uuid)
  rm -f "$run/order"
  echo "$turn_id" >"$run/run"
  have=none uuid= seqno=-1 safe=0
  rm -rf "$data.new"
  if [ -e "$data/sst_in_progress" ]; then
    have=incomplete
  elif [ -d "$data/mysql" ]; then
    have=whole uuid=$(field uuid) seqno=$(field seqno) safe=$(field safe_to_bootstrap)
    case "$seqno" in
      '' | -1)
        mariadbd --defaults-file="$run/my.cnf" --wsrep-cluster-address=gcomm:// --wsrep-recover >"$run/recovery" 2>&1 &
        server=$!
        finish
        told=$(sed -n 's/.*Recovered position: *\\([0-9a-f-]*:-\\{0,1\\}[0-9]*\\).*/\\1/p' "$run/recovery" | tail -n 1)
        uuid=\${told%:*} seqno=\${told##*:}
        if [ -z "$told" ]; then
          cat "$run/recovery" >&2
          have=broken
        fi
        ;;
    esac
    case "$uuid" in 00000000-*) have=unborn ;; esac
  fi
  printf 'data=%s\\nuuid=%s\\nseqno=%s\\nsafe=%s\\n' "$have" "$uuid" "$seqno" "\${safe:-0}" >"$run/position"
  echo "position: $have $uuid:$seqno"
}

# Waits for the process to end; a signal that is passed on to it only interrupts the wait.
finish() {
  code=0
  while kill -0 "$server" 2>/dev/null; do
    wait "$server"
    code=$?
  done
  server=
  if [ -n "$stopping" ]; then exit 0; fi
}
serve() {
  mariadbd --defaults-file="$run/my.cnf" "$@" &
  server=$!
  finish
  echo "the server has ended with $code"
  rm -f "$run/mysqld.sock"
  # One that has served is made anew by the kubelet, who tells the world.
  if [ "$code" != 0 ] && [ -e "$run/answered" ]; then exit "$code"; fi
  rm -f "$run/answered"
}

peer_status() {
  timeout 6 mariadb --defaults-file="$run/monitor.cnf" --host="$1" --batch --skip-column-names \\
    -e "${SHOW_STATUS}" 2>/dev/null
}
# Looks at the other members: somebody serves (group), may give a copy (donor), lower ones are there (turn).
look_around() {
  group= donor= turn=1 before=1
  for peer in $SLIPWAY_PEERS; do
    if [ "$peer" = "$SLIPWAY_SELF" ]; then
      before=
      continue
    fi
    told=$(peer_status "$peer" | tr '\\t\\n' '= ')
    case "$told" in
      *wsrep_cluster_status=Primary*)
        group=1
        case "$told" in
          *'wsrep_local_state=4 '*) donor=$peer ;;
          *) turn= ;;
        esac
        ;;
      *) if [ -n "$before" ]; then turn=; fi ;;
    esac
  done
}

position
waited=0 failures=0
while :; do
  phase waiting
  look_around
  # One at a time, for a copy takes all of a donor; but nobody waits for one that never comes.
  if [ -n "$donor" ] && { [ -n "$turn" ] || [ "$waited" -ge 30 ]; }; then
    phase joining
    rm -f "$run/order"
    if [ "$have" = broken ]; then rm -f "$data/grastate.dat"; fi
    set -- --wsrep-cluster-address="gcomm://$donor"
    if [ "$have" = whole ]; then set -- "$@" --wsrep-start-position="$uuid:$seqno"; fi
    mkdir -p "$data"
    echo "joining the group of $donor"
    serve "$@"
  elif [ -z "$group" ] && [ -e "$run/order" ]; then
    order=$(cat "$run/order")
    case "$order" in *" $turn_id") order=\${order%% *} ;; *) order=stale ;; esac
    if [ "$order" = initialize ] && [ "$have" = none ]; then
      phase initializing
      # Whole or not at all.
      mariadb-install-db --defaults-file="$run/my.cnf" --datadir="$data.new" --wsrep-on=OFF --skip-test-db --skip-name-resolve \\
        --auth-root-authentication-method=socket --auth-root-socket-user="$(id -un)" >"$run/initialization" 2>&1 &
      server=$!
      finish
      if [ "$code" != 0 ]; then cat "$run/initialization" >&2; exit "$code"; fi
      rm -rf "$data"
      mv "$data.new" "$data"
      have=unborn
    elif [ "$order" != bootstrap ] || { [ "$have" != whole ] && [ "$have" != unborn ]; }; then
      echo "an order to $order is none for what is here: $have"
      rm -f "$run/order"
      continue
    fi
    phase bootstrapping
    rm -f "$run/order"
    set -- --wsrep-cluster-address=gcomm:// --wsrep-new-cluster
    if [ "$have" = whole ]; then set -- "$@" --wsrep-start-position="$uuid:$seqno"; fi
    if [ -e "$data/grastate.dat" ]; then
      sed 's/^safe_to_bootstrap:.*/safe_to_bootstrap: 1/' "$data/grastate.dat" >"$data/grastate.new"
      mv "$data/grastate.new" "$data/grastate.dat"
    fi
    echo "beginning a group at $uuid:$seqno"
    serve "$@"
  else
    waited=$((waited + 1))
    sleep 1
    continue
  fi
  failures=$((failures + 1))
  if [ "$failures" -ge 5 ]; then exit 1; fi
  waited=0
  position
  sleep 2
done
`;

/** All that the operator wants to know of a member: what the launcher does, and what the server says once it answers. */
const ASK = `set -u
${LOCAL}
for name in run phase; do printf '%s=%s\\n' "$name" "$(cat ${paths.run}/$name 2>/dev/null)"; done
cat ${paths.run}/position 2>/dev/null
if [ -S ${paths.socket} ]; then
  local_client -e "${SHOW_STATUS}; SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version','event_scheduler')" 2>/dev/null
fi
exit 0
`;

/** Has a member run no scheduled events. */
const REST = "SET GLOBAL event_scheduler = OFF";

/** What the operator tells a member: an order, and the run that it is meant for. */
const ORDER = `set -u
${LOCAL}
# From 11.3 on each option of Galera's is a variable of its own.
provider() {
  local_client -e "SET GLOBAL wsrep_provider_$(echo "$1" | tr . _) = ON" 2>/dev/null ||
    local_client -e "SET GLOBAL wsrep_provider_options = '$1=true'"
}
[ "$(cat ${paths.run}/run)" = "$2" ] || exit 3
case "$1" in
  initialize | bootstrap)
    # Told once is enough: it looks for orders once a second, and takes an order away only in another phase.
    [ "$(cat ${paths.run}/order 2>/dev/null)" != "$1 $2" ] || exit 4
    [ "$(cat ${paths.run}/phase)" = waiting ] || exit 4
    echo "$1 $2" >${paths.run}/order.new
    mv ${paths.run}/order.new ${paths.run}/order
    ;;
  revive) provider pc.bootstrap ;;
  restart) kill -TERM "$(cat ${paths.run}/mysqld.pid)" ;;
  settle) local_client -e 'SET SESSION wsrep_sync_wait = 1; SELECT 1' ;;
  note) local_client -e 'CALL ${OWN_SCHEMA}.note_events()' ;;
  lead) local_client <${paths.config}/lead.sql ;;
  rest) local_client -e '${REST}' ;;
  reload) local_client -e "FLUSH SSL" && provider socket.ssl_reload ;;
  *) exit 5 ;;
esac
`;

/**
 * A member serves in a group that has a majority alone; one that gives a copy goes on serving. When it is back from without
 * one, another member may run the scheduled events: it waits to be told to.
 */
const READY = `set -u
patience=4
${LOCAL}
told=$(local_client -e "${SHOW_STATUS}" | tr '\\t\\n' '= ') || exit 1
case "$told" in
  *wsrep_cluster_status=Primary*) ;;
  *wsrep_cluster_status=*)
    local_client -e '${REST}'
    exit 1
    ;;
  *) exit 1 ;;
esac
case "$told" in *'wsrep_local_state=4 '* | *'wsrep_local_state=2 '*) ;; *) exit 1 ;; esac
case "$told" in *wsrep_ready=ON*) touch ${paths.run}/answered ;; *) exit 1 ;; esac
`;

/** A server that has answered must go on doing so; before, it may recover, wait or be copied for as long as it takes. */
const ALIVE = `set -u
${LOCAL}
[ -e ${paths.run}/answered ] || exit 0
patience=14
local_client -e 'SHOW GLOBAL STATUS LIKE "uptime"' >/dev/null 2>&1 || [ ! -e ${paths.run}/answered ]
`;
